/**
 * Which line of a source an instruction of a WebAssembly module comes from: the
 * module's `.debug_line` section, in version 4 of DWARF, becomes a table.
 *
 * https://dwarfstd.org/doc/DWARF4.pdf, section 6.2; addresses are offsets in the code
 * section: https://yurydelendik.github.io/webassembly-dwarf/
 *
 * @module
 */

export interface Line {
  file: string;
  line: number;
}

interface Row extends Line {
  /** Offset in the code section. */
  address: number;
  /** The rows of one sequence belong together; this one ends it. */
  end: boolean;
}

const CODE = 10, CUSTOM = 0;
const decoder = new TextDecoder();

class Reader {
  readonly #view: DataView;
  constructor(readonly bytes: Uint8Array, public at = 0) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }
  get done(): boolean {
    return this.at >= this.bytes.length;
  }
  u8(): number {
    return this.#view.getUint8(this.at++);
  }
  i8(): number {
    return this.#view.getInt8(this.at++);
  }
  u16(): number {
    this.at += 2;
    return this.#view.getUint16(this.at - 2, true);
  }
  u32(): number {
    this.at += 4;
    return this.#view.getUint32(this.at - 4, true);
  }
  /** A number of variable length, as far as it fits in 32 bits. */
  leb(): number {
    let value = 0;
    for (let shift = 0;; shift += 7) {
      const byte = this.u8();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }
  signedLeb(): number {
    let value = 0;
    for (let shift = 0;;) {
      const byte = this.u8();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      shift += 7;
      if (byte < 0x80) {
        return shift < 32 && byte & 0x40 ? value | (-1 << shift) : value;
      }
    }
  }
  string(): string {
    const end = this.bytes.indexOf(0, this.at);
    if (end < 0) throw new RangeError("a string without an end");
    const text = decoder.decode(this.bytes.subarray(this.at, end));
    this.at = end + 1;
    return text;
  }
}

/** The lines of a module; a module without them, or with others, has none. */
export class Lines {
  #rows: Row[] = [];
  #code = 0;

  constructor(module: Uint8Array) {
    try {
      const debug = this.#sections(module);
      if (debug) this.#read(debug);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#rows = [];
    }
    this.#rows.sort((a, b) =>
      a.address - b.address || Number(b.end) - Number(a.end)
    );
  }

  #sections(module: Uint8Array): Uint8Array | undefined {
    let debug: Uint8Array | undefined;
    for (const reader = new Reader(module, 8); !reader.done;) {
      const id = reader.u8(), length = reader.leb(), start = reader.at;
      if (id === CODE) this.#code = start;
      if (id === CUSTOM) {
        const size = reader.leb();
        const name = decoder.decode(
          module.subarray(reader.at, reader.at + size),
        );
        if (name === ".debug_line") {
          debug = module.subarray(reader.at + size, start + length);
        }
      }
      reader.at = start + length;
    }
    return debug;
  }

  #read(section: Uint8Array): void {
    for (let at = 0; at < section.length;) {
      const length = new Reader(section, at).u32();
      this.#unit(new Reader(section.subarray(at + 4, at + 4 + length)));
      at += 4 + length;
    }
  }

  #unit(unit: Reader): void {
    if (unit.u16() !== 4) return;
    const header = unit.u32(), program = unit.at + header;
    const step = unit.u8();
    unit.at += 2; // operations of an instruction, and whether lines begin statements
    const base = unit.i8(), range = unit.u8(), opcodes = unit.u8();
    const lengths = Array.from({ length: opcodes - 1 }, () => unit.u8());
    const directories = ["/workspace"], files = [""];
    for (let name; (name = unit.string()) !== "";) directories.push(name);
    for (let name; (name = unit.string()) !== "";) {
      const directory = directories[unit.leb()] ?? "";
      files.push(name.startsWith("/") ? name : `${directory}/${name}`);
      unit.leb();
      unit.leb();
    }
    unit.at = program;
    let address = 0, file = 1, line = 1;
    const reset = () => [address, file, line] = [0, 1, 1];
    const row = (end = false) =>
      this.#rows.push({ address, file: files[file] ?? "?", line, end });
    while (!unit.done) {
      const opcode = unit.u8();
      if (opcode >= opcodes) {
        const by = opcode - opcodes;
        address += Math.floor(by / range) * step;
        line += base + by % range;
        row();
        continue;
      }
      switch (opcode) {
        case 0: {
          const length = unit.leb(),
            next = unit.at + length,
            extended = unit.u8();
          if (extended === 1) {
            row(true);
            reset();
          } else if (extended === 2) {
            address = unit.u32();
          }
          unit.at = next;
          break;
        }
        case 1:
          row();
          break;
        case 2:
          address += unit.leb() * step;
          break;
        case 3:
          line += unit.signedLeb();
          break;
        case 4:
          file = unit.leb();
          break;
        case 8:
          address += Math.floor((255 - opcodes) / range) * step;
          break;
        case 9:
          address += unit.u16();
          break;
        default:
          for (let n = lengths[opcode - 1] ?? 0; n > 0; n--) unit.leb();
      }
    }
  }

  /**
   * The line of an instruction, by its offset in the module. Of what was inlined from the
   * libraries' headers it is the program's line before it.
   */
  at(offset: number): Line | undefined {
    const address = offset - this.#code;
    let low = 0, high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#rows[middle]!.address <= address) low = middle + 1;
      else high = middle;
    }
    for (let i = low - 1; i >= 0 && !this.#rows[i]!.end; i--) {
      const { file, line } = this.#rows[i]!;
      if (line > 0 && !file.startsWith("/usr/")) return { file, line };
    }
    return undefined;
  }
}
