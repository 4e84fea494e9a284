/**
 * The file of a memory snapshot: WebAssembly memory without its zero pages, and
 * what Pyodide itself keeps beside it.
 *
 * Four parts follow one another; numbers are little-endian and have 32 bits:
 *
 *     the bytes of memory, the bytes of Pyodide's part, the number of runs
 *     for each run of pages: the first page, the number of pages
 *     Pyodide's part
 *     the pages, run after run
 *
 * Of Python's memory 40% are zero. Leaving them out spares the disk, and each
 * worker the pages.
 *
 * @module
 */

/** The bytes of a page; one of the machine's has as many, or more. */
const PAGE = 4096;

/** A file that is written synchronously, such as `Deno.FsFile`. */
export interface Sink {
  writeSync(bytes: Uint8Array): number;
}

/** A file that is read synchronously, such as `Deno.FsFile`. */
export interface Source {
  readSync(bytes: Uint8Array): number | null;
}

/** Tells of each page of memory whether it holds anything. */
export function pagesInUse(memory: Uint8Array<ArrayBuffer>): boolean[] {
  const words = new BigUint64Array(
    memory.buffer,
    memory.byteOffset,
    memory.length / BigUint64Array.BYTES_PER_ELEMENT,
  );
  const wordsOfPage = PAGE / words.BYTES_PER_ELEMENT;
  const count = memory.length / PAGE;
  return Array.from({ length: count }, (_, page) => {
    const start = page * wordsOfPage;
    return words.subarray(start, start + wordsOfPage).some((word) =>
      word !== 0n
    );
  });
}

/**
 * Writes memory, and what Pyodide keeps beside it. Also the pages in touched
 * are written, which a memory may hold something in before it is read into.
 */
export function writeMemory(
  to: Sink,
  memory: Uint8Array<ArrayBuffer>,
  beside: Uint8Array,
  touched: boolean[],
): void {
  const runs: [number, number][] = [];
  pagesInUse(memory).forEach((inUse, page) => {
    const last = runs.at(-1);
    if (!inUse && !touched[page]) return;
    if (last && last[0] + last[1] === page) last[1]++;
    else runs.push([page, 1]);
  });
  const numbers = [memory.length, beside.length, runs.length, ...runs.flat()];
  write(to, new Uint8Array(Uint32Array.from(numbers).buffer));
  write(to, beside);
  for (const [first, pages] of runs) {
    write(to, memory.subarray(first * PAGE, (first + pages) * PAGE));
  }
}

/**
 * Reads what was written into the memory that allot gives for its size, and
 * returns what Pyodide keeps beside it.
 */
export function readMemory(
  from: Source,
  allot: (size: number) => Uint8Array,
): Uint8Array {
  const [size, besideSize, count] = readNumbers(from, 3);
  const runs = readNumbers(from, 2 * count!);
  const beside = fill(from, new Uint8Array(besideSize!));
  const memory = allot(size!);
  for (let i = 0; i < runs.length; i += 2) {
    const start = runs[i]! * PAGE;
    fill(from, memory.subarray(start, start + runs[i + 1]! * PAGE));
  }
  return beside;
}

function readNumbers(from: Source, count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  fill(from, new Uint8Array(numbers.buffer));
  return numbers;
}

/** Writes all of bytes. */
export function write(to: Sink, bytes: Uint8Array): void {
  while (bytes.length > 0) bytes = bytes.subarray(to.writeSync(bytes));
}

/** Fills bytes with what comes next in a file. */
export function fill<T extends Uint8Array>(from: Source, bytes: T): T {
  for (let rest: Uint8Array = bytes; rest.length > 0;) {
    const n = from.readSync(rest);
    if (n === null) throw new Error("Cannot read all of a file: it is cut off");
    rest = rest.subarray(n);
  }
  return bytes;
}
