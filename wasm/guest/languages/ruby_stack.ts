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
 * Buffers of fibers stay as they are, for Ruby looks for objects in them.
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
  // start_rewind, whose test of the buffer gives way to a call
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
  /** The buffer that is being written. */
  let pending = -1;
  /** What those have who may come back, the deepest last. */
  const captured = new Map<number, Uint8Array>();

  function move(buffer: number): void {
    const view = new DataView(memory.buffer);
    view.setUint32(buffer, region, true);
    view.setUint32(buffer + 4, region + REGION, true);
    unwind(buffer);
  }

  return {
    imports: {
      canonical_abi: {
        // In place of the start of an unwinding that comes back to where it is.
        "resource_drop_js-abi-value"(buffer: number) {
          pending = buffer >>> 0;
          move(pending);
        },
      },
      "rb-js-abi-host": {
        // In place of the start of one that goes elsewhere: what it writes is not read.
        "export-js-value-to-host: func(value: handle<js-abi-value>) -> ()"(
          buffer: number,
        ) {
          pending = -1;
          move(buffer >>> 0);
        },
        // Before functions are entered again.
        "int-to-js-number: func(value: s32) -> handle<js-abi-value>"(
          given: number,
        ) {
          const buffer = given >>> 0;
          const view = new DataView(memory.buffer);
          if (buffer === pending) {
            pending = -1;
            const end = view.getUint32(buffer, true);
            if (end < region || end > region + REGION) {
              throw new RangeError("overflow");
            }
            // Ruby looks for objects up to the end.
            view.setUint32(buffer + 4, end, true);
            const bytes = new Uint8Array(memory.buffer, region, end - region)
              .slice();
            captured.delete(buffer);
            captured.set(buffer, bytes);
            return 0;
          }
          const bytes = captured.get(buffer);
          if (!bytes) return 0; // a fiber's
          new Uint8Array(memory.buffer, region, bytes.length).set(bytes);
          view.setUint32(buffer, region + bytes.length, true);
          view.setUint32(buffer + 4, region + bytes.length, true);
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
