/**
 * The tree of files that a program sees: `/workspace`, which are files of the machine's,
 * the program's own file and modules beside it, what the operator granted, and a few
 * directories in memory (`/tmp`, `/home/user`, `/dev`, `/etc`). Deno decides what of the
 * machine may be read and written.
 *
 * Symbolic links are followed here, within this tree, so that one in the workspace that
 * leads to `/etc/passwd` leads to the file that this tree has there; the machine is asked
 * for paths without links alone.
 *
 * @module
 */

import { byPathOrFile, chmodFile, codeOf } from "../../deno/guest/hostfile.ts";
import { type Start, WORKSPACE } from "./language.ts";

/** An error with the name that the C library has for it: "ENOENT". */
export class FileError extends Error {
  constructor(readonly code: string, path = "") {
    super(path ? `${code}: ${path}` : code);
  }
}

export type Kind = "file" | "directory" | "symlink" | "device";

export interface Stat {
  kind: Kind;
  /** Bytes. */
  size: number;
  /** Milliseconds since 1970. */
  mtime: number;
  atime: number;
  /** Permission bits. */
  mode: number;
  /** The device, 0 for what is in memory; with `ino` it tells files apart. */
  dev: number;
  ino: number;
  nlink: number;
}

export interface OpenOptions {
  read?: boolean;
  write?: boolean;
  append?: boolean;
  create?: boolean;
  /** It must not be there. */
  exclusive?: boolean;
  truncate?: boolean;
  /** False: a link is not opened, but is ELOOP. */
  follow?: boolean;
}

/** An open file. Its methods throw FileError. */
export interface OpenFile {
  /**
   * The descriptor that `/dev/stdin` (0), `/dev/stdout` (1) and `/dev/stderr` (2) stand
   * for: who opened it reads and writes that, for there is nothing to read here.
   */
  readonly standard?: number;
  /** Reads at a place; how many bytes were read, 0 at the end. */
  read(buffer: Uint8Array, at: number): number;
  /** Writes at a place; a file that is opened to append is written at its end. */
  write(bytes: Uint8Array, at: number): number;
  stat(): Stat;
  truncate(size: number): void;
  setTimes(atime: number, mtime: number): void;
  sync(): void;
  close(): void;
}

/** All methods take absolute paths, normalised here, and throw FileError. */
export interface Files {
  open(path: string, options: OpenOptions): OpenFile;
  /** What is at a path; links are followed unless `follow` is false. */
  stat(path: string, follow?: boolean): Stat;
  readDir(path: string): { name: string; kind: Kind }[];
  mkdir(path: string): void;
  rmdir(path: string): void;
  unlink(path: string): void;
  rename(from: string, to: string): void;
  symlink(target: string, path: string): void;
  readLink(path: string): string;
  setTimes(path: string, atime: number, mtime: number): void;
  chmod(path: string, mode: number): void;
  /** A whole file. */
  readFile(path: string): Uint8Array;
  writeFile(path: string, bytes: Uint8Array): void;
  /** Lays a read-only file over the tree. It can be opened, and is not listed. */
  overlay(path: string, content: Uint8Array): void;
  /** The path without links, `.` and `..`; all of it but the last name must be there. */
  realPath(path: string): string;
  /** The path on the machine, as the child names it, of what is there in the workspace or was granted; undefined elsewhere. */
  hostPath(path: string): string | undefined;
}

/** Something in memory, or the place where something of the machine's begins. */
interface Node {
  kind: Kind;
  ino: number;
  mode: number;
  mtime: number;
  atime: number;
  /** Of a directory. */
  children?: Map<string, Node>;
  /** Of a file: its bytes are the first `size`. */
  data?: Uint8Array;
  size: number;
  /** Of a link. */
  target?: string;
  device?: Device;
  /**
   * What the machine has here, by the child's name for it. A directory's children are
   * those in memory, and beside them those of the machine's.
   */
  host?: string;
  /** It came with the tree, and can't be removed. */
  fixed?: boolean;
  readOnly?: boolean;
  /** It was removed; who has it open still has it. */
  gone?: boolean;
}

interface Device {
  standard?: number;
  read?(buffer: Uint8Array): number;
  write?(bytes: Uint8Array): number;
}

/** Where a path led. */
interface Place {
  /** The path without links. */
  path: string;
  name: string;
  /** The directory in memory that has it, or would have it. */
  parent?: Node;
  /** What is in memory, or where something of the machine's begins. */
  node?: Node;
  /** The path on the machine, where it is the machine's or would be. */
  host?: string;
  /** What the machine has there. */
  found?: Stat;
}

/** Linux's bounds on links in a path, and on bytes of a name and of a path. */
const MOST_LINKS = 40, LONGEST_NAME = 255, LONGEST_PATH = 4096;
/** Bytes of the largest file in memory. */
const LARGEST = 2 ** 30;
/** getRandomValues() fills no more bytes at once. */
const MOST_RANDOM = 65536;

// Taken before a guest's code runs, which may replace them.
const D = {
  chmodSync: Deno.chmodSync,
  lstatSync: Deno.lstatSync,
  mkdirSync: Deno.mkdirSync,
  openSync: Deno.openSync,
  readDirSync: Deno.readDirSync,
  readLinkSync: Deno.readLinkSync,
  realPathSync: Deno.realPathSync,
  removeSync: Deno.removeSync,
  renameSync: Deno.renameSync,
  symlinkSync: Deno.symlinkSync,
  utimeSync: Deno.utimeSync,
  SeekMode: Deno.SeekMode,
  NotCapable: Deno.errors.NotCapable,
  NotFound: Deno.errors.NotFound,
};
const getRandomValues = crypto.getRandomValues.bind(crypto);
const now = Date.now;
const encoder = new TextEncoder();

export function makeFiles(start: Start): Files {
  const root = directory();
  for (
    const path of ["/tmp", "/home/user", "/dev", "/etc", "/usr/bin", "/bin"]
  ) {
    plant(root, path);
  }
  for (const [name, device] of Object.entries(devices())) {
    plant(root, `/dev/${name}`, make("device", { mode: 0o666, device }));
  }
  plant(root, "/dev/fd");
  for (const n of [0, 1, 2]) {
    const device = { standard: n };
    plant(root, `/dev/fd/${n}`, make("device", { mode: 0o666, device }));
  }
  const user = "user:x:1000:1000:user:/home/user:/bin/sh\n";
  plant(
    root,
    "/etc/passwd",
    textFile(`root:x:0:0:root:/root:/bin/sh\n${user}`),
  );
  plant(root, "/etc/group", textFile("root:x:0:\nuser:x:1000:\n"));
  for (const path of start.granted) {
    const host = realHost(path);
    try {
      const found = look(host);
      if (found) plant(root, path, undefined, host, found.kind);
    } catch {
      // It may not even be looked at. What is not there now is not there later.
    }
  }
  plant(root, WORKSPACE, undefined, start.workspace || undefined);
  return new Tree(root);
}

function make(kind: Kind, rest: Partial<Node> = {}): Node {
  const time = now();
  return {
    kind,
    ino: nextIno++,
    mode: 0o644,
    mtime: time,
    atime: time,
    size: 0,
    ...rest,
  };
}

let nextIno = 1;

function directory(rest: Partial<Node> = {}): Node {
  return make("directory", { mode: 0o755, children: new Map(), ...rest });
}

function textFile(text: string): Node {
  const data = encoder.encode(text);
  return make("file", { data, size: data.length });
}

/** Puts something into the tree that stays, and the directories that lead to it. */
function plant(
  root: Node,
  path: string,
  node?: Node,
  host?: string,
  kind: Kind = "directory",
): void {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  let at = root;
  for (const [i, name] of names.entries()) {
    let next = at.children!.get(name);
    if (i === names.length - 1 && (node || (!next && kind !== "directory"))) {
      next = node ?? make(kind, { host });
      at.children!.set(name, next);
    }
    next ??= directory();
    next.fixed = true;
    at.children!.set(name, next);
    if (!next.children) return;
    at = next;
  }
  if (at.children && host !== undefined) at.host = host;
}

function devices(): Record<string, Device> {
  const all = (bytes: Uint8Array) => bytes.length;
  const zero = (buffer: Uint8Array) => {
    buffer.fill(0);
    return buffer.length;
  };
  const random = (buffer: Uint8Array) => {
    fillRandom(buffer);
    return buffer.length;
  };
  return {
    null: { read: () => 0, write: all },
    zero: { read: zero, write: all },
    full: {
      read: zero,
      write() {
        throw new FileError("ENOSPC");
      },
    },
    random: { read: random, write: all },
    urandom: { read: random, write: all },
    stdin: { standard: 0 },
    stdout: { standard: 1 },
    stderr: { standard: 2 },
  };
}

/** Fills any number of bytes, of memory that WebAssembly has too. */
export function fillRandom(buffer: Uint8Array): void {
  for (let at = 0; at < buffer.length; at += MOST_RANDOM) {
    getRandomValues(
      buffer.subarray(at, at + MOST_RANDOM) as Uint8Array<ArrayBuffer>,
    );
  }
}

class Tree implements Files {
  #root: Node;
  #overlay = new Map<string, Node>();

  constructor(root: Node) {
    this.#root = root;
  }

  open(path: string, options: OpenOptions): OpenFile {
    const write = options.write || options.append || false;
    const read = options.read || !write;
    const { create, exclusive, truncate } = options;
    const place = this.#walk(path, options.follow !== false && !exclusive);
    const kind = kindOf(place);
    if (kind !== undefined) {
      if (create && exclusive) throw new FileError("EEXIST", path);
      if (kind === "symlink") throw new FileError("ELOOP", path);
      if (kind === "directory") throw new FileError("EISDIR", path);
    } else if (!create) {
      const laid = this.#overlay.get(place.path);
      if (!laid) throw new FileError("ENOENT", path);
      if (laid.kind === "directory") throw new FileError("EISDIR", path);
      if (write || truncate) throw new FileError("EROFS", path);
      return new MemoryFile(laid, { read, write, append: false });
    }
    if (kind === undefined && path.endsWith("/")) {
      throw new FileError("EISDIR", path);
    }
    if (place.host !== undefined) {
      const making = create && kind === undefined;
      return new HostFile(place.host, {
        read,
        write: options.write || truncate || (making && !write),
        append: options.append,
        create: making && !exclusive,
        createNew: making && exclusive,
        truncate,
      });
    }
    let node = place.node;
    if (!node) {
      alive(place.parent!, path);
      node = make("file", { data: new Uint8Array() });
      place.parent!.children!.set(place.name, node);
      place.parent!.mtime = now();
    } else if (write && (node.readOnly || !(node.mode & 0o222))) {
      throw new FileError("EACCES", path);
    } else if (read && !(node.mode & 0o444)) {
      throw new FileError("EACCES", path);
    }
    if (node.device) return new DeviceFile(node);
    if (truncate) resize(node, 0);
    return new MemoryFile(node, {
      read,
      write,
      append: options.append ?? false,
    });
  }

  stat(path: string, follow = true): Stat {
    const place = this.#walk(path, follow);
    if (place.found) return place.found;
    if (place.node) return statOfNode(place.node);
    const laid = this.#overlay.get(place.path);
    if (laid) return statOfNode(laid);
    throw new FileError("ENOENT", path);
  }

  readDir(path: string): { name: string; kind: Kind }[] {
    const { node, host, ...place } = this.#walk(path, true);
    const kind = kindOf({ node, host, ...place });
    if (kind === undefined) {
      // Files that are laid over the tree are not listed.
      if (this.#overlay.get(place.path)?.kind === "directory") return [];
      throw new FileError("ENOENT", path);
    }
    if (kind !== "directory") throw new FileError("ENOTDIR", path);
    const entries: { name: string; kind: Kind }[] = [];
    for (const [name, child] of node?.children ?? []) {
      entries.push({ name, kind: child.kind });
    }
    if (host === undefined) return entries;
    return raising(path, () => {
      for (const entry of D.readDirSync(host)) {
        if (node?.children?.has(entry.name)) continue;
        entries.push({ name: entry.name, kind: kindOfEntry(entry) });
      }
      return entries;
    });
  }

  mkdir(path: string): void {
    const place = this.#walk(path, false);
    if (kindOf(place) !== undefined) throw new FileError("EEXIST", path);
    if (place.host !== undefined) {
      return raising(path, () => D.mkdirSync(place.host!, { mode: 0o777 }));
    }
    this.#put(place, directory(), path);
  }

  rmdir(path: string): void {
    const place = this.#walk(path, false);
    if (kindOf(place) === undefined) throw this.#missing(place, path);
    if (kindOf(place) !== "directory") throw new FileError("ENOTDIR", path);
    if (place.path === "/" || place.node?.fixed) {
      throw new FileError("EBUSY", path);
    }
    if (place.host !== undefined) {
      return raising(path, () => D.removeSync(place.host!));
    }
    if (place.node!.children!.size > 0) throw new FileError("ENOTEMPTY", path);
    this.#drop(place);
  }

  unlink(path: string): void {
    const place = this.#walk(path, false);
    if (kindOf(place) === undefined) throw this.#missing(place, path);
    if (kindOf(place) === "directory") throw new FileError("EISDIR", path);
    if (place.node?.fixed) throw new FileError("EACCES", path);
    if (place.host !== undefined) {
      return raising(path, () => D.removeSync(place.host!));
    }
    this.#drop(place);
  }

  rename(from: string, to: string): void {
    const source = this.#walk(from, false), target = this.#walk(to, false);
    const kind = kindOf(source), there = kindOf(target);
    if (kind === undefined) throw this.#missing(source, from);
    if (source.path === "/" || source.node?.fixed) {
      throw new FileError("EBUSY", from);
    }
    if (target.path === "/" || target.node?.fixed) {
      throw new FileError("EBUSY", to);
    }
    if (kind !== "directory" && to.endsWith("/")) {
      throw new FileError("ENOTDIR", to);
    }
    if (source.path === target.path) return;
    if (target.path.startsWith(`${source.path}/`)) {
      throw new FileError("EINVAL", to);
    }
    if (there === "directory" && kind !== "directory") {
      throw new FileError("EISDIR", to);
    }
    if (there !== undefined && there !== "directory" && kind === "directory") {
      throw new FileError("ENOTDIR", to);
    }
    if ((source.host === undefined) !== (target.host === undefined)) {
      throw new FileError("EXDEV", to);
    }
    if (source.host !== undefined) {
      return raising(from, () => D.renameSync(source.host!, target.host!));
    }
    if (target.node?.children && target.node.children.size > 0) {
      throw new FileError("ENOTEMPTY", to);
    }
    alive(target.parent!, to);
    if (target.node) this.#drop(target);
    const node = source.node!;
    this.#drop(source);
    node.gone = false;
    this.#put(target, node, to);
  }

  symlink(target: string, path: string): void {
    check(target);
    if (target === "") throw new FileError("ENOENT", path);
    const place = this.#walk(path, false);
    if (kindOf(place) !== undefined) throw new FileError("EEXIST", path);
    if (place.host !== undefined) {
      return raising(path, () => D.symlinkSync(target, place.host!));
    }
    const size = encoder.encode(target).length;
    this.#put(place, make("symlink", { mode: 0o777, target, size }), path);
  }

  readLink(path: string): string {
    const place = this.#walk(path, false);
    if (kindOf(place) === undefined) throw this.#missing(place, path, "EINVAL");
    if (kindOf(place) !== "symlink") throw new FileError("EINVAL", path);
    return place.node?.target ??
      raising(path, () => D.readLinkSync(place.host!));
  }

  setTimes(path: string, atime: number, mtime: number): void {
    const place = this.#walk(path, true);
    if (kindOf(place) === undefined) throw this.#missing(place, path);
    if (place.host === undefined) {
      Object.assign(place.node!, { atime, mtime });
      return;
    }
    const times = [new Date(atime), new Date(mtime)] as const;
    raising(
      path,
      () =>
        byPathOrFile(() => D.utimeSync(place.host!, ...times), () => {
          using file = D.openSync(place.host!);
          file.utimeSync(...times);
        }),
    );
  }

  chmod(path: string, mode: number): void {
    mode &= 0o7777;
    const place = this.#walk(path, true);
    if (kindOf(place) === undefined) throw this.#missing(place, path);
    if (place.host === undefined) {
      if (place.node!.fixed) throw new FileError("EPERM", path);
      place.node!.mode = mode;
      return;
    }
    if (place.found?.mode === mode) return;
    raising(path, () =>
      byPathOrFile(
        () => D.chmodSync(place.host!, mode),
        () => chmodFile(place.host!, mode),
      ));
  }

  readFile(path: string): Uint8Array {
    const file = this.open(path, { read: true });
    try {
      const { kind, size } = file.stat();
      if (kind === "device") throw new FileError("EINVAL", path);
      // One byte more, so that the end is seen without another round.
      let bytes = new Uint8Array(size + 1), length = 0;
      for (;;) {
        const n = file.read(bytes.subarray(length), length);
        if (n === 0) return bytes.subarray(0, length);
        length += n;
        if (length < bytes.length) continue;
        const more = new Uint8Array(2 * length);
        more.set(bytes);
        bytes = more;
      }
    } finally {
      file.close();
    }
  }

  writeFile(path: string, bytes: Uint8Array): void {
    const file = this.open(path, { write: true, create: true, truncate: true });
    try {
      for (let at = 0; at < bytes.length;) {
        at += file.write(bytes.subarray(at), at);
      }
    } finally {
      file.close();
    }
  }

  overlay(path: string, content: Uint8Array): void {
    const names = path.split("/").filter((name) => name !== "" && name !== ".");
    for (let i = 1; i < names.length; i++) {
      const above = `/${names.slice(0, i).join("/")}`;
      if (!this.#overlay.has(above)) {
        this.#overlay.set(above, directory({ mode: 0o555 }));
      }
    }
    const file = make("file", {
      mode: 0o444,
      data: content,
      size: content.length,
    });
    this.#overlay.set(`/${names.join("/")}`, file);
  }

  realPath(path: string): string {
    return this.#walk(path, true).path;
  }

  hostPath(path: string): string | undefined {
    const { found, host } = this.#walk(path, true);
    return found && host;
  }

  /** Follows a path. Its last name may be missing; what is before it must be there. */
  #walk(path: string, follow: boolean): Place {
    check(path);
    if (path === "") throw new FileError("ENOENT");
    let links = 0;
    const left = path.split("/").reverse();
    let place: Place = {
      path: "/",
      name: "",
      node: this.#root,
      host: this.#root.host,
    };
    const above: Place[] = [];
    while (left.length > 0) {
      const name = left.pop()!;
      if (name === "") continue;
      if (kindOf(place) !== "directory" && !this.#laidDirectory(place)) {
        throw new FileError(
          kindOf(place) === undefined ? "ENOENT" : "ENOTDIR",
          path,
        );
      }
      if (name === ".") continue;
      if (name === "..") {
        place = above.pop() ?? place;
        continue;
      }
      if (
        name.length > LONGEST_NAME || encoder.encode(name).length > LONGEST_NAME
      ) {
        throw new FileError("ENAMETOOLONG", path);
      }
      const next = step(place, name, path);
      if (
        kindOf(next) === "symlink" &&
        (follow || left.some((name) => name !== ""))
      ) {
        if (++links > MOST_LINKS) throw new FileError("ELOOP", path);
        const target = next.node?.target ??
          raising(path, () => D.readLinkSync(next.host!));
        if (target.startsWith("/")) {
          place = above[0] ?? place;
          above.length = 0;
        }
        if (left.length + target.length > LONGEST_PATH) {
          throw new FileError("ENAMETOOLONG", path);
        }
        left.push(...target.split("/").reverse());
        continue;
      }
      above.push(place);
      place = next;
    }
    if (path.endsWith("/")) {
      const kind = kindOf(place);
      if (kind !== undefined && kind !== "directory" && kind !== "symlink") {
        throw new FileError("ENOTDIR", path);
      }
    }
    return place;
  }

  #laidDirectory({ path }: Place): boolean {
    return this.#overlay.get(path)?.kind === "directory";
  }

  /** The error for what is to be changed and is not there, but perhaps laid over. */
  #missing(place: Place, path: string, laid = "EROFS"): FileError {
    return new FileError(this.#overlay.has(place.path) ? laid : "ENOENT", path);
  }

  #put({ parent, name }: Place, node: Node, path: string): void {
    alive(parent!, path);
    parent!.children!.set(name, node);
    parent!.mtime = now();
  }

  #drop({ parent, name, node }: Place): void {
    parent!.children!.delete(name);
    parent!.mtime = now();
    node!.gone = true;
  }
}

/** Goes from a directory to what has a name in it. */
function step(from: Place, name: string, path: string): Place {
  const at = from.path === "/" ? `/${name}` : `${from.path}/${name}`;
  const node = from.node?.children?.get(name);
  if (node) {
    const { host } = node;
    const found = host === undefined
      ? undefined
      : raising(path, () => look(host));
    return { path: at, name, parent: from.node, node, host, found };
  }
  if (from.host === undefined) return { path: at, name, parent: from.node };
  const host = from.host.endsWith("/")
    ? from.host + name
    : `${from.host}/${name}`;
  return { path: at, name, host, found: raising(path, () => look(host)) };
}

function kindOf({ node, found }: Place): Kind | undefined {
  return found?.kind ?? node?.kind;
}

/** Nothing is made in a directory that was removed, or that nothing leads to. */
function alive(parent: Node | undefined, path: string): void {
  if (!parent || parent.gone) throw new FileError("ENOENT", path);
}

function check(path: string): void {
  if (path.includes("\0")) throw new FileError("EINVAL");
  if (path.length > LONGEST_PATH) throw new FileError("ENAMETOOLONG");
}

/** A file in memory. */
class MemoryFile implements OpenFile {
  #node: Node;
  #mode: { read: boolean; write: boolean; append: boolean };

  constructor(
    node: Node,
    mode: { read: boolean; write: boolean; append: boolean },
  ) {
    this.#node = node;
    this.#mode = mode;
  }

  read(buffer: Uint8Array, at: number): number {
    if (!this.#mode.read) throw new FileError("EBADF");
    const { data, size } = this.#node;
    const n = Math.min(buffer.length, Math.max(0, size - at));
    if (n > 0) buffer.set(data!.subarray(at, at + n));
    return n;
  }

  write(bytes: Uint8Array, at: number): number {
    if (!this.#mode.write) throw new FileError("EBADF");
    const node = this.#node;
    if (this.#mode.append) at = node.size;
    if (bytes.length === 0) return 0;
    if (at + bytes.length > node.size) resize(node, at + bytes.length);
    node.data!.set(bytes, at);
    node.mtime = now();
    return bytes.length;
  }

  stat(): Stat {
    return statOfNode(this.#node);
  }

  truncate(size: number): void {
    if (!this.#mode.write) throw new FileError("EINVAL");
    resize(this.#node, size);
  }

  setTimes(atime: number, mtime: number): void {
    if (this.#node.readOnly) throw new FileError("EROFS");
    Object.assign(this.#node, { atime, mtime });
  }

  sync(): void {}
  close(): void {}
}

/** Gives a file another size; what is new is zero. Growing takes twice the place, so that appending is cheap. */
function resize(node: Node, size: number): void {
  if (size > LARGEST) throw new FileError("EFBIG");
  const data = node.data!;
  if (size > data.length) {
    let grown: Uint8Array;
    try {
      grown = new Uint8Array(
        Math.min(LARGEST, Math.max(size, 2 * data.length, 64)),
      );
    } catch {
      throw new FileError("ENOSPC");
    }
    grown.set(data.subarray(0, node.size));
    node.data = grown;
  } else if (size < node.size) {
    if (size === 0) node.data = new Uint8Array();
    else data.fill(0, size, node.size);
  }
  node.size = size;
  node.mtime = now();
}

class DeviceFile implements OpenFile {
  readonly standard?: number;
  #node: Node;

  constructor(node: Node) {
    this.#node = node;
    this.standard = node.device!.standard;
  }

  read(buffer: Uint8Array): number {
    if (!this.#node.device!.read) throw new FileError("ENXIO");
    return this.#node.device!.read(buffer);
  }

  write(bytes: Uint8Array): number {
    if (!this.#node.device!.write) throw new FileError("ENXIO");
    return this.#node.device!.write(bytes);
  }

  stat(): Stat {
    return statOfNode(this.#node);
  }

  truncate(): void {}
  setTimes(): void {}
  sync(): void {}
  close(): void {}
}

/** A file of the machine's. */
class HostFile implements OpenFile {
  #file: Deno.FsFile;
  #append: boolean;
  /** Where the machine reads or writes next; -1 where that is not known. */
  #at = 0;

  constructor(host: string, options: Deno.OpenOptions) {
    this.#append = options.append ?? false;
    // Deno truncates no file that it opens to append.
    const later = this.#append && options.truncate;
    this.#file = raising(
      host,
      () => D.openSync(host, later ? { ...options, truncate: false } : options),
    );
    if (later) this.truncate(0);
  }

  read(buffer: Uint8Array, at: number): number {
    return raising("", () => {
      this.#seek(at);
      const n = this.#file.readSync(buffer) ?? 0;
      this.#at = at + n;
      return n;
    });
  }

  write(bytes: Uint8Array, at: number): number {
    return raising("", () => {
      if (!this.#append) this.#seek(at);
      const n = this.#file.writeSync(bytes);
      // The machine appends at the end that the file has by then.
      this.#at = this.#append ? -1 : at + n;
      return n;
    });
  }

  #seek(at: number): void {
    if (this.#at === at) return;
    this.#at = -1;
    this.#file.seekSync(at, D.SeekMode.Start);
    this.#at = at;
  }

  stat(): Stat {
    return raising("", () => statOf(this.#file.statSync()));
  }

  truncate(size: number): void {
    raising("", () => this.#file.truncateSync(size));
  }

  setTimes(atime: number, mtime: number): void {
    raising("", () => this.#file.utimeSync(new Date(atime), new Date(mtime)));
  }

  sync(): void {
    raising("", () => this.#file.syncSync());
  }

  close(): void {
    this.#file.close();
  }
}

function statOfNode(node: Node): Stat {
  const { kind, size, mtime, atime, mode, ino } = node;
  return {
    kind,
    size,
    mtime,
    atime,
    mode,
    dev: 0,
    ino,
    nlink: node.gone ? 0 : 1,
  };
}

function statOf(info: Deno.FileInfo): Stat {
  return {
    kind: kindOfEntry(info),
    size: info.size,
    mtime: info.mtime?.getTime() ?? 0,
    atime: info.atime?.getTime() ?? 0,
    mode: (info.mode ?? 0o644) & 0o7777,
    dev: info.dev,
    ino: info.ino ?? 0,
    nlink: info.nlink ?? 1,
  };
}

function kindOfEntry(
  entry: { isFile: boolean; isDirectory: boolean; isSymlink: boolean },
): Kind {
  return entry.isSymlink
    ? "symlink"
    : entry.isDirectory
    ? "directory"
    : entry.isFile
    ? "file"
    : "device";
}

/** What the machine has at a path, links not followed. */
function look(host: string): Stat | undefined {
  try {
    return statOf(D.lstatSync(host));
  } catch (error) {
    if (error instanceof D.NotFound) return undefined;
    if (!(error instanceof D.NotCapable)) throw error;
  }
  // It may not be looked at, but perhaps be written.
  const seen = (kind: Kind, mode: number): Stat => {
    return {
      kind,
      size: 0,
      mtime: 0,
      atime: 0,
      mode,
      dev: 0,
      ino: 0,
      nlink: 1,
    };
  };
  try {
    D.openSync(host, { write: true }).close();
    return seen("file", 0o222);
  } catch (error) {
    if (error instanceof D.NotFound) return undefined;
    if (codeOf(error) === "EISDIR") return seen("directory", 0o333);
    throw error;
  }
}

/** A path without links, so far as it may be looked at. */
function realHost(path: string): string {
  try {
    return D.realPathSync(path);
  } catch {
    return path;
  }
}

/** Does something that Deno may refuse, whose errors become FileErrors. */
function raising<T>(path: string, operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    // What is not of Deno's own is the guest's stack that is full, or a bug.
    if (error instanceof FileError || !isDeno(error)) throw error;
    throw new FileError(codeOf(error), path);
  }
}

function isDeno(error: unknown): boolean {
  return error instanceof Error &&
    !(error instanceof RangeError || error instanceof TypeError);
}
