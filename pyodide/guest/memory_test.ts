import { readMemory, writeMemory } from "./memory.ts";

const PAGE = 4096;

/** A file in memory that reads and writes a little at a time. */
class File {
  bytes: number[] = [];
  at = 0;

  writeSync(bytes: Uint8Array): number {
    const part = bytes.subarray(0, 5000);
    this.bytes.push(...part);
    return part.length;
  }

  readSync(bytes: Uint8Array): number | null {
    const part = this.bytes.slice(this.at, this.at + Math.min(bytes.length, 3));
    bytes.set(part);
    this.at += part.length;
    return part.length || null;
  }
}

function assertEqual(have: unknown, want: unknown): void {
  if (JSON.stringify(have) !== JSON.stringify(want)) {
    throw new Error(`have ${JSON.stringify(have)}, want ${want}`);
  }
}

for (
  const [name, used, touched, pages] of [
    ["nothing", [], [], 0],
    ["the first page", [0], [], 1],
    ["the last page", [9], [], 1],
    ["pages apart", [1, 2, 5, 9], [], 4],
    ["a page that is zero, but was not", [1, 4], [4, 5], 3],
  ] as [string, number[], number[], number][]
) {
  Deno.test(`memory is read as it was written: ${name}`, () => {
    const memory = new Uint8Array(10 * PAGE);
    for (const page of used) memory[page * PAGE + page] = 1 + page;
    const was = Array.from({ length: 10 }, (_, page) => touched.includes(page));
    const file = new File();
    writeMemory(file, memory, Uint8Array.of(7, 8, 9), was);
    assertEqual(Math.floor(file.bytes.length / PAGE), pages);

    const read = new Uint8Array(memory.length);
    for (const page of touched) read.fill(255, page * PAGE, (page + 1) * PAGE);
    const beside = readMemory(file, (size) => {
      assertEqual(size, memory.length);
      return read;
    });
    assertEqual([...beside], [7, 8, 9]);
    assertEqual(read.findIndex((byte, i) => byte !== memory[i]), -1);
    assertEqual(file.at, file.bytes.length);
  });
}

Deno.test("a snapshot that is cut off is not taken", () => {
  const file = new File();
  const memory = new Uint8Array(2 * PAGE).fill(1);
  writeMemory(file, memory, Uint8Array.of(7), []);
  file.bytes.pop();
  let caught: unknown;
  try {
    readMemory(file, () => new Uint8Array(2 * PAGE));
  } catch (error) {
    caught = error;
  }
  assertEqual(
    (caught as Error).message,
    "Cannot read all of a file: it is cut off",
  );
});
