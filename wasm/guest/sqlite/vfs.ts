/**
 * Where SQLite's files are: a database, its journals and its write-ahead log are files
 * of the program's tree; temporary ones are memory. A database that is not there yet is
 * made at the first byte that is written to it, so that a program which only reads
 * leaves nothing behind.
 *
 * Locks hold between the connections of this process alone. Nothing is forced out to the
 * disk: what is written survives this process, and that is what is promised.
 *
 * The layouts of the structures, and the numbers, are those of sqlite3.h.
 *
 * @module
 */

import {
  FileError,
  type Files,
  type OpenFile,
  type OpenOptions,
} from "../files.ts";
import { fullPath } from "../path.ts";
import type { Engine } from "./engine.ts";

const OK = 0, BUSY = 5, READONLY = 8, IOERR = 10, NOTFOUND = 12, CANTOPEN = 14;
const IOERR_READ = 266,
  IOERR_SHORT_READ = 522,
  IOERR_WRITE = 778,
  IOERR_DELETE = 2570;
const IOERR_DELETE_NOENT = 5898;
const OPEN_READONLY = 1,
  OPEN_READWRITE = 2,
  OPEN_CREATE = 4,
  OPEN_DELETEONCLOSE = 8;
const OPEN_EXCLUSIVE = 16, OPEN_MAIN_DB = 0x100, OPEN_WAL = 0x80000;
const SHARED = 1, RESERVED = 2, PENDING = 3, EXCLUSIVE = 4;
/** A write that is no longer than a sector does not harm what is beside it. */
const POWERSAFE_OVERWRITE = 0x1000;
const MOST_PATH = 1024;
/** An open file is two words: its methods, and our number for it. */
const FILE_SIZE = 8;

/** What an open database or journal is. */
interface Handle {
  path: string;
  file: OpenFile;
  /** Opens it again, if it outlives a cell. */
  reopen?: () => OpenFile;
  deleteOnClose: boolean;
  lock: number;
}

/** A file in memory. */
class Memory {
  #bytes = new Uint8Array(0);
  #size = 0;

  read(buffer: Uint8Array, at: number): number {
    const piece = this.#bytes.subarray(
      at,
      Math.min(this.#size, at + buffer.length),
    );
    buffer.set(piece);
    return piece.length;
  }
  write(bytes: Uint8Array, at: number): number {
    const end = at + bytes.length;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(
        Math.max(end, 2 * this.#bytes.length, 65536),
      );
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, at);
    this.#size = Math.max(this.#size, end);
    return bytes.length;
  }
  truncate(size: number): void {
    if (size < this.#size) this.#bytes.fill(0, size, this.#size);
    this.#size = size;
  }
  get size(): number {
    return this.#size;
  }
}

export class VFS {
  /** Whose files they are; each program sets it. */
  files!: Files;
  /** The last thing that a file refused, in words. */
  refused = "";
  /** What `/dev/stdin` and others that are no files would be is no database. */
  readonly #open = new Map<number, Handle>();
  #next = 1;
  /** The shared memory of write-ahead logs, by the database's path. */
  readonly #shared = new Map<string, { regions: number[]; users: number }>();

  constructor(private readonly engine: Engine, name: string) {
    const { engine: e } = this;
    const methods = e.malloc(19 * 4);
    const io: [string, (...args: never[]) => number | void][] = [
      ["ii", (file: number) => this.#close(file)],
      [
        "iiiji",
        (file: number, to: number, n: number, at: bigint) =>
          this.#read(file, to, n, at),
      ],
      [
        "iiiji",
        (file: number, from: number, n: number, at: bigint) =>
          this.#write(file, from, n, at),
      ],
      ["iji", (file: number, size: bigint) => this.#truncate(file, size)],
      ["iii", () => OK], // sync
      ["iii", (file: number, to: number) => this.#size(file, to)],
      ["iii", (file: number, level: number) => this.#lock(file, level)],
      ["iii", (file: number, level: number) => this.#unlock(file, level)],
      ["iii", (file: number, to: number) => this.#checkReserved(file, to)],
      ["iiii", () => NOTFOUND], // file control
      ["ii", () => 4096], // sector size
      ["ii", () => POWERSAFE_OVERWRITE],
      [
        "iiiiii",
        (
          file: number,
          region: number,
          size: number,
          extend: number,
          to: number,
        ) => this.#map(file, region, size, extend, to),
      ],
      ["iiiii", () => OK], // locks of the shared memory
      ["iv", () => {}], // barrier
      ["iii", (file: number) => this.#unmap(file)],
    ];
    e.view.setInt32(methods, 2, true);
    io.forEach(([type, call], i) => {
      e.view.setUint32(methods + 4 + 4 * i, e.callback(type, call), true);
    });
    const vfs = e.malloc(88);
    e.bytes.fill(0, vfs, vfs + 88);
    const fields: Record<number, number> = {
      0: 2,
      4: FILE_SIZE,
      8: MOST_PATH,
      16: e.putText(name),
      24: e.callback("iiiiii", (_, path, file, flags, out) => {
        return this.#openFile(methods, path, file, flags, out);
      }),
      28: e.callback("iiii", (_, path) => this.#delete(e.text(path))),
      32: e.callback(
        "iiiii",
        (_, path, flags, to) => this.#access(e.text(path), flags, to),
      ),
      36: e.callback("iiiii", (_, path, size, to) => {
        const full = new TextEncoder().encode(fullPath(e.text(path)));
        if (full.length >= size) return CANTOPEN;
        e.bytes.set(full, to);
        e.bytes[to + full.length] = 0;
        return OK;
      }),
      56: e.callback("iiii", (_, n, to) => {
        crypto.getRandomValues(e.bytes.subarray(to, to + n));
        return n;
      }),
      60: e.callback("iii", (_, microseconds) => {
        // Only a lock within this process is waited for, which time does not open.
        return microseconds;
      }),
      64: e.callback("iii", (_, to) => {
        e.view.setFloat64(to, Date.now() / 86_400_000 + 2440587.5, true);
        return OK;
      }),
      68: e.callback("iiii", () => 0),
      72: e.callback("iii", (_, to) => {
        // Milliseconds since noon in Greenwich on November 24, 4714 B.C.
        e.view.setBigInt64(to, BigInt(Date.now()) + 210866760000000n, true);
        return OK;
      }),
    };
    for (const [at, value] of Object.entries(fields)) {
      e.view.setUint32(vfs + Number(at), value, true);
    }
    if (e.call.sqlite3_vfs_register!(vfs, 1) !== OK) {
      throw new Error("Cannot register the VFS");
    }
  }

  /**
   * Forgets what was known of files, which another process may have changed or put others
   * in the place of. SQLite reads a log anew where its index has no valid head, and a
   * database whose counter of changes is another.
   */
  forget(): void {
    for (const handle of this.#open.values()) {
      if (!handle.reopen) continue;
      handle.file.close();
      handle.file = handle.reopen();
    }
    for (const { regions } of this.#shared.values()) {
      for (const at of regions) this.engine.bytes.fill(0, at, at + 136);
    }
  }

  #handle(file: number): Handle {
    return this.#open.get(this.engine.view.getUint32(file + 4, true))!;
  }

  #openFile(
    methods: number,
    path: number,
    file: number,
    flags: number,
    out: number,
  ): number {
    const { engine: e } = this;
    e.view.setUint32(file, 0, true); // nothing to close, should this fail
    const name = path === 0 ? "" : e.text(path);
    const wanted: OpenOptions = {
      read: true,
      write: (flags & OPEN_READWRITE) !== 0,
      create: (flags & OPEN_CREATE) !== 0,
      exclusive: (flags & OPEN_EXCLUSIVE) !== 0,
    };
    let opened: OpenFile;
    try {
      if (name === "") opened = inMemory();
      else if ((flags & OPEN_MAIN_DB) !== 0) {
        opened = this.#database(name, wanted);
      } else opened = this.files.open(name, wanted);
    } catch (error) {
      if (!wanted.write || !isRefusal(error)) {
        return this.#refuse(error, CANTOPEN);
      }
      try {
        opened = this.files.open(name, { read: true });
      } catch (error) {
        return this.#refuse(error, CANTOPEN);
      }
      flags = flags & ~(OPEN_READWRITE | OPEN_CREATE) | OPEN_READONLY;
    }
    const lasting = name !== "" && (flags & (OPEN_MAIN_DB | OPEN_WAL)) !== 0;
    const again = {
      ...wanted,
      write: (flags & OPEN_READWRITE) !== 0,
      exclusive: false,
    };
    const id = this.#next++;
    this.#open.set(id, {
      path: name,
      file: opened,
      reopen: !lasting
        ? undefined
        : (flags & OPEN_MAIN_DB) !== 0
        ? () => this.#database(name, again)
        : () => this.files.open(name, again),
      deleteOnClose: name !== "" && (flags & OPEN_DELETEONCLOSE) !== 0,
      lock: 0,
    });
    e.view.setUint32(file, methods, true);
    e.view.setUint32(file + 4, id, true);
    if (out !== 0) e.view.setInt32(out, flags, true);
    return OK;
  }

  /** A database, which is made when it is first written. */
  #database(path: string, wanted: OpenOptions): OpenFile {
    try {
      const { kind } = this.files.stat(path);
      if (kind !== "file") throw new FileError("EISDIR", path);
      return this.files.open(path, { read: true, write: wanted.write });
    } catch (error) {
      if (
        !(error instanceof FileError && error.code === "ENOENT" &&
          wanted.create)
      ) throw error;
    }
    // The directory must be there, or the error comes late and with the wrong words.
    this.files.stat(path.slice(0, path.lastIndexOf("/")) || "/");
    let made: OpenFile | undefined;
    const existing = () => {
      if (made) return made;
      try {
        // Another connection, or another process, may have made it since.
        made = this.files.open(path, { read: true, write: true });
      } catch (error) {
        if (!(error instanceof FileError && error.code === "ENOENT")) {
          throw error;
        }
      }
      return made;
    };
    const make = () =>
      made ??= this.files.open(path, { read: true, write: true, create: true });
    return {
      read: (buffer, at) => existing()?.read(buffer, at) ?? 0,
      write: (bytes, at) => make().write(bytes, at),
      stat: () => existing()?.stat() ?? NO_FILE,
      truncate: (size) => existing()?.truncate(size),
      setTimes() {},
      sync() {},
      close: () => made?.close(),
    };
  }

  #close(file: number): number {
    const id = this.engine.view.getUint32(file + 4, true);
    const handle = this.#open.get(id);
    if (!handle) return OK;
    this.#open.delete(id);
    try {
      handle.file.close();
      if (handle.deleteOnClose) this.files.unlink(handle.path);
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return OK;
      return this.#refuse(error, IOERR);
    }
    return OK;
  }

  #read(file: number, to: number, n: number, at: bigint): number {
    const buffer = this.engine.bytes.subarray(to, to + n);
    let got = 0;
    try {
      const { file: open } = this.#handle(file);
      while (got < n) {
        const more = open.read(buffer.subarray(got), Number(at) + got);
        if (more === 0) break;
        got += more;
      }
    } catch (error) {
      return this.#refuse(error, IOERR_READ);
    }
    if (got === n) return OK;
    buffer.fill(0, got);
    return IOERR_SHORT_READ;
  }

  #write(file: number, from: number, n: number, at: bigint): number {
    const bytes = this.engine.bytes.subarray(from, from + n);
    try {
      const { file: open } = this.#handle(file);
      for (let written = 0; written < n;) {
        written += open.write(bytes.subarray(written), Number(at) + written);
      }
    } catch (error) {
      return this.#refuse(error, isRefusal(error) ? READONLY : IOERR_WRITE);
    }
    return OK;
  }

  #truncate(file: number, size: bigint): number {
    try {
      this.#handle(file).file.truncate(Number(size));
      return OK;
    } catch (error) {
      return this.#refuse(error, IOERR_WRITE);
    }
  }

  #size(file: number, to: number): number {
    try {
      this.engine.view.setBigInt64(
        to,
        BigInt(this.#handle(file).file.stat().size),
        true,
      );
      return OK;
    } catch (error) {
      return this.#refuse(error, IOERR);
    }
  }

  #lock(file: number, level: number): number {
    const mine = this.#handle(file);
    if (mine.lock >= level) return OK;
    const others = [...this.#open.values()].filter((h) =>
      h !== mine && h.path === mine.path
    )
      .map((h) => h.lock);
    const highest = Math.max(0, ...others);
    if (highest >= (level === SHARED ? PENDING : RESERVED)) return BUSY;
    if (level === EXCLUSIVE && highest >= SHARED) {
      mine.lock = PENDING;
      return BUSY;
    }
    mine.lock = level;
    return OK;
  }

  #unlock(file: number, level: number): number {
    const mine = this.#handle(file);
    mine.lock = Math.min(mine.lock, level);
    return OK;
  }

  #checkReserved(file: number, to: number): number {
    const { path } = this.#handle(file);
    const reserved = [...this.#open.values()].some((h) =>
      h.path === path && h.lock >= RESERVED
    );
    this.engine.view.setInt32(to, reserved ? 1 : 0, true);
    return OK;
  }

  #map(
    file: number,
    region: number,
    size: number,
    extend: number,
    to: number,
  ): number {
    const { engine: e } = this;
    const { path } = this.#handle(file);
    let shared = this.#shared.get(path);
    if (!shared) this.#shared.set(path, shared = { regions: [], users: 0 });
    while (shared.regions.length <= region && extend !== 0) {
      const at = e.malloc(size);
      e.bytes.fill(0, at, at + size);
      shared.regions.push(at);
    }
    e.view.setUint32(to, shared.regions[region] ?? 0, true);
    return OK;
  }

  #unmap(file: number): number {
    const { path } = this.#handle(file);
    const others =
      [...this.#open.values()].filter((h) => h.path === path).length;
    if (others <= 1) {
      for (const at of this.#shared.get(path)?.regions ?? []) {
        this.engine.call.free!(at);
      }
      this.#shared.delete(path);
    }
    return OK;
  }

  #delete(path: string): number {
    try {
      this.files.unlink(path);
      return OK;
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") {
        return IOERR_DELETE_NOENT;
      }
      return this.#refuse(error, IOERR_DELETE);
    }
  }

  #access(path: string, flags: number, to: number): number {
    let there = false;
    try {
      const { kind, size } = this.files.stat(path);
      // An empty journal is as none.
      there = flags !== 0 || kind !== "file" || size > 0;
    } catch {
      // It is not there, or it is not to be seen.
    }
    this.engine.view.setInt32(to, there ? 1 : 0, true);
    return OK;
  }

  #refuse(error: unknown, code: number): number {
    if (!(error instanceof FileError)) throw error;
    this.refused = error.message;
    return code;
  }
}

const NO_FILE = {
  kind: "file",
  size: 0,
  mtime: 0,
  atime: 0,
  mode: 0o644,
  ino: 0,
  dev: 0,
  nlink: 0,
} as const;

function inMemory(): OpenFile {
  const memory = new Memory();
  return {
    read: (buffer, at) => memory.read(buffer, at),
    write: (bytes, at) => memory.write(bytes, at),
    stat: () => ({ ...NO_FILE, size: memory.size }),
    truncate: (size) => memory.truncate(size),
    setTimes() {},
    sync() {},
    close() {},
  };
}

/** Whether a file may be read, and only that. */
function isRefusal(error: unknown): boolean {
  return error instanceof FileError &&
    ["EROFS", "EACCES", "EPERM"].includes(error.code);
}
