/**
 * WASI preview 1 for a program that a language's process runs: files come from Files,
 * standard input, output and error from Host. The program gives every number that comes
 * in here, so all addresses and lengths are looked at (EFAULT), and nothing is allocated
 * by the program's word alone.
 *
 * https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
 *
 * @module
 */

import { codeOf } from "../../deno/guest/hostfile.ts";
import {
  FileError,
  type Files,
  fillRandom,
  type Kind,
  type OpenFile,
  type Stat,
} from "./files.ts";
import { Exit } from "./language.ts";

export interface Options {
  /** The program's name, and its arguments. */
  argv: string[];
  env?: Record<string, string>;
  host: {
    files: Files;
    read(buffer: Uint8Array): number;
    stdout(bytes: Uint8Array): void;
    stderr(bytes: Uint8Array): void;
  };
  /**
   * The directories that are open at the start, from descriptor 3 on: the name that the
   * program has for each → its path. `/` if nothing is said.
   */
  preopens?: Record<string, string>;
  /** Standard output and error are a terminal, so that C's library writes line after line. */
  terminal?: boolean;
  /** Imports beside those of WASI. */
  imports?: WebAssembly.Imports;
}

export interface Instance {
  instance: WebAssembly.Instance;
  /** Runs `_start`, and gives the exit code. */
  start(): number;
}

/** Makes an instance of a program for WASI; its memory is what it exports as `memory`. */
export async function instantiate(
  module: WebAssembly.Module,
  options: Options,
): Promise<Instance> {
  const wasi = makeWasi(options);
  const instance = await WebAssembly.instantiate(module, {
    ...options.imports,
    wasi_snapshot_preview1: wasi.imports,
  });
  wasi.use(instance.exports.memory as WebAssembly.Memory);
  return {
    instance,
    start: () => exitCode(instance.exports._start as () => void),
  };
}

/** Runs a part of a program that may exit; 0 if it does not. */
export function exitCode(run: () => void): number {
  try {
    run();
  } catch (error) {
    if (error instanceof Exit) return error.code;
    throw error;
  }
  return 0;
}

export interface Wasi {
  imports: Record<string, (...args: never[]) => number>;
  /** Says which memory is the program's, before any import is called. */
  use(memory: WebAssembly.Memory): void;
}

/** The numbers of errors. */
const ERRNO: Record<string, number> = Object.fromEntries(
  `SUCCESS E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF
  EBADMSG EBUSY ECANCELED ECHILD ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK
  EDESTADDRREQ EDOM EDQUOT EEXIST EFAULT EFBIG EHOSTUNREACH EIDRM EILSEQ EINPROGRESS
  EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG
  ENETDOWN ENETRESET ENETUNREACH ENFILE ENOBUFS ENODEV ENOENT ENOEXEC ENOLCK ENOLINK
  ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTRECOVERABLE
  ENOTSOCK ENOTSUP ENOTTY ENXIO EOVERFLOW EOWNERDEAD EPERM EPIPE EPROTO
  EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESPIPE ESRCH ESTALE ETIMEDOUT ETXTBSY EXDEV
  ENOTCAPABLE`.split(/\s+/).map((name, number) => [name, number]),
);
ERRNO.EOPNOTSUPP = ERRNO.ENOTSUP!;

const FILETYPE: Record<Kind, number> = {
  device: 2,
  directory: 3,
  file: 4,
  symlink: 7,
};

// Rights, of which only those are told apart that programs look at.
const FD_READ = 1n << 1n, FD_SEEK = 1n << 2n, FD_TELL = 1n << 5n;
const FD_WRITE = 1n << 6n, FD_ALLOCATE = 1n << 8n, FD_SET_SIZE = 1n << 22n;
const ALL_RIGHTS = (1n << 30n) - 1n;

const APPEND = 1, ALL_FLAGS = 31;
const O_CREAT = 1, O_DIRECTORY = 2, O_EXCL = 4, O_TRUNC = 8;
const FOLLOW = 1;
const ATIM = 1, ATIM_NOW = 2, MTIM = 4, MTIM_NOW = 8;
const REALTIME = 0;
const ABSTIME = 1;
const EVENT_CLOCK = 0;

/** Bounds, as Linux has them: descriptors, and pieces of one read or write. */
const MOST_FILES = 4096, MOST_PIECES = 1024;
/** Pieces of a write to a pipe are joined up to so many bytes, so that they stay together. */
const MOST_JOINED = 1 << 20;
const LONGEST_PATH = 4096;
const MILLION = 1_000_000n;

/** What a descriptor stands for. */
interface Descriptor {
  /** 0, 1 and 2 stand for standard input, output and error. */
  standard?: number;
  file?: OpenFile;
  /** A directory's path. */
  path?: string;
  /** Of a directory that was open at the start: the program's name for it. */
  preopen?: Uint8Array;
  /** The directory as it was when the program began to read it. */
  entries?: { name: Uint8Array; kind: Kind; path: string }[];
  rights: bigint;
  inheriting: bigint;
  flags: number;
  position: number;
}

// Taken before a guest's code runs, which may replace them.
const now = Date.now;
const ticks = performance.now.bind(performance);
const wait = Atomics.wait;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const started = ticks();
let origin = performance.timeOrigin;

/** Nanoseconds since 1970: as fine as the steady clock, and right if the clock is set. */
function realtime(): bigint {
  const coarse = now();
  const fine = origin + ticks();
  if (fine < coarse - 1 || fine > coarse + 2) origin += coarse - fine;
  return BigInt(Math.round((origin + ticks()) * 1000)) * 1000n;
}

function monotonic(): bigint {
  return BigInt(Math.round((ticks() - started) * 1000)) * 1000n + MILLION;
}

/** Stops the whole process for so many milliseconds. */
export function sleep(milliseconds: number): void {
  if (!(milliseconds > 0)) return;
  wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

function fail(code: string): never {
  throw new FileError(code);
}

export function makeWasi(options: Options): Wasi {
  const { host } = options;
  const encodeAll = (texts: string[]) =>
    texts.map((text) => encoder.encode(`${text.replaceAll("\0", "")}\0`));
  const argv = encodeAll(options.argv);
  const environ = encodeAll(
    Object.entries(options.env ?? {}).map(([name, value]) =>
      `${name}=${value}`
    ),
  );
  let memory: WebAssembly.Memory;
  let view: DataView = new DataView(new ArrayBuffer(0));
  /** Descriptors by their numbers. */
  const open: (Descriptor | undefined)[] = [];
  const streamRights = options.terminal
    ? ALL_RIGHTS & ~(FD_SEEK | FD_TELL)
    : ALL_RIGHTS;
  for (const standard of [0, 1, 2]) {
    // A device that can't be sought in is a terminal for C's library.
    const rights = standard === 0 ? ALL_RIGHTS : streamRights;
    open.push({ standard, rights, inheriting: 0n, flags: 0, position: 0 });
  }
  for (const [name, path] of Object.entries(options.preopens ?? { "/": "/" })) {
    open.push({
      path,
      preopen: encoder.encode(name),
      rights: ALL_RIGHTS,
      inheriting: ALL_RIGHTS,
      flags: 0,
      position: 0,
    });
  }

  /** The program's memory as it is now: it grows, and is another buffer then. */
  function data(): DataView {
    if (view.buffer !== memory.buffer) view = new DataView(memory.buffer);
    return view;
  }

  /** A place in memory, which comes as a signed number, if so many bytes are there. */
  function place(address: number, length: number): number {
    address >>>= 0;
    if (address + length > data().byteLength) fail("EFAULT");
    return address;
  }

  function bytes(address: number, length: number): Uint8Array {
    length >>>= 0;
    return new Uint8Array(memory.buffer, place(address, length), length);
  }

  const get32 = (at: number) => data().getUint32(place(at, 4), true);
  const set32 = (at: number, value: number) =>
    data().setUint32(place(at, 4), value, true);
  const set64 = (at: number, value: bigint) =>
    data().setBigUint64(place(at, 8), value, true);

  function text(address: number, length: number): string {
    if (length >>> 0 > LONGEST_PATH) fail("ENAMETOOLONG");
    try {
      return decoder.decode(bytes(address, length).slice());
    } catch (error) {
      if (error instanceof FileError) throw error;
      return fail("EILSEQ");
    }
  }

  function descriptor(fd: number): Descriptor {
    return open[fd >>> 0] ?? fail("EBADF");
  }

  function fileOf(fd: number): Descriptor & { file: OpenFile } {
    const it = descriptor(fd);
    if (it.path !== undefined) fail("EISDIR");
    if (!it.file) fail("ESPIPE");
    return it as Descriptor & { file: OpenFile };
  }

  /** A path of the program's, which begins at an open directory. */
  function pathAt(fd: number, address: number, length: number): string {
    const { path } = descriptor(fd);
    if (path === undefined) return fail("ENOTDIR");
    const name = text(address, length);
    if (name === "") fail("ENOENT");
    return name.startsWith("/") ? name : `${path === "/" ? "" : path}/${name}`;
  }

  function add(it: Descriptor): number {
    let fd = 0;
    while (open[fd]) fd++;
    if (fd >= MOST_FILES) fail("EMFILE");
    open[fd] = it;
    return fd;
  }

  function* pieces(address: number, count: number): Generator<Uint8Array> {
    count >>>= 0;
    if (count > MOST_PIECES) fail("EINVAL");
    address = place(address, 8 * count);
    for (let i = 0; i < count; i++) {
      yield bytes(get32(address + 8 * i), get32(address + 8 * i + 4));
    }
  }

  function positionOf(offset: bigint): number {
    if (offset < 0n || offset > BigInt(Number.MAX_SAFE_INTEGER)) fail("EINVAL");
    return Number(offset);
  }

  function standardRead(address: number, count: number): number {
    // One read, as the stream gives no more than is there.
    for (const piece of pieces(address, count)) {
      if (piece.length > 0) return host.read(piece);
    }
    return 0;
  }

  function standardWrite(
    standard: number,
    address: number,
    count: number,
  ): number {
    const write = standard === 1 ? host.stdout : host.stderr;
    const parts = [...pieces(address, count)].filter((piece) =>
      piece.length > 0
    );
    const total = parts.reduce((sum, piece) => sum + piece.length, 0);
    if (parts.length > 1 && total <= MOST_JOINED) {
      const joined = new Uint8Array(total);
      let at = 0;
      for (const part of parts) {
        joined.set(part, at);
        at += part.length;
      }
      write(joined);
    } else {
      for (const part of parts) write(part);
    }
    if (total > 0xffff_ffff) fail("EINVAL");
    return total;
  }

  function readAt(
    file: OpenFile,
    address: number,
    count: number,
    at: number,
  ): number {
    let total = 0;
    for (const piece of pieces(address, count)) {
      if (piece.length === 0) continue;
      const n = file.read(piece, at + total);
      total += n;
      if (n < piece.length) break;
    }
    return total;
  }

  function writeAt(
    file: OpenFile,
    address: number,
    count: number,
    at: number,
  ): number {
    let total = 0;
    for (const piece of pieces(address, count)) {
      for (let left = piece; left.length > 0;) {
        let n: number;
        try {
          n = file.write(left, at + total);
        } catch (error) {
          // What was written was written; the next write tells of the error.
          if (total > 0 && error instanceof FileError) return total;
          throw error;
        }
        total += n;
        left = left.subarray(n);
      }
    }
    return total;
  }

  function putStat(address: number, stat: Stat): void {
    const at = place(address, 64);
    const nanoseconds = (ms: number) =>
      ms > 0 ? BigInt(Math.round(ms * 1000)) * 1000n : 0n;
    const out = data();
    bytes(at, 64).fill(0);
    out.setBigUint64(at, BigInt(stat.dev), true);
    out.setBigUint64(at + 8, BigInt(stat.ino), true);
    out.setUint8(at + 16, FILETYPE[stat.kind]);
    out.setBigUint64(at + 24, BigInt(stat.nlink), true);
    out.setBigUint64(at + 32, BigInt(stat.size), true);
    out.setBigUint64(at + 40, nanoseconds(stat.atime), true);
    out.setBigUint64(at + 48, nanoseconds(stat.mtime), true);
    out.setBigUint64(at + 56, nanoseconds(stat.mtime), true);
  }

  /** The times that a file gets, in milliseconds. */
  function times(
    stat: () => Stat,
    atime: bigint,
    mtime: bigint,
    flags: number,
  ): [number, number] {
    const both = (a: number, b: number) =>
      (flags & a) !== 0 && (flags & b) !== 0;
    if (both(ATIM, ATIM_NOW) || both(MTIM, MTIM_NOW)) fail("EINVAL");
    const chosen = (
      given: bigint,
      set: number,
      setNow: number,
      old: "atime" | "mtime",
    ) =>
      flags & set
        ? Number(BigInt.asUintN(64, given) / MILLION)
        : flags & setNow
        ? now()
        : stat()[old];
    return [
      chosen(atime, ATIM, ATIM_NOW, "atime"),
      chosen(mtime, MTIM, MTIM_NOW, "mtime"),
    ];
  }

  function putAll(list: Uint8Array[], pointers: number, buffer: number): void {
    pointers = place(pointers, 4 * list.length);
    let at = place(buffer, list.reduce((sum, item) => sum + item.length, 0));
    for (const [i, item] of list.entries()) {
      set32(pointers + 4 * i, at);
      bytes(at, item.length).set(item);
      at += item.length;
    }
  }

  function putSizes(list: Uint8Array[], count: number, size: number): void {
    set32(count, list.length);
    set32(size, list.reduce((sum, item) => sum + item.length, 0));
  }

  const statOfStream = (standard: number): Stat => {
    const time = now();
    return {
      kind: "device",
      size: 0,
      mtime: time,
      atime: time,
      mode: 0o600,
      dev: 0,
      ino: 0x7fff_ff00 + standard,
      nlink: 1,
    };
  };

  function statOf(fd: number): Stat {
    const it = descriptor(fd);
    if (it.standard !== undefined) return statOfStream(it.standard);
    return it.file ? it.file.stat() : host.files.stat(it.path!);
  }

  const functions = {
    args_get: (pointers: number, buffer: number) =>
      putAll(argv, pointers, buffer),
    args_sizes_get: (count: number, size: number) =>
      putSizes(argv, count, size),
    environ_get: (pointers: number, buffer: number) =>
      putAll(environ, pointers, buffer),
    environ_sizes_get: (count: number, size: number) =>
      putSizes(environ, count, size),

    clock_res_get(id: number, address: number) {
      if (id >>> 0 > 3) fail("EINVAL");
      set64(address, id === REALTIME ? MILLION : 1000n);
    },

    clock_time_get(id: number, _precision: bigint, address: number) {
      if (id >>> 0 > 3) fail("EINVAL");
      // What the processor was used is not told; the process's time comes near it.
      set64(address, id === REALTIME ? realtime() : monotonic());
    },

    fd_advise(fd: number) {
      fileOf(fd);
    },

    fd_allocate(fd: number, offset: bigint, length: bigint) {
      const { file, rights } = fileOf(fd);
      if (!(rights & (FD_WRITE | FD_ALLOCATE))) fail("EBADF");
      const end = positionOf(offset) + positionOf(length);
      if (end > file.stat().size) file.truncate(end);
    },

    fd_close(fd: number) {
      const it = descriptor(fd);
      open[fd >>> 0] = undefined;
      it.file?.close();
    },

    fd_datasync(fd: number) {
      descriptor(fd).file?.sync();
    },

    fd_sync(fd: number) {
      descriptor(fd).file?.sync();
    },

    fd_fdstat_get(fd: number, address: number) {
      const it = descriptor(fd);
      const kind = it.path !== undefined
        ? "directory"
        : it.file
        ? it.file.stat().kind
        : "device";
      const at = place(address, 24);
      bytes(at, 24).fill(0);
      data().setUint8(at, FILETYPE[kind]);
      data().setUint16(at + 2, it.flags, true);
      set64(at + 8, it.rights);
      set64(at + 16, it.inheriting);
    },

    fd_fdstat_set_flags(fd: number, flags: number) {
      if (flags & ~ALL_FLAGS) fail("EINVAL");
      descriptor(fd).flags = flags;
    },

    fd_fdstat_set_rights(fd: number, rights: bigint, inheriting: bigint) {
      const it = descriptor(fd);
      rights = BigInt.asUintN(64, rights);
      inheriting = BigInt.asUintN(64, inheriting);
      if (rights & ~it.rights || inheriting & ~it.inheriting) {
        fail("ENOTCAPABLE");
      }
      Object.assign(it, { rights, inheriting });
    },

    fd_filestat_get(fd: number, address: number) {
      putStat(address, statOf(fd));
    },

    fd_filestat_set_size(fd: number, size: bigint) {
      const { file, rights } = fileOf(fd);
      if (!(rights & (FD_WRITE | FD_SET_SIZE))) fail("EINVAL");
      file.truncate(positionOf(size));
    },

    fd_filestat_set_times(
      fd: number,
      atime: bigint,
      mtime: bigint,
      flags: number,
    ) {
      const it = descriptor(fd);
      if (it.standard !== undefined) return;
      const [a, m] = times(() => statOf(fd), atime, mtime, flags);
      if (it.file) it.file.setTimes(a, m);
      else host.files.setTimes(it.path!, a, m);
    },

    fd_pread(
      fd: number,
      address: number,
      count: number,
      at: bigint,
      done: number,
    ) {
      const { file, rights } = fileOf(fd);
      if (!(rights & FD_READ)) fail("EBADF");
      place(done, 4);
      set32(done, readAt(file, address, count, positionOf(at)));
    },

    fd_pwrite(
      fd: number,
      address: number,
      count: number,
      at: bigint,
      done: number,
    ) {
      const { file, rights } = fileOf(fd);
      if (!(rights & FD_WRITE)) fail("EBADF");
      place(done, 4);
      set32(done, writeAt(file, address, count, positionOf(at)));
    },

    fd_read(fd: number, address: number, count: number, done: number) {
      const it = descriptor(fd);
      place(done, 4);
      if (it.path !== undefined) fail("EISDIR");
      if (!(it.rights & FD_READ)) fail("EBADF");
      if (it.standard !== undefined) {
        if (it.standard !== 0) fail("EBADF");
        return set32(done, standardRead(address, count));
      }
      const n = readAt(it.file!, address, count, it.position);
      it.position += n;
      set32(done, n);
    },

    fd_write(fd: number, address: number, count: number, done: number) {
      const it = descriptor(fd);
      place(done, 4);
      if (it.path !== undefined || !(it.rights & FD_WRITE)) fail("EBADF");
      if (it.standard !== undefined) {
        if (it.standard === 0) fail("EBADF");
        return set32(done, standardWrite(it.standard, address, count));
      }
      if (it.flags & APPEND) it.position = it.file!.stat().size;
      const n = writeAt(it.file!, address, count, it.position);
      it.position += n;
      set32(done, n);
    },

    fd_prestat_get(fd: number, address: number) {
      const { preopen } = descriptor(fd);
      if (!preopen) return fail("EBADF");
      const at = place(address, 8);
      set32(at, 0);
      set32(at + 4, preopen.length);
    },

    fd_prestat_dir_name(fd: number, address: number, length: number) {
      const { preopen } = descriptor(fd);
      if (!preopen) return fail("EBADF");
      if (length >>> 0 < preopen.length) fail("ENAMETOOLONG");
      bytes(address, preopen.length).set(preopen);
    },

    fd_readdir(
      fd: number,
      address: number,
      length: number,
      cookie: bigint,
      done: number,
    ) {
      const it = descriptor(fd);
      if (it.path === undefined) return fail("ENOTDIR");
      const buffer = bytes(address, length);
      place(done, 4);
      if (cookie === 0n || !it.entries) {
        it.entries = entriesOf(host.files, it.path);
      }
      let at = 0;
      const head = new DataView(new ArrayBuffer(24));
      const copy = (part: Uint8Array) => {
        part = part.subarray(0, buffer.length - at);
        buffer.set(part, at);
        at += part.length;
      };
      const from = positionOf(cookie);
      for (let i = from; i < it.entries.length && at < buffer.length; i++) {
        const { name, kind, path } = it.entries[i]!;
        head.setBigUint64(0, BigInt(i + 1), true);
        head.setBigUint64(8, BigInt(inoOf(host.files, path, i)), true);
        head.setUint32(16, name.length, true);
        head.setUint32(20, FILETYPE[kind], true);
        copy(new Uint8Array(head.buffer));
        copy(name);
      }
      set32(done, at);
    },

    fd_renumber(from: number, to: number) {
      const it = descriptor(from);
      const old = descriptor(to);
      if (from === to) return;
      open[to >>> 0] = it;
      open[from >>> 0] = undefined;
      old.file?.close();
    },

    fd_seek(fd: number, offset: bigint, whence: number, address: number) {
      const it = descriptor(fd);
      if (it.path === undefined && !it.file) fail("ESPIPE");
      place(address, 8);
      let base = 0;
      if (whence === 1) base = it.position;
      else if (whence === 2) base = it.file ? it.file.stat().size : 0;
      else if (whence !== 0) fail("EINVAL");
      it.position = positionOf(BigInt(base) + offset);
      set64(address, BigInt(it.position));
    },

    fd_tell(fd: number, address: number) {
      const it = descriptor(fd);
      if (it.path === undefined && !it.file) fail("ESPIPE");
      set64(address, BigInt(it.position));
    },

    path_create_directory(fd: number, path: number, length: number) {
      host.files.mkdir(pathAt(fd, path, length));
    },

    path_filestat_get(
      fd: number,
      flags: number,
      path: number,
      length: number,
      address: number,
    ) {
      const stat = host.files.stat(
        pathAt(fd, path, length),
        (flags & FOLLOW) !== 0,
      );
      putStat(address, stat);
    },

    path_filestat_set_times(
      fd: number,
      flags: number,
      path: number,
      length: number,
      atime: bigint,
      mtime: bigint,
      which: number,
    ) {
      const at = pathAt(fd, path, length);
      const follow = (flags & FOLLOW) !== 0;
      const stat = host.files.stat(at, follow);
      if (stat.kind === "symlink") fail("ENOTSUP");
      host.files.setTimes(at, ...times(() => stat, atime, mtime, which));
    },

    path_link() {
      // No file has two names: it could be granted by one, and not by the other.
      fail("EPERM");
    },

    path_open(
      fd: number,
      lookup: number,
      path: number,
      length: number,
      flags: number,
      rights: bigint,
      inheriting: bigint,
      fdflags: number,
      address: number,
    ) {
      place(address, 4);
      const at = pathAt(fd, path, length);
      const above = descriptor(fd).inheriting;
      rights = BigInt.asUintN(64, rights) & above;
      inheriting = BigInt.asUintN(64, inheriting) & above;
      const follow = (lookup & FOLLOW) !== 0;
      const common = {
        rights,
        inheriting,
        flags: fdflags & ALL_FLAGS,
        position: 0,
      };
      const isDirectory = kindAt(host.files, at, follow) === "directory";
      if (isDirectory || flags & O_DIRECTORY) {
        if (flags & O_CREAT && flags & O_EXCL) fail("EEXIST");
        const writes = (rights & FD_WRITE) !== 0n || (flags & O_TRUNC) !== 0;
        if (writes && !(flags & O_DIRECTORY)) fail("EISDIR");
        const { kind } = host.files.stat(at, follow);
        if (kind !== "directory") {
          fail(kind === "symlink" ? "ELOOP" : "ENOTDIR");
        }
        const path = host.files.realPath(at);
        set32(address, add({ ...common, path, rights: rights & ~FD_WRITE }));
        return;
      }
      // Go asks to set sizes of what it only reads, too.
      const write = (rights & (FD_WRITE | FD_ALLOCATE)) !== 0n;
      const append = (fdflags & APPEND) !== 0;
      if (open.filter((it) => it).length >= MOST_FILES) fail("EMFILE");
      const file = host.files.open(at, {
        read: (rights & FD_READ) !== 0n || !write,
        write: write && !append,
        append: write && append,
        create: (flags & O_CREAT) !== 0,
        exclusive: (flags & O_EXCL) !== 0,
        truncate: (flags & O_TRUNC) !== 0,
        follow,
      });
      const { standard } = file;
      set32(
        address,
        add(
          standard === undefined
            ? { ...common, file }
            : { ...common, standard },
        ),
      );
    },

    path_readlink(
      fd: number,
      path: number,
      length: number,
      address: number,
      size: number,
      done: number,
    ) {
      const target = encoder.encode(
        host.files.readLink(pathAt(fd, path, length)),
      );
      const buffer = bytes(address, size);
      const n = Math.min(target.length, buffer.length);
      buffer.set(target.subarray(0, n));
      set32(done, n);
    },

    path_remove_directory(fd: number, path: number, length: number) {
      host.files.rmdir(pathAt(fd, path, length));
    },

    path_rename(
      fd: number,
      from: number,
      fromLength: number,
      toFd: number,
      to: number,
      toLength: number,
    ) {
      host.files.rename(
        pathAt(fd, from, fromLength),
        pathAt(toFd, to, toLength),
      );
    },

    path_symlink(
      target: number,
      targetLength: number,
      fd: number,
      path: number,
      length: number,
    ) {
      host.files.symlink(text(target, targetLength), pathAt(fd, path, length));
    },

    path_unlink_file(fd: number, path: number, length: number) {
      host.files.unlink(pathAt(fd, path, length));
    },

    poll_oneoff(given: number, events: number, count: number, done: number) {
      count >>>= 0;
      if (count === 0) fail("EINVAL");
      given = place(given, 48 * count);
      events = place(events, 32 * count);
      place(done, 4);
      let n = 0;
      // Files are always ready. So is standard input: whether a read of it would wait
      // can't be asked.
      const clocks: { at: number; due: bigint }[] = [];
      // Events and subscriptions may be the same memory.
      const from = bytes(given, 48 * count).slice();
      const subscriptions = new DataView(from.buffer);
      const start = monotonic();
      for (let i = 0; i < count; i++) {
        const kind = subscriptions.getUint8(48 * i + 8);
        if (kind !== EVENT_CLOCK) continue;
        const id = subscriptions.getUint32(48 * i + 16, true);
        if (id > 1) fail("EINVAL");
        let due = subscriptions.getBigUint64(48 * i + 24, true);
        if (subscriptions.getUint16(48 * i + 40, true) & ABSTIME) {
          due -= id === REALTIME ? realtime() : start;
        }
        clocks.push({ at: i, due: due > 0n ? due : 0n });
      }
      const emit = (i: number, errno: number, ready: bigint) => {
        const at = events + 32 * n;
        bytes(at, 32).fill(0);
        set64(at, subscriptions.getBigUint64(48 * i, true));
        data().setUint16(at + 8, errno, true);
        data().setUint8(at + 10, subscriptions.getUint8(48 * i + 8));
        set64(at + 16, ready);
        n++;
      };
      for (let i = 0; i < count; i++) {
        const kind = subscriptions.getUint8(48 * i + 8);
        if (kind === EVENT_CLOCK) continue;
        if (kind > 2) fail("EINVAL");
        const fd = subscriptions.getUint32(48 * i + 16, true);
        const it = open[fd];
        emit(i, it ? 0 : ERRNO.EBADF!, it ? 1n : 0n);
      }
      if (n === 0) {
        const first = clocks.reduce(
          (a, b) => b.due < a ? b.due : a,
          clocks[0]!.due,
        );
        sleep(Number(first) / 1e6);
        for (const { at, due } of clocks) if (due <= first) emit(at, 0, 0n);
      } else {
        for (const { at, due } of clocks) if (due === 0n) emit(at, 0, 0n);
      }
      set32(done, n);
    },

    proc_exit(code: number) {
      throw new Exit(code);
    },

    proc_raise(signal: number) {
      throw new Exit(128 + (signal & 127));
    },

    random_get(address: number, length: number) {
      fillRandom(bytes(address, length));
    },

    sched_yield() {},

    sock_accept: (fd: number) => notSocket(fd),
    sock_recv: (fd: number) => notSocket(fd),
    sock_send: (fd: number) => notSocket(fd),
    sock_shutdown: (fd: number) => notSocket(fd),
  };

  function notSocket(fd: number): void {
    descriptor(fd);
    fail("ENOTSOCK");
  }

  return {
    imports: Object.fromEntries(
      Object.entries(functions).map(([name, fn]) => [name, answering(fn)]),
    ),
    use(given) {
      memory = given;
    },
  };
}

/** Has a function give the number of the error that it throws. */
function answering(
  // deno-lint-ignore no-explicit-any
  fn: (...args: any[]) => void,
): (...args: never[]) => number {
  return (...args) => {
    try {
      fn(...args);
      return 0;
    } catch (error) {
      if (error instanceof FileError) return ERRNO[error.code] ?? ERRNO.EIO!;
      // A stack that is full ends the program, as does what is wrong with us.
      if (
        error instanceof Exit || error instanceof RangeError ||
        error instanceof TypeError
      ) {
        throw error;
      }
      return ERRNO[codeOf(error)] ?? ERRNO.EIO!;
    }
  };
}

function kindAt(files: Files, path: string, follow: boolean): Kind | undefined {
  try {
    return files.stat(path, follow).kind;
  } catch (error) {
    if (error instanceof FileError && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function entriesOf(
  files: Files,
  path: string,
): NonNullable<Descriptor["entries"]> {
  const below = path === "/" ? "" : path;
  const entries = files.readDir(path).map(({ name, kind }) => ({
    name: encoder.encode(name),
    kind,
    path: `${below}/${name}`,
  }));
  const dots = [".", ".."].map((name) => ({
    name: encoder.encode(name),
    kind: "directory" as const,
    path: `${below}/${name}`,
  }));
  return [...dots, ...entries];
}

/** A number that stands for a file; C's library looks again at one that is 0. */
function inoOf(files: Files, path: string, index: number): number {
  try {
    return files.stat(path, false).ino || index + 1;
  } catch {
    return index + 1;
  }
}
