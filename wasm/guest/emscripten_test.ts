import { replaceImports, replaceOnce, Tail } from "./emscripten.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

function fails(call: () => void): boolean {
  try {
    call();
    return false;
  } catch {
    return true;
  }
}

Deno.test("replaceOnce() replaces what is there once, and nothing else", () => {
  assertEquals(replaceOnce("a b c", "b", "$&x"), "a $&x c");
  assertEquals(fails(() => replaceOnce("a c", "b", "x")), true);
  assertEquals(fails(() => replaceOnce("b b", "b", "x")), true);
});

Deno.test("replaceImports() replaces only what there is", () => {
  const imports = { env: { a: () => 1, b: () => 2 } };
  replaceImports(imports, "env", { a: () => 3 });
  assertEquals([imports.env.a(), imports.env.b()], [3, 2]);
  assertEquals(
    fails(() => replaceImports(imports, "env", { c: () => 3 })),
    true,
  );
});

Deno.test("Tail keeps the end of what is written", () => {
  const tail = new Tail(10), encoder = new TextEncoder();
  for (let i = 0; i < 1000; i++) tail.add(encoder.encode(`${i}\n`));
  assertEquals(tail.text().endsWith("998\n999\n"), true);
  assertEquals(tail.text().length < 20, true);
  tail.add(encoder.encode("x".repeat(100)));
  assertEquals(tail.text().slice(-10), "x".repeat(10));
  tail.clear();
  assertEquals(tail.text(), "");
});

Deno.test("Tail has a character whole that was written in two pieces", () => {
  const tail = new Tail(10), [a, b] = new TextEncoder().encode("ü");
  tail.add(Uint8Array.of(a!));
  tail.add(Uint8Array.of(b!));
  assertEquals(tail.text(), "ü");
});
