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
 * And what catches a longjmp leaves the stack of Ruby's C code where it was thrown: after
 * some 50,000 errors or breaks it was at its end. It restores it now.
 *
 * @module
 */

/**
 * What is written over the module of the pinned package, by its places in the file, in
 * hexadecimal. The functions that it calls are imports of the bridge to JavaScript, which
 * nothing else calls.
 */
const PATCHES: [at: number, old: string, now: string][] = [
  // The scan for garbage: it calls start_unwind.
  [
    7867202,
    "10d78b01",
    "10818000",
  ],
  // setjmp, likewise.
  [
    7867467,
    "10d78b01",
    "10818000",
  ],
  // longjmp, likewise.
  [
    7867580,
    "10d78b01",
    "108e8000",
  ],
  // The size of longjmp, which has 16 bytes less of an assertion's arguments.
  [
    7867474,
    "9e01",
    "8e01",
  ],
  // 8 go to what catches a longjmp: the stack pointer is again that of its only
  // caller, whose `try_catch` is 12 bytes above it.
  [
    7867610,
    "41c2b3920841c2f18c0841f60041f59c850810cd8a01000b1e00200020033602" +
    "0820002002360204200020013602002000410036020c0bb00101027f20014102" +
    "360294c0010240024002400240200028020c0e020001030b200028020021020c" +
    "010b20002802042202450d010b200028020820021104000b024041ac9b8b0a28" +
    "0200450d0041a89b8b0a2802002001470d00034010da8b01",
    "0101010101010101010101010101000b1e002000200336020820002002360204" +
    "200020013602002000410036020c0bb80101027f20014102360294c001024002" +
    "4002400240200028020c0e020001030b200028020021020c010b200028020422" +
    "02450d010b200028020820021104000b024041ac9b8b0a280200450d0041a89b" +
    "8b0a2802002001470d00034010da8b012000410c6b240001",
  ],
  // start_unwind, whose test of the buffer gives way to a call.
  [
    11733003,
    "004101240120002402230228020023022802044b0440000b0b",
    "00200010091a4101240120002402010101010101010101010b",
  ],
  // start_rewind, likewise.
  [
    11733051,
    "004102240120002402230228020023022802044b0440000b0b",
    "00200010061a4102240120002402010101010101010101010b",
  ],
  // The size of what runs Ruby's code until it is left, which grows by 8 bytes.
  [6893881, "f918", "8119"],
];

/** Bytes of the region; memory that is never written takes none of the machine's. */
const REGION = 16 << 20;
const PAGE = 65536;

/**
 * Where a function that runs Ruby's code (vm_exec) is left for good by an error or a
 * break, what it has to catch them is lost, 24 KiB each time. There `ruby_xfree` is called
 * for it, with the 8 bytes that this takes.
 */
const FREE = {
  at: 6896815,
  bytes: new Uint8Array([0x20, 2, 0x28, 2, 8, 0x10, 0xb0, 0x1f]),
};
/** Where the assertion's arguments were that longjmp no more has. */
const ASSERTION = 7867610;

const { fromHex } = Uint8Array as unknown as {
  fromHex(text: string): Uint8Array;
};

/** Has a module call the functions of `makeRoom`; false if it is another one. */
export function patch(module: Uint8Array): boolean {
  const known = PATCHES.every(([at, old]) =>
    fromHex(old).every((byte, i) => module[at + i] === byte)
  );
  if (!known) return false;
  for (const [at, , now] of PATCHES) module.set(fromHex(now), at);
  // What is between moves into the rest of the assertion's place.
  module.copyWithin(FREE.at + FREE.bytes.length, FREE.at, ASSERTION);
  module.set(FREE.bytes, FREE.at);
  return true;
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
