/**
 * The files that R itself needs, in its file system: they are read when R first looks
 * into them. Its libraries of native code come from here alone.
 *
 * @module
 */

import type { FS } from "../emscripten.ts";

interface LazyNode {
  contents: Uint8Array;
  usedBytes: number;
}

export interface LazyFS extends FS {
  createFile(
    parent: string,
    name: string,
    properties: object,
    canRead: boolean,
    canWrite: boolean,
  ): LazyNode;
  stat(path: string): { mode: number };
  readdir(path: string): string[];
  analyzePath(path: string): { exists: boolean };
}

/** Puts a file into the file system whose content is read when it is first needed. */
export function installLazy(
  fs: LazyFS,
  path: string,
  size: number,
  load: () => Uint8Array,
): void {
  const slash = path.lastIndexOf("/");
  const parent = path.slice(0, slash);
  fs.mkdirTree(parent);
  const node = fs.createFile(parent, path.slice(slash + 1), {}, true, false);
  const become = (value: Uint8Array) =>
    Object.defineProperty(node, "contents", { value, writable: true });
  Object.defineProperty(node, "contents", {
    configurable: true,
    get() {
      const content = load();
      become(content);
      return content;
    },
    set: become,
  });
  node.usedBytes = size;
}

/** Files in one compressed piece, and a text that says where each is in it. */
export function installImage(
  fs: LazyFS,
  directory: string,
  at: string,
): Map<string, () => Uint8Array> {
  const { files } = JSON.parse(
    Deno.readTextFileSync(`${directory}${at}.js.metadata`),
  ) as {
    files: { filename: string; start: number; end: number }[];
  };
  let all: Uint8Array | undefined;
  const loaders = new Map<string, () => Uint8Array>();
  for (const { filename, start, end } of files) {
    const load = () => {
      all ??= gunzip(Deno.readFileSync(`${directory}${at}.data.gz`));
      return all.slice(start, end);
    };
    loaders.set(at + filename, load);
    installLazy(fs, at + filename, end - start, load);
  }
  return loaders;
}

/** Deno's Node modules are slow to load; most programs read no image. */
function gunzip(bytes: Uint8Array): Uint8Array {
  return process.getBuiltinModule("node:zlib").gunzipSync(bytes);
}

/** The files below a directory, by their paths. */
export function* filesBelow(fs: LazyFS, directory: string): Generator<string> {
  for (const name of fs.readdir(directory)) {
    if (name === "." || name === "..") continue;
    const path = `${directory}/${name}`;
    const { mode } = fs.stat(path);
    if (fs.isDir(mode)) yield* filesBelow(fs, path);
    else yield path;
  }
}
