/**
 * Images of wheels: what a wheel unpacks to, compiled, in one file. image.ts
 * writes one, image.go checks and keeps it, and a worker mounts it: its files
 * appear at once and are read when they are first used.
 *
 * An image is the length of its index in bytes (four of them, the lowest first),
 * the index as JSON, and the contents of its files in the index's order.
 *
 * @module
 */

import type { FileNode, FileSystem } from "./core.ts";
import { fill } from "./memory.ts";

/** What an image holds, and where it belongs. */
export interface Index {
  /** The wheel's dist-info directory; empty when it has none. */
  info: string;
  /** Directories, each with the names and sizes (in bytes) of its files. */
  directories: { path: string; names: string[]; sizes: number[] }[];
}

/** The mode of an ordinary file, as unpacking leaves it. */
const FILE = 0o100666;

/** Errors of reading a file, by their numbers in WASI. */
const EIO = 29, ENOMEM = 48;

const encoder = new TextEncoder();

/** The image of files, each in its directory, as parts to be written in turn. */
export function imageOf(
  fs: FileSystem,
  info: string,
  files: { directory: string; node: FileNode }[],
): Uint8Array[] {
  const index: Index = { info, directories: [] };
  const contents: Uint8Array[] = [];
  for (const [path, group] of Map.groupBy(files, (f) => f.directory)) {
    const names = group.map(({ node }) => node.name);
    const found = names.map((name) => fs.readFile(`${path}/${name}`));
    const sizes = found.map((content) => content.length);
    index.directories.push({ path, names, sizes });
    contents.push(...found);
  }
  const text = encoder.encode(JSON.stringify(index));
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, text.length, true);
  return [length, text, ...contents];
}

/**
 * Mounts the image at path, and adds files to its dist-info directory: metadata
 * maps their names to their texts.
 */
export function mountImage(
  fs: FileSystem,
  path: string,
  metadata: Record<string, string>,
): void {
  const length = new DataView(readAt(path, 0, 4).buffer).getUint32(0, true);
  const text = new TextDecoder().decode(readAt(path, 4, length));
  const index: Index = JSON.parse(text);
  let offset = 4 + length;
  for (const { path: directory, names, sizes } of index.directories) {
    const parent = makeDirectory(fs, directory);
    names.forEach((name, i) => {
      const from = offset, size = sizes[i]!;
      place(fs, parent, name, size, () => readAt(path, from, size));
      offset += size;
    });
  }
  if (index.info !== "") placeTexts(fs, index.info, metadata);
}

/** Puts files with these texts, by name, into a directory. */
export function placeTexts(
  fs: FileSystem,
  path: string,
  texts: Record<string, string>,
): void {
  const directory = makeDirectory(fs, path);
  for (const [name, text] of Object.entries(texts)) {
    const content = encoder.encode(text);
    place(fs, directory, name, content.length, () => content);
  }
}

/** Makes a directory with those above it, as far as they are not there. */
export function makeDirectory(fs: FileSystem, path: string): FileNode {
  fs.mkdirTree(path);
  return fs.lookupPath(path).node;
}

/** Puts a file into a directory; read gives its content when it is wanted. */
export function place(
  fs: FileSystem,
  parent: FileNode,
  name: string,
  size: number,
  read: () => Uint8Array,
): void {
  const entries = parent.contents as Record<string, FileNode>;
  const node = Object.hasOwn(entries, name)
    ? entries[name]!
    : fs.filesystems.MEMFS.createNode(parent, name, FILE, 0);
  if (!fs.isFile(node.mode)) throw new Error(`${name} is a directory already`);
  node.usedBytes = size;
  const become = (value: Uint8Array) =>
    Object.defineProperty(node, "contents", { value, writable: true });
  Object.defineProperty(node, "contents", {
    configurable: true,
    enumerable: true,
    get() {
      try {
        const content = read();
        become(content);
        return content;
      } catch (error) {
        throw new fs.ErrnoError(error instanceof RangeError ? ENOMEM : EIO);
      }
    },
    set: become,
  });
}

/** Reads a part of a file. */
function readAt(path: string, offset: number, size: number): Uint8Array {
  using file = Deno.openSync(path);
  file.seekSync(offset, Deno.SeekMode.Start);
  return fill(file, new Uint8Array(size));
}
