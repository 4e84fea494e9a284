import type { Files } from "./files.ts";
import { fullPath, glob } from "./path.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("fullPath() is from the root, and not above it", () => {
  assertEquals(
    ["a.db", "./a//b/../c", "/x/./y", "../../../etc", ""].map(fullPath),
    ["/workspace/a.db", "/workspace/a/c", "/x/y", "/etc", "/workspace"],
  );
});

Deno.test("glob() finds files and not directories", () => {
  const tree: Record<string, string[]> = {
    "/workspace": ["b.csv", "a.csv", "a1.txt", "d"],
    "/workspace/d": ["c.csv", "e"],
    "/workspace/d/e": ["f.csv"],
  };
  const files = {
    stat: (path: string) => ({ kind: path in tree ? "directory" : "file" }),
    readDir: (path: string) =>
      (tree[path] ?? []).map((name) => ({
        name,
        kind: `${path}/${name}` in tree ? "directory" : "file",
      })),
  } as unknown as Files;
  assertEquals(glob(files, "*.csv"), ["/workspace/a.csv", "/workspace/b.csv"]);
  assertEquals(glob(files, "**/*.csv").length, 4);
  assertEquals(glob(files, "[a-b]?.txt"), ["/workspace/a1.txt"]);
  assertEquals(glob(files, "/workspace/*/c.csv"), ["/workspace/d/c.csv"]);
  assertEquals(glob(files, "*"), [
    "/workspace/a.csv",
    "/workspace/a1.txt",
    "/workspace/b.csv",
  ]);
});
