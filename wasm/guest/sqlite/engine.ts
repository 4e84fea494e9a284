/**
 * SQLite as WebAssembly: its module, called as C calls it. Of what the package has, only
 * `sqlite3.wasm` is used; what the module asks of the system is answered here (the time)
 * or refused, since files come to it through a VFS of our own (vfs.ts).
 *
 * @module
 */

// deno-lint-ignore no-explicit-any
type Exports = Record<string, (...args: any[]) => any>;

/** How the module grows: pages of 64 KiB, as it was built. */
const FIRST_PAGES = 128, MOST_PAGES = 32768;
/** What a call of the system's is answered with that is not there (-ENOSYS). */
const NO_CALL = -52;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Engine {
  readonly call: Exports;
  readonly #memory: WebAssembly.Memory;
  readonly #table: WebAssembly.Table;
  #bytes: Uint8Array;
  #view: DataView;

  constructor(module: WebAssembly.Module) {
    this.#memory = new WebAssembly.Memory({
      initial: FIRST_PAGES,
      maximum: MOST_PAGES,
    });
    this.#bytes = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
    const imports: WebAssembly.Imports = {};
    for (
      const { module: from, name, kind } of WebAssembly.Module.imports(module)
    ) {
      const known = (this.#system as Record<string, unknown>)[name];
      (imports[from] ??= {})[name] = (kind === "memory"
        ? this.#memory
        : known ?? (() =>
          NO_CALL)) as WebAssembly.ImportValue;
    }
    const { exports } = new WebAssembly.Instance(module, imports);
    this.call = exports as Exports;
    this.#table = exports.__indirect_function_table as WebAssembly.Table;
    this.call.__wasm_call_ctors!();
  }

  /** The module's memory, until something is allocated. */
  get bytes(): Uint8Array {
    if (this.#bytes.buffer !== this.#memory.buffer) {
      this.#bytes = new Uint8Array(this.#memory.buffer);
    }
    return this.#bytes;
  }

  get view(): DataView {
    if (this.#view.buffer !== this.#memory.buffer) {
      this.#view = new DataView(this.#memory.buffer);
    }
    return this.#view;
  }

  malloc(size: number): number {
    const at = this.call.malloc!(size) >>> 0;
    if (at === 0 && size > 0) throw new RangeError("out of memory");
    return at;
  }

  /** Puts bytes into the module's memory, with a zero after them. */
  put(bytes: Uint8Array): number {
    const at = this.malloc(bytes.length + 1);
    this.bytes.set(bytes, at);
    this.bytes[at + bytes.length] = 0;
    return at;
  }

  putText(text: string): number {
    return this.put(encoder.encode(text));
  }

  /** Calls with a text that is there as long as the call. */
  withText<T>(text: string, call: (at: number) => T): T {
    const at = this.putText(text);
    try {
      return call(at);
    } finally {
      this.call.free!(at);
    }
  }

  /** A text that ends with a zero. */
  text(at: number): string {
    at >>>= 0;
    if (at === 0) return "";
    return decoder.decode(this.bytes.subarray(at, this.bytes.indexOf(0, at)));
  }

  textOf(at: number, length: number): string {
    return decoder.decode(this.bytes.subarray(at >>> 0, (at >>> 0) + length));
  }

  copy(at: number, length: number): Uint8Array {
    return this.bytes.slice(at >>> 0, (at >>> 0) + length);
  }

  /**
   * A pointer to a function of ours, for the module to call. Its type is a letter for
   * each argument and the result: i for 32 bits, j for 64, d for a double, v for nothing.
   */
  // deno-lint-ignore no-explicit-any
  callback(type: string, call: (...args: any[]) => any): number {
    const index = this.#table.grow(1);
    this.#table.set(index, wasmFunction(type, call) as never);
    return index;
  }

  readonly #system = {
    emscripten_date_now: () => Date.now(),
    emscripten_get_now: () => performance.now(),
    clock_time_get: (_clock: number, _precision: bigint, at: number) => {
      this.view.setBigInt64(at, BigInt(Date.now()) * 1_000_000n, true);
      return 0;
    },
    environ_sizes_get: (count: number, size: number) => {
      this.view.setUint32(count, 0, true);
      this.view.setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    emscripten_get_heap_max: () => MOST_PAGES * 65536,
    emscripten_resize_heap: (size: number) => {
      const pages = Math.ceil(
        ((size >>> 0) - this.#memory.buffer.byteLength) / 65536,
      );
      try {
        this.#memory.grow(pages);
        return 1;
      } catch {
        return 0;
      }
    },
    _tzset_js: () => {},
    _localtime_js: (time: bigint, at: number) => {
      const date = new Date(Number(time) * 1000);
      const newYear = new Date(date.getFullYear(), 0, 1);
      const day = Math.round(
        (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) -
          Date.UTC(newYear.getFullYear(), 0, 1)) / 86_400_000,
      );
      [
        date.getSeconds(),
        date.getMinutes(),
        date.getHours(),
        date.getDate(),
        date.getMonth(),
        date.getFullYear() - 1900,
        date.getDay(),
        day,
        0,
        -date.getTimezoneOffset() * 60,
      ].forEach((field, i) => this.view.setInt32(at + 4 * i, field, true));
    },
  };
}

const TYPES: Record<string, number> = { i: 0x7f, j: 0x7e, d: 0x7c };

/** Only a function of a module can be called from a table: this makes a module of one. */
// deno-lint-ignore no-explicit-any
function wasmFunction(type: string, call: (...args: any[]) => any): unknown {
  const args = [...type.slice(0, -1)].map((letter) => TYPES[letter]!);
  const result = type.at(-1) === "v" ? [] : [TYPES[type.at(-1)!]!];
  const signature = [0x60, args.length, ...args, result.length, ...result];
  const section = (id: number, body: number[]) => [id, body.length, ...body];
  const module = new WebAssembly.Module(
    new Uint8Array([
      ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(1, [1, ...signature]),
      ...section(2, [1, 1, 0x6d, 1, 0x66, 0, 0]), // imports m.f of type 0
      ...section(7, [1, 1, 0x66, 0, 0]), // exports it as f
    ]),
  );
  return new WebAssembly.Instance(module, { m: { f: call } }).exports.f;
}
