/**
 * Makes a WebAssembly module start quickly: the bodies of functions that are hardly
 * ever called become a trap, so that V8 has less to read and to check. Who runs into
 * the trap takes the whole module.
 *
 * @module
 */

const CODE = 10, IMPORTS = 2, FUNCTION = 0;
/** A body without locals: `unreachable`, `end`. */
const TRAP = [3, 0, 0x00, 0x0b];

/** Keeps the functions, counted without imports, that `keep` names. */
export function trim(
  module: Uint8Array,
  keep: (index: number) => boolean,
): Uint8Array {
  const pieces: Uint8Array[] = [];
  let taken = 0;
  for (let at = 8; at < module.length;) {
    const id = module[at]!;
    const [length, start] = leb(module, at + 1);
    const end = start + length;
    if (id === CODE) {
      const code = trimCode(module.subarray(start, end), keep);
      pieces.push(module.subarray(taken, at));
      pieces.push(Uint8Array.of(CODE, ...toLeb(size(code))));
      for (const piece of code) pieces.push(piece);
      taken = end;
    }
    at = end;
  }
  pieces.push(module.subarray(taken));
  return concat(pieces);
}

function trimCode(
  code: Uint8Array,
  keep: (index: number) => boolean,
): Uint8Array[] {
  const [count, first] = leb(code, 0);
  const trap = Uint8Array.from(TRAP);
  const pieces = [code.subarray(0, first)];
  for (let index = 0, at = first; index < count; index++) {
    const [length, start] = leb(code, at);
    const end = start + length;
    pieces.push(keep(index) ? code.subarray(at, end) : trap);
    at = end;
  }
  return pieces;
}

/** How many functions a module imports, and how many it has. */
export function countFunctions(
  module: Uint8Array,
): { imported: number; own: number } {
  let imported = 0, own = 0;
  for (let at = 8; at < module.length;) {
    const id = module[at]!;
    const [length, start] = leb(module, at + 1);
    let [count, next] = leb(module, start);
    if (id === CODE) own = count;
    for (; id === IMPORTS && count > 0; count--) {
      for (let names = 0; names < 2; names++) {
        const [size, name] = leb(module, next);
        next = name + size;
      }
      if (module[next] !== FUNCTION) {
        throw new Error("a module that imports more than functions");
      }
      next = leb(module, next + 1)[1];
      imported++;
    }
    at = start + length;
  }
  return { imported, own };
}

/** Reads a number of variable length: its value, and where it ends. */
function leb(bytes: Uint8Array, at: number): [number, number] {
  let value = 0;
  for (let shift = 0;; shift += 7) {
    const byte = bytes[at++]!;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [value >>> 0, at];
  }
}

function toLeb(value: number): number[] {
  const bytes: number[] = [];
  for (; value >= 0x80; value >>>= 7) bytes.push(value & 0x7f | 0x80);
  return [...bytes, value];
}

function size(pieces: Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0);
}

function concat(pieces: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(size(pieces));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Set bits, as base64 of their bytes: the lowest bit of the first byte is number 0. */
export class Bits {
  readonly #bytes: Uint8Array;

  constructor(readonly base64: string) {
    this.#bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  }

  static of(numbers: Iterable<number>): Bits {
    const bytes: number[] = [];
    for (const n of numbers) {
      while (bytes.length <= n >> 3) bytes.push(0);
      bytes[n >> 3]! |= 1 << (n & 7);
    }
    return new Bits(btoa(String.fromCharCode(...bytes)));
  }

  has(n: number): boolean {
    return ((this.#bytes[n >> 3] ?? 0) >> (n & 7) & 1) === 1;
  }
}
