/**
 * Files in Python's tree that are made or read when they are first used.
 *
 * @module
 */

import type { FileNode, FileSystem } from "./core.ts";

/** The mode of an ordinary file, as unpacking leaves it. */
const FILE = 0o100666;

/** Errors of reading a file, by their numbers in WASI. */
const EIO = 29, ENOMEM = 48;

const encoder = new TextEncoder();

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
