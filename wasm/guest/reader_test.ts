import { Reader } from "./reader.ts";

function equal(got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

/** Gives a text in pieces of so many bytes. */
function readerOf(text: string, size: number): Reader {
  let left: Uint8Array = new TextEncoder().encode(text);
  return new Reader((buffer) => {
    const n = Math.min(size, left.length, buffer.length);
    buffer.set(left.subarray(0, n));
    left = left.subarray(n);
    return n;
  });
}

Deno.test("lines, characters, bytes and what is left, whatever the pieces", () => {
  for (const size of [1, 2, 3, 7, 100]) {
    const reader = readerOf("eins\n\nzwö😀i\nAé€😀\nrest\nof it", size);
    equal([reader.line(), reader.line(), reader.line()], [
      "eins",
      "",
      "zwö😀i",
    ]);
    equal([reader.char(), reader.char(), reader.char(), reader.char()], [
      "A",
      "é",
      "€",
      "😀",
    ]);
    equal([reader.peek(), reader.byte(), reader.peek()], [10, 10, 114]);
    equal([...reader.bytes(3)], [114, 101, 115]);
    equal(reader.text(), "t\nof it");
    equal([reader.line(), reader.char(), reader.byte(), reader.text()], [
      undefined,
      undefined,
      -1,
      "",
    ]);
  }
});

Deno.test("a line that is longer than a piece, and one without a newline", () => {
  const long = "x".repeat(200_000);
  const reader = readerOf(`${long}\nend`, 65536);
  equal(reader.line()!.length, 200_000);
  equal(reader.line(), "end");
  equal(reader.line(), undefined);
});
