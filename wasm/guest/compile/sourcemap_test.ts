import { sourceMapComment } from "./sourcemap.ts";

Deno.test("mappings are relative to those before", () => {
  const comment = sourceMapComment("main.fsx", [
    { line: 3, column: 4, sourceLine: 2, sourceColumn: 0 },
    { line: 1, column: 0, sourceLine: 1, sourceColumn: 20 },
    { line: 3, column: 2, sourceLine: 5, sourceColumn: 1 },
  ]);
  const { mappings, sources } = JSON.parse(
    atob(comment.slice(comment.indexOf(",") + 1)),
  );
  if (mappings !== "AAAoB;;EAInB,EAHD") throw new Error(mappings);
  if (sources[0] !== "main.fsx") throw new Error(sources);
});
