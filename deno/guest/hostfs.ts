/**
 * Files of the machine's in the file system of a language that Emscripten compiled
 * (Python, PHP, Prolog): the workspace, and what the operator granted by its path.
 * Programs see the files themselves, so what anybody changes there is seen at once.
 *
 * It is a file system as Emscripten knows them (its NODEFS is the model; that
 * one remembers what files were, and needs Deno's Node modules). Deno decides
 * what may be read and written; what it refuses is the program's "permission denied".
 *
 * @module
 */

import { byPathOrFile, chmodFile, codeOf } from "./hostfile.ts";

/** What Emscripten keeps of a file or directory. */
interface Node {
  id: number;
  name: string;
  mode: number;
  parent: Node;
  mount: { opts: { root: string } };
  node_ops: unknown;
  stream_ops: unknown;
  /** Where it is on the machine. */
  path: string;
}

/** An open file; descriptors that were duplicated have `shared` in common. */
interface Stream {
  node: Node;
  flags: number;
  position: number;
  shared: {
    file?: Deno.FsFile;
    /** What it has in place of the machine's file. */
    content?: Uint8Array;
    users: number;
    at: number;
  };
}

/** What is to be changed of a file. */
interface Attributes {
  mode?: number;
  size?: number;
  atime?: number;
  mtime?: number;
}

/** Emscripten's own functions, as far as they are used. */
export interface EmscriptenFS {
  ErrnoError: new (errno: number) => Error;
  isDir(mode: number): boolean;
  isFile(mode: number): boolean;
  mkdirTree(path: string): void;
  chdir(path: string): void;
  writeFile(path: string, data: string | Uint8Array): void;
  createNode(parent: Node | null, name: string, mode: number): Node;
  hashRemoveNode(node: Node): void;
  lookupPath(
    path: string,
    options?: { follow_mount: boolean },
  ): { node: { mounted?: object } };
  mount(type: unknown, opts: { root: string }, at: string): void;
}

/**
 * Gives the content of a file that is only in memory, by its path in the program's
 * tree. It is asked where the workspace has no such file, and, with `there`, before
 * one that it has is opened to be read: what it gives then is read in its place.
 */
export type Overlay = (path: string, there: boolean) => Uint8Array | undefined;

const REGULAR = 0o100000;
const DIRECTORY = 0o040000;
/** The modes of what may be written and not looked at. */
const WRITTEN = 0o222, ENTERED = 0o333;
/** The mode of a new file, before the machine's umask. */
const NEW_FILE = REGULAR | 0o666;
/** The mode of a file of the overlay. */
const OVERLAID = REGULAR | 0o444;
const WRITE_ONLY = 1;
const ACCESS = 3;
const APPEND = 0o2000;

/** Where programs have the workspace. */
const WORKSPACE = "/workspace";

/** Errors by their numbers in Emscripten's C library, which are WASI's. */
export const ERRNO: Record<string, number> = {
  EACCES: 2,
  EBADF: 8,
  EBUSY: 10,
  EDQUOT: 19,
  EEXIST: 20,
  EFBIG: 22,
  EINVAL: 28,
  EIO: 29,
  EISDIR: 31,
  ELOOP: 32,
  EMFILE: 33,
  EMLINK: 34,
  ENAMETOOLONG: 37,
  ENFILE: 41,
  ENODEV: 43,
  ENOENT: 44,
  ENOMEM: 48,
  ENOSPC: 51,
  ENOSYS: 52,
  ENOTDIR: 54,
  ENOTEMPTY: 55,
  ENXIO: 60,
  EPERM: 63,
  EROFS: 69,
  ETXTBSY: 74,
  EXDEV: 75,
};

/**
 * Mounts files and directories of the machine's: those granted, none within another
 * one, at the same paths, and the workspace, if there is one, which becomes the
 * current directory. What is not there now is not there later.
 */
export function mountHost(
  FS: EmscriptenFS,
  workspace: string,
  granted: string[],
  overlay?: Overlay,
): void {
  const type = hostFS(FS, workspace, overlay);
  for (const path of granted) {
    let root: Node;
    const opts = { root: realPath(path) };
    const mount = { type, opts, mountpoint: path, mounts: [] };
    try {
      root = type.mount(mount);
    } catch {
      continue;
    }
    if (FS.isDir(root.mode)) {
      FS.mkdirTree(path);
    } else {
      FS.mkdirTree(path.slice(0, path.lastIndexOf("/")) || "/");
      FS.writeFile(path, "");
    }
    // Emscripten's own `mount` takes directories alone.
    const { node } = FS.lookupPath(path, { follow_mount: false });
    node.mounted = Object.assign(mount, {
      root: Object.assign(root, { mount }),
    });
  }
  if (!workspace) return;
  FS.mkdirTree(WORKSPACE);
  FS.mount(type, { root: workspace }, WORKSPACE);
  FS.chdir(WORKSPACE);
}

/** A path without links, so far as it may be looked at. */
function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path;
  }
}

/** The mode of what is at a path. */
function modeOf(path: string): number {
  try {
    return Deno.lstatSync(path).mode!;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotCapable)) throw error;
  }
  // It may not be looked at, but perhaps be written.
  try {
    Deno.openSync(path, { write: true }).close();
    return REGULAR | WRITTEN;
  } catch (error) {
    if (codeOf(error) === "EISDIR") return DIRECTORY | ENTERED;
    throw error;
  }
}

function hostFS(FS: EmscriptenFS, workspace: string, overlay?: Overlay) {
  /** Has operations raise the C library's errors in place of Deno's. */
  // deno-lint-ignore no-explicit-any
  function raising<T extends Record<string, (...args: any[]) => unknown>>(
    operations: T,
  ): T {
    const wrapped = Object.entries(operations).map(([name, operation]) => [
      name,
      (...args: unknown[]) => {
        try {
          return operation(...args);
        } catch (error) {
          if (error instanceof FS.ErrnoError) throw error;
          throw new FS.ErrnoError(ERRNO[codeOf(error)] ?? ERRNO.EIO!);
        }
      },
    ]);
    return Object.fromEntries(wrapped);
  }

  /**
   * Makes a node and does not have it remembered under its name, so that the
   * next to ask for the name looks what is there then.
   */
  function createNode(
    parent: Node | null,
    name: string,
    mode: number,
    path: string,
  ): Node {
    const node = FS.createNode(parent, name, mode);
    FS.hashRemoveNode(node);
    return Object.assign(node, { node_ops, stream_ops, path });
  }

  const below = (parent: Node, name: string) => `${parent.path}/${name}`;
  const remove = (parent: Node, name: string) =>
    Deno.removeSync(below(parent, name));

  /** What the overlay has for a path of the machine's. */
  function overlaid(path: string, there: boolean): Uint8Array | undefined {
    if (!overlay || !path.startsWith(`${workspace}/`)) return undefined;
    return overlay(WORKSPACE + path.slice(workspace.length), there);
  }

  const node_ops = raising({
    getattr(node: Node): object {
      // What Deno tells has the names that Emscripten looks for.
      try {
        return Deno.lstatSync(node.path);
      } catch (error) {
        const content = absent(error) && overlaid(node.path, false);
        if (!content) throw error;
        return statOf(content, node);
      }
    },

    setattr(node: Node, change: Attributes): void {
      setAttributes(node, change);
      if (change.size !== undefined) Deno.truncateSync(node.path, change.size);
    },

    lookup(parent: Node, name: string): Node {
      const path = below(parent, name);
      let mode: number;
      try {
        mode = modeOf(path);
      } catch (error) {
        if (!absent(error) || !overlaid(path, false)) throw error;
        mode = OVERLAID;
      }
      return createNode(parent, name, mode, path);
    },

    mknod(parent: Node, name: string, mode: number): Node {
      const path = below(parent, name);
      if (FS.isDir(mode)) {
        Deno.mkdirSync(path, { mode: mode & 0o777 });
        return createNode(parent, name, mode, path);
      }
      if (!FS.isFile(mode)) throw new FS.ErrnoError(ERRNO.EPERM!);
      Deno.openSync(path, { write: true, createNew: true }).close();
      return createNode(parent, name, NEW_FILE, path);
    },

    rename(node: Node, parent: Node, name: string): void {
      Deno.renameSync(node.path, below(parent, name));
      node.name = `\0${node.id}`; // Emscripten remembers it under this name now
    },

    unlink: remove,
    rmdir: remove,

    readdir(node: Node): string[] {
      const names = [".", ".."];
      for (const entry of Deno.readDirSync(node.path)) names.push(entry.name);
      return names;
    },

    symlink(parent: Node, name: string, target: string): Node {
      Deno.symlinkSync(target, below(parent, name));
      return node_ops.lookup(parent, name);
    },

    readlink: (node: Node) => Deno.readLinkSync(node.path),
  });

  const stream_ops = raising({
    open(stream: Stream): void {
      Object.assign(stream.shared, { users: 1, at: 0 });
      if (FS.isDir(stream.node.mode)) return; // it is listed by its node
      const access = stream.flags & ACCESS, path = stream.node.path;
      if (access === 0) {
        stream.shared.content = overlaid(path, true);
        if (stream.shared.content) return;
      }
      try {
        stream.shared.file = Deno.openSync(path, {
          read: access !== WRITE_ONLY,
          write: access !== 0,
          append: access !== 0 && (stream.flags & APPEND) !== 0,
        });
      } catch (error) {
        const content = absent(error) && overlaid(path, false);
        if (!content) throw error;
        // A file of the overlay is not written.
        if (access !== 0) throw new FS.ErrnoError(ERRNO.EACCES!);
        stream.shared.content = content;
      }
    },

    close({ shared }: Stream): void {
      if (--shared.users === 0) shared.file?.close();
    },

    dup({ shared }: Stream): void {
      shared.users++;
    },

    getattr: ({ node, shared }: Stream): object =>
      shared.content
        ? statOf(shared.content, node)
        : shared.file
        ? shared.file.statSync()
        : node_ops.getattr(node),

    setattr({ node, shared }: Stream, change: Attributes): void {
      setAttributes(node, change);
      if (change.size !== undefined) shared.file!.truncateSync(change.size);
    },

    read(
      { shared }: Stream,
      buffer: Uint8Array,
      offset: number,
      length: number,
      position: number,
    ): number {
      if (shared.content) {
        const piece = shared.content.subarray(position, position + length);
        bytes(buffer, offset, length).set(piece);
        return piece.length;
      }
      seek(shared, position);
      const n = shared.file!.readSync(bytes(buffer, offset, length)) ?? 0;
      shared.at += n;
      return n;
    },

    write(
      { flags, shared }: Stream,
      buffer: Uint8Array,
      offset: number,
      length: number,
      position: number,
    ): number {
      seek(shared, position);
      const n = shared.file!.writeSync(bytes(buffer, offset, length));
      // The machine appends at the end that the file has by then.
      shared.at = flags & APPEND ? -1 : position + n;
      return n;
    },

    llseek(
      { position, shared }: Stream,
      offset: number,
      whence: number,
    ): number {
      if (whence === Deno.SeekMode.Current) offset += position;
      if (whence === Deno.SeekMode.End) {
        offset += shared.content?.length ?? shared.file?.statSync().size ?? 0;
      }
      if (offset < 0) throw new FS.ErrnoError(ERRNO.EINVAL!);
      return offset;
    },

    fsync({ shared }: Stream): number {
      shared.file?.syncSync();
      return 0;
    },
  });

  return raising({
    mount: ({ opts: { root } }: Node["mount"]) =>
      createNode(null, "/", modeOf(root), root),
  });
}

/** What a file that is only in memory tells of itself, as Deno does. */
function statOf(content: Uint8Array, node: Node): object {
  return {
    dev: 1,
    ino: node.id,
    mode: OVERLAID,
    nlink: 1,
    uid: 0,
    gid: 0,
    rdev: 0,
    size: content.length,
    atime: started,
    mtime: started,
    ctime: started,
    blksize: 4096,
    blocks: Math.ceil(content.length / 512),
  };
}

const started = new Date();

function absent(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound;
}

/** Changes all but the size. */
function setAttributes(node: Node, { mode, atime, mtime }: Attributes): void {
  if (mode !== undefined && mode !== node.mode) {
    byPathOrFile(
      () => Deno.chmodSync(node.path, mode & 0o7777),
      () => chmodFile(node.path, mode & 0o7777),
    );
    node.mode = mode;
  }
  if (atime !== undefined || mtime !== undefined) {
    const now = Deno.lstatSync(node.path);
    const times = [
      new Date(atime ?? now.atime!),
      new Date(mtime ?? now.mtime!),
    ] as const;
    byPathOrFile(() => Deno.utimeSync(node.path, ...times), () => {
      using file = Deno.openSync(node.path);
      file.utimeSync(...times);
    });
  }
}

function seek(shared: Stream["shared"], position: number): void {
  if (shared.at === position) return;
  shared.file!.seekSync(position, Deno.SeekMode.Start);
  shared.at = position;
}

/** A part of the memory, which is given as numbers of any kind. */
function bytes(buffer: Uint8Array, offset: number, length: number): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length);
}
