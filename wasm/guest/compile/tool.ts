/**
 * Runs a compiler's tool, which is a WASI command, over files that are in memory: an
 * argument list and a `Tree` go in, files and an exit code come out. A tool has no
 * other files, no clock that tells the day, no randomness and no network, so that the
 * same input gives the same bytes.
 *
 * @module
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** WASI's error numbers. */
const EBADF = 8,
  EEXIST = 20,
  EISDIR = 31,
  ENOENT = 44,
  ENOTSUP = 58,
  ESPIPE = 70;
const DIRECTORY = 3, REGULAR = 4, CHARACTER = 2;

/** A file that is read once it is wanted. */
export interface Source {
  size: number;
  read(): Uint8Array;
}

/** Files by their absolute paths. */
export class Tree {
  #files = new Map<string, Uint8Array | Source>();
  #directories = new Set(["/"]);

  /** A file's content, or undefined. */
  get(path: string): Uint8Array | undefined {
    const content = this.#files.get(path);
    if (content === undefined || content instanceof Uint8Array) return content;
    const bytes = content.read();
    this.#files.set(path, bytes);
    return bytes;
  }

  set(path: string, content: Uint8Array | Source): void {
    this.#files.set(path, content);
    for (let at = path.length; (at = path.lastIndexOf("/", at - 1)) > 0;) {
      const directory = path.slice(0, at);
      if (this.#directories.has(directory)) return;
      this.#directories.add(directory);
    }
  }

  delete(path: string): boolean {
    return this.#files.delete(path);
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  /** A file's size in bytes, or undefined. */
  size(path: string): number | undefined {
    const content = this.#files.get(path);
    return content instanceof Uint8Array ? content.length : content?.size;
  }

  isDirectory(path: string): boolean {
    return this.#directories.has(path);
  }

  /** A tree with the same files, which changes apart from this one. */
  copy(): Tree {
    const copy = new Tree();
    copy.#files = new Map(this.#files);
    copy.#directories = new Set(this.#directories);
    return copy;
  }
}

/** An absolute path without "." and "..". */
export function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return "/" + parts.join("/");
}

class ToolExit extends Error {
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}

interface Open {
  kind: number;
  path: string;
  at: number;
  /** What is written to a stream, or the file's content with room to grow. */
  bytes: Uint8Array;
  length: number;
  write?(bytes: Uint8Array): void;
}

const NOTHING = new Uint8Array();

/**
 * Runs a tool, whose files are those of the tree. What it says on its two outputs goes
 * to `say`. The result is its exit code; a trap is thrown.
 */
export function runTool(
  module: WebAssembly.Module,
  args: string[],
  tree: Tree,
  say: (bytes: Uint8Array) => void,
  more: WebAssembly.Imports = {},
): number {
  let bytes: Uint8Array = NOTHING,
    view: DataView = new DataView(new ArrayBuffer(0));
  /** The views, made anew when the memory has grown. */
  const look = () => {
    if (bytes.buffer !== memory.buffer) {
      bytes = new Uint8Array(memory.buffer);
      view = new DataView(memory.buffer);
    }
    return view;
  };
  const stream = (write?: Open["write"]): Open => ({
    kind: CHARACTER,
    path: "",
    at: 0,
    bytes: NOTHING,
    length: 0,
    write,
  });
  const directory = (path: string): Open => ({
    kind: DIRECTORY,
    path,
    at: 0,
    bytes: NOTHING,
    length: 0,
  });
  const fds: (Open | undefined)[] = [
    stream(),
    stream(say),
    stream(say),
    directory("/"),
  ];
  const words = args.map((arg) => encoder.encode(arg + "\0"));
  const inodes = new Map<string, bigint>();
  const inode = (path: string): bigint => {
    const known = inodes.get(path) ?? BigInt(inodes.size + 1);
    inodes.set(path, known);
    return known;
  };
  const pathAt = (fd: number, at: number, length: number): string => {
    look();
    const path = decoder.decode(bytes.subarray(at, at + length));
    return normalize((fds[fd]?.path ?? "") + "/" + path);
  };
  const writeStat = (at: number, kind: number, path: string, size: number) => {
    look();
    bytes.fill(0, at, at + 64);
    view.setBigUint64(at + 8, inode(path), true);
    bytes[at + 16] = kind;
    view.setBigUint64(at + 24, 1n, true);
    view.setBigUint64(at + 32, BigInt(size), true);
  };
  /** Calls `each` with the buffers of an iovec; the number of bytes that it dealt with. */
  const vector = (
    at: number,
    count: number,
    each: (part: Uint8Array) => number,
  ): number => {
    look();
    let total = 0;
    for (; count > 0; count--, at += 8) {
      const start = view.getUint32(at, true),
        length = view.getUint32(at + 4, true);
      total += each(bytes.subarray(start, start + length));
    }
    return total;
  };
  const readAt = (file: Open, at: number, part: Uint8Array): number => {
    const n = Math.max(0, Math.min(part.length, file.length - at));
    part.set(file.bytes.subarray(at, at + n));
    return n;
  };
  const resize = (file: Open, length: number) => {
    if (
      file.bytes.length < length || file.bytes.byteOffset !== 0 ||
      !owned.has(file.bytes)
    ) {
      const grown = new Uint8Array(
        Math.max(
          length,
          Math.min(file.length * 2, file.length + (32 << 20)),
          4096,
        ),
      );
      grown.set(file.bytes.subarray(0, Math.min(file.length, length)));
      owned.add(grown);
      file.bytes = grown;
    }
    file.length = length;
    tree.set(file.path, file.bytes.subarray(0, length));
  };
  /** Contents that this run made, which it may change. */
  const owned = new WeakSet<Uint8Array>();

  const wasi = {
    args_sizes_get(count: number, size: number) {
      look().setUint32(count, words.length, true);
      view.setUint32(
        size,
        words.reduce((sum, word) => sum + word.length, 0),
        true,
      );
      return 0;
    },
    args_get(pointers: number, at: number) {
      look();
      for (const word of words) {
        view.setUint32(pointers, at, true);
        bytes.set(word, at);
        pointers += 4;
        at += word.length;
      }
      return 0;
    },
    environ_sizes_get(count: number, size: number) {
      look().setUint32(count, 0, true);
      view.setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    clock_time_get(clock: number, _precision: bigint, at: number) {
      const now = clock === 0 ? 0 : performance.now() * 1e6;
      look().setBigUint64(at, BigInt(Math.round(now)), true);
      return 0;
    },
    fd_close(fd: number) {
      if (!fds[fd]) return EBADF;
      fds[fd] = undefined;
      return 0;
    },
    fd_fdstat_get(fd: number, at: number) {
      const file = fds[fd];
      if (!file) return EBADF;
      look();
      bytes.fill(0, at, at + 24);
      bytes[at] = file.kind;
      view.setBigUint64(at + 8, 0x1fffffffn, true);
      view.setBigUint64(at + 16, 0x1fffffffn, true);
      return 0;
    },
    fd_filestat_get(fd: number, at: number) {
      const file = fds[fd];
      if (!file) return EBADF;
      writeStat(at, file.kind, file.path || `fd ${fd}`, file.length);
      return 0;
    },
    fd_filestat_set_size(fd: number, size: bigint) {
      const file = fds[fd];
      if (!file || file.kind !== REGULAR) return EBADF;
      const before = file.length;
      resize(file, Number(size));
      if (file.length > before) file.bytes.fill(0, before, file.length);
      return 0;
    },
    fd_filestat_set_times: () => 0,
    fd_pread(
      fd: number,
      at: number,
      count: number,
      offset: bigint,
      read: number,
    ) {
      const file = fds[fd];
      if (!file || file.kind !== REGULAR) return EBADF;
      let from = Number(offset);
      const total = vector(at, count, (part) => {
        const n = readAt(file, from, part);
        from += n;
        return n;
      });
      view.setUint32(read, total, true);
      return 0;
    },
    fd_prestat_get(fd: number, at: number) {
      if (fd !== 3) return EBADF;
      look().setUint32(at, 0, true);
      view.setUint32(at + 4, 1, true);
      return 0;
    },
    fd_prestat_dir_name(_fd: number, at: number) {
      look();
      bytes[at] = 0x2f;
      return 0;
    },
    fd_read(fd: number, at: number, count: number, read: number) {
      const file = fds[fd];
      if (!file) return EBADF;
      const total = vector(at, count, (part) => {
        const n = readAt(file, file.at, part);
        file.at += n;
        return n;
      });
      view.setUint32(read, total, true);
      return 0;
    },
    fd_readdir(
      _fd: number,
      _at: number,
      _length: number,
      _cookie: bigint,
      used: number,
    ) {
      look().setUint32(used, 0, true);
      return 0;
    },
    fd_seek(fd: number, offset: bigint, whence: number, at: number) {
      const file = fds[fd];
      if (!file) return EBADF;
      if (file.kind !== REGULAR) return ESPIPE;
      file.at = Number(offset) + [0, file.at, file.length][whence]!;
      look().setBigUint64(at, BigInt(file.at), true);
      return 0;
    },
    fd_write(fd: number, at: number, count: number, written: number) {
      const file = fds[fd];
      if (!file) return EBADF;
      const total = vector(at, count, (part) => {
        if (file.write) {
          file.write(part.slice());
        } else {
          resize(file, Math.max(file.length, file.at + part.length));
          file.bytes.set(part, file.at);
          file.at += part.length;
        }
        return part.length;
      });
      view.setUint32(written, total, true);
      return 0;
    },
    path_create_directory: () => 0,
    path_filestat_get(
      fd: number,
      _flags: number,
      at: number,
      length: number,
      stat: number,
    ) {
      const path = pathAt(fd, at, length);
      if (tree.isDirectory(path)) {
        writeStat(stat, DIRECTORY, path, 0);
        return 0;
      }
      const size = tree.size(path);
      if (size === undefined) return ENOENT;
      writeStat(stat, REGULAR, path, size);
      return 0;
    },
    path_link: () => ENOTSUP,
    path_readlink: () => ENOTSUP,
    path_symlink: () => ENOTSUP,
    path_remove_directory: () => 0,
    path_open(
      fd: number,
      _lookup: number,
      at: number,
      length: number,
      flags: number,
      _rights: bigint,
      _inherited: bigint,
      _fdflags: number,
      opened: number,
    ) {
      const path = pathAt(fd, at, length);
      const [create, exclusive, truncate] = [flags & 1, flags & 4, flags & 8];
      let file: Open;
      if (tree.isDirectory(path)) {
        if (create) return EISDIR;
        file = directory(path);
      } else {
        let content = tree.get(path);
        if (content && exclusive) return EEXIST;
        if (!content && !create) return ENOENT;
        if (!content || truncate) tree.set(path, content = NOTHING);
        file = {
          kind: REGULAR,
          path,
          at: 0,
          bytes: content,
          length: content.length,
        };
      }
      look().setUint32(opened, fds.push(file) - 1, true);
      return 0;
    },
    path_rename(
      fd: number,
      at: number,
      length: number,
      toFd: number,
      toAt: number,
      toLength: number,
    ) {
      const from = pathAt(fd, at, length), to = pathAt(toFd, toAt, toLength);
      const content = tree.get(from);
      if (!content) return ENOENT;
      tree.set(to, content);
      tree.delete(from);
      return 0;
    },
    path_unlink_file(fd: number, at: number, length: number) {
      return tree.delete(pathAt(fd, at, length)) ? 0 : ENOENT;
    },
    poll_oneoff: () => ENOTSUP,
    proc_exit(code: number) {
      throw new ToolExit(code);
    },
    random_get(at: number, length: number) {
      look();
      for (let i = 0; i < length; i++) bytes[at + i] = i * 7 + 1;
      return 0;
    },
  };
  const instance = new WebAssembly.Instance(module, {
    wasi_snapshot_preview1: wasi,
    ...more,
  });
  const memory = instance.exports.memory as WebAssembly.Memory;
  try {
    (instance.exports._start as () => void)();
  } catch (thrown) {
    if (thrown instanceof ToolExit) return thrown.code;
    throw thrown;
  }
  return 0;
}
