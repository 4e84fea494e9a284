/**
 * Room for the calls of a deep Ruby program.
 *
 * When Ruby collects garbage, or prepares to be thrown back to a place (setjmp), it leaves
 * all its functions and enters them again, and writes what they have in their locals to a
 * buffer in its memory (Binaryen's Asyncify). Those buffers are of 24 KiB, which some 50
 * calls fill that go through blocks, and Ruby is at its end: a program that walks a tree
 * would not get far. So the functions that begin such a round go through here, and write
 * to a region that is large enough for what V8's stack holds. It is copied for those who
 * come back to it later.
 *
 * Ruby looks for no objects in what fibers left that wait for others, and would free
 * them; it is shown them here.
 *
 * @module
 */

/** What is written over the module of the pinned package, by its places in the file. */
const PATCHES: [at: number, old: number[], now: number[]][] = [
  // the scan for garbage: call start_unwind
  [7867202, [0x10, 0xd7, 0x8b, 0x1], [0x10, 0x81, 0x80, 0x0]],
  // setjmp: call start_unwind
  [7867467, [0x10, 0xd7, 0x8b, 0x1], [0x10, 0x81, 0x80, 0x0]],
  // longjmp: call start_unwind
  [7867580, [0x10, 0xd7, 0x8b, 0x1], [0x10, 0x8e, 0x80, 0x0]],
  // start_unwind, whose test of the buffer gives way to a call
  [11733003, [
    0x0,
    0x41,
    0x1,
    0x24,
    0x1,
    0x20,
    0x0,
    0x24,
    0x2,
    0x23,
    0x2,
    0x28,
    0x2,
    0x0,
    0x23,
    0x2,
    0x28,
    0x2,
    0x4,
    0x4b,
    0x4,
    0x40,
    0x0,
    0xb,
    0xb,
  ], [
    0x0,
    0x20,
    0x0,
    0x10,
    0x9,
    0x1a,
    0x41,
    0x1,
    0x24,
    0x1,
    0x20,
    0x0,
    0x24,
    0x2,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0xb,
  ]],
  // start_rewind, likewise
  [11733051, [
    0x0,
    0x41,
    0x2,
    0x24,
    0x1,
    0x20,
    0x0,
    0x24,
    0x2,
    0x23,
    0x2,
    0x28,
    0x2,
    0x0,
    0x23,
    0x2,
    0x28,
    0x2,
    0x4,
    0x4b,
    0x4,
    0x40,
    0x0,
    0xb,
    0xb,
  ], [
    0x0,
    0x20,
    0x0,
    0x10,
    0x6,
    0x1a,
    0x41,
    0x2,
    0x24,
    0x1,
    0x20,
    0x0,
    0x24,
    0x2,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0x1,
    0xb,
  ]],
];

/** Bytes of the region; memory that is never written takes none of the machine's. */
const REGION = 16 << 20;
const PAGE = 65536;

/** Has a module call the functions of `makeRoom`; false if it is another one. */
export function patch(module: Uint8Array): boolean {
  const known = PATCHES.every(([at, old]) =>
    old.every((byte, i) => module[at + i] === byte)
  );
  if (known) { for (const [at, , now] of PATCHES) module.set(now, at); }
  return known;
}

/** The imports that a patched module calls, which are otherwise those of the bridge. */
export function makeRoom(): {
  imports: WebAssembly.Imports;
  use(exports: WebAssembly.Exports): void;
} {
  let memory: WebAssembly.Memory;
  let unwind: (buffer: number) => void;
  let region = 0;
  /** The buffer that is written by what comes back to where it is; -1 if there is none. */
  let pending = -1;
  /** That of a fiber that gives way to another one, and is still in the region. */
  let leaving = -1;
  /** An unwinding was begun by us. */
  let ours = false;
  /** What those have written who may be thrown back to, by their buffers. */
  const captured = new Map<number, Uint8Array>();
  /** What fibers have written that wait. */
  const waiting = new Map<number, Uint8Array>();

  /** The buffers of `captured`, as they came. */
  const order: number[] = [];

  /**
   * Keeps what was written by way of a buffer. What is longer was written by functions
   * that have returned since, unless it is another fiber's.
   */
  function capture(buffer: number, bytes: Uint8Array): void {
    while (waiting.size === 0 && order.length > 0) {
      const last = captured.get(order.at(-1)!)!;
      if (last.length <= bytes.length) break;
      captured.delete(order.pop()!);
    }
    waiting.delete(buffer);
    if (!captured.has(buffer)) order.push(buffer);
    captured.set(buffer, bytes);
  }

  /** Has a buffer be the region. */
  function move(buffer: number): void {
    if (leaving >= 0) waiting.set(leaving, written(leaving));
    leaving = -1;
    const view = new DataView(memory.buffer);
    view.setUint32(buffer, region, true);
    view.setUint32(buffer + 4, region + REGION, true);
  }

  function begin(buffer: number): void {
    move(buffer);
    ours = true;
    unwind(buffer);
    ours = false;
  }

  /** A copy of what was written by way of a buffer. */
  function written(buffer: number): Uint8Array {
    const end = new DataView(memory.buffer).getUint32(buffer, true);
    // It ends the program where the region was too small: what follows it is overwritten.
    if (end < region || end > region + REGION) throw new RangeError("overflow");
    return new Uint8Array(memory.buffer, region, end - region).slice();
  }

  /** Puts back what was written by way of a buffer. */
  function restore(buffer: number, bytes: Uint8Array): void {
    new Uint8Array(memory.buffer, region, bytes.length).set(bytes);
    const view = new DataView(memory.buffer);
    view.setUint32(buffer, region + bytes.length, true);
    view.setUint32(buffer + 4, region + bytes.length, true);
  }

  /**
   * Ruby looks for objects in the region, up to the buffer's end, when it collects
   * garbage: what fibers have that wait, for which Ruby does not look, comes after.
   */
  function showWaiting(buffer: number, end: number): void {
    for (const bytes of waiting.values()) {
      const next = end + bytes.length + 8 & ~7;
      if (next > region + REGION) break;
      new Uint8Array(memory.buffer, end, bytes.length).set(bytes);
      end = next;
    }
    new DataView(memory.buffer).setUint32(buffer + 4, end, true);
  }

  return {
    imports: {
      canonical_abi: {
        // In place of the start of an unwinding that comes back to where it is: Ruby
        // collects garbage, or captures where it is.
        "resource_drop_js-abi-value"(buffer: number) {
          begin(buffer >>> 0);
          pending = buffer >>> 0;
        },
      },
      "rb-js-abi-host": {
        // In place of the start of one that goes elsewhere: what it writes is not read.
        "export-js-value-to-host: func(value: handle<js-abi-value>) -> ()"(
          buffer: number,
        ) {
          begin(buffer >>> 0);
          pending = -1;
        },
        // Before any unwinding; those that are not ours are fibers.
        "bool-to-js-bool: func(value: bool) -> handle<js-abi-value>"(
          buffer: number,
        ) {
          if (ours) return 0;
          move(buffer >>> 0);
          leaving = buffer >>> 0;
          pending = -1;
          return 0;
        },
        // Before functions are entered again.
        "int-to-js-number: func(value: s32) -> handle<js-abi-value>"(
          given: number,
        ) {
          const buffer = given >>> 0;
          if (buffer === pending) {
            pending = -1;
            const bytes = written(buffer);
            capture(buffer, bytes);
            showWaiting(buffer, region + (bytes.length + 7 & ~7));
            return 0;
          }
          if (leaving >= 0) waiting.set(leaving, written(leaving));
          leaving = -1;
          const bytes = waiting.get(buffer) ?? captured.get(buffer);
          waiting.delete(buffer);
          if (bytes) restore(buffer, bytes);
          return 0;
        },
      },
    },
    use(exports) {
      memory = exports.memory as WebAssembly.Memory;
      unwind = exports.asyncify_start_unwind as (buffer: number) => void;
      region = memory.grow(REGION / PAGE) * PAGE;
    },
  };
}
