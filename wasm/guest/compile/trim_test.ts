import { Bits, countFunctions, trim } from "./trim.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

// A module with one import and two functions, a and b, that give 1 and 2 + 0.
const text = (name: string) => [name.length, ...new TextEncoder().encode(name)];
const bytes = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 5, 1, 0x60, 0, 1, 0x7f],
  ...[2, 7, 1, ...text("m"), ...text("f"), 0, 0],
  ...[3, 3, 2, 0, 0],
  ...[7, 9, 2, ...text("a"), 0, 1, ...text("b"), 0, 2],
  ...[10, 14, 2, 4, 0, 0x41, 1, 0x0b, 7, 0, 0x41, 2, 0x41, 0, 0x6a, 0x0b],
]);

Deno.test("functions are counted", () => {
  assertEquals(countFunctions(bytes), { imported: 1, own: 2 });
});

Deno.test("a function that is not kept is a trap", () => {
  const run = (module: Uint8Array) => {
    const { exports } = new WebAssembly.Instance(
      new WebAssembly.Module(module as Uint8Array<ArrayBuffer>),
      { m: { f: () => 0 } },
    );
    return ["a", "b"].map((name) => {
      try {
        return (exports[name] as () => number)();
      } catch (error) {
        return (error as Error).message;
      }
    });
  };
  assertEquals(run(bytes), [1, 2]);
  assertEquals(run(trim(bytes, (index) => index !== 1)), [1, "unreachable"]);
});

Deno.test("bits are kept", () => {
  const bits = new Bits(Bits.of([0, 9, 300]).base64);
  assertEquals([0, 1, 9, 300, 301].map((n) => bits.has(n)), [
    true,
    false,
    true,
    true,
    false,
  ]);
});
