import { explain, jumps, sourcesOf } from "./program.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

Deno.test("sources of included headers belong to a program", () => {
  const files: Record<string, string> = {
    "/workspace/main.c": '#include "a/b.h"\n  # include "c.c"\n#include <d.h>',
    "/workspace/a/b.h": '#include "../e.h"',
    "/workspace/a/b.c": "",
    "/workspace/c.c": "",
    "/workspace/d.h": "",
    "/workspace/d.c": "",
    "/workspace/e.h": '#include "a/b.h"',
    "/workspace/e.cpp": "",
  };
  assertEquals(sourcesOf("/workspace/main.c", (path) => files[path]), [
    "/workspace/a/b.c",
  ]);
  files["/workspace/main.cc"] = files["/workspace/main.c"]!;
  assertEquals(sourcesOf("/workspace/main.cc", (path) => files[path]), [
    "/workspace/a/b.c",
    "/workspace/e.cpp",
  ]);
});

Deno.test("setjmp is seen", () => {
  assertEquals([jumps("if (setjmp(b))"), jumps("my_setjmp2()")], [true, false]);
});

Deno.test("what no program can have is explained", () => {
  assertEquals(
    explain("wasm-ld: error: x.o: undefined symbol: __wrap_pthread_create\n"),
    "Threads are not available in WebAssembly here: pthread_create.",
  );
  assertEquals(
    explain("main.c:3:4: error: call to undeclared function 'fork'; ISO C99\n"),
    "Starting other programs is not available in WebAssembly here: fork.",
  );
  assertEquals(explain("error: use of undeclared identifier 'x'"), undefined);
});
