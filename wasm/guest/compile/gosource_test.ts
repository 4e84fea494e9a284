import { isBuilt, modulePath, readSource } from "./gosource.ts";

function assertEquals(got: unknown, want: unknown): void {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
  if (g !== w) throw new Error(`got ${g}, want ${w}`);
}

Deno.test("a source's imports and main function", () => {
  const source = readSource(
    "/workspace/a.go",
    'package main // import "x"\nimport ("fmt"; m "math/rand")\n/*\nimport "no"\n*/\n' +
      'import `os`\nconst s = "// not a comment"\nfunc main() {}\n',
  );
  assertEquals(source.imports, ["fmt", "math/rand", "os"]);
  assertEquals([source.package, source.main], ["main", true]);
});

Deno.test("a file is built by its name and its condition", () => {
  const built = (name: string, text = "package main") =>
    isBuilt(`/workspace/${name}`, text);
  assertEquals(
    [
      built("a.go"),
      built("a_test.go"),
      built("a_linux.go"),
      built("a_wasip1.go"),
    ],
    [true, false, false, true],
  );
  const condition = (text: string) =>
    built("a.go", `//go:build ${text}\n\npackage main`);
  assertEquals(
    ["ignore", "!ignore", "linux || wasip1", "wasm && !(js || linux)", "go1.20"]
      .map(condition),
    [false, true, true, true, true],
  );
});

Deno.test("a module's path", () => {
  assertEquals(
    modulePath("// x\nmodule example.com/a\n\ngo 1.24\n"),
    "example.com/a",
  );
  assertEquals(modulePath("go 1.24\n"), undefined);
});
