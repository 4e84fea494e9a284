/**
 * Makes the image of one wheel (see mount.ts): unpacks it into a Python of its
 * own and compiles its modules. Neither the wheel's code nor any guest's runs
 * here.
 *
 * Arguments: Pyodide's directory, the snapshot, the wheel, its file name, where
 * it belongs ("site" or "dynlib"). The image goes to fd 3.
 *
 * @module
 */

import type { FileNode } from "./core.ts";
import { write } from "./memory.ts";
import { imageOf } from "./mount.ts";
import { loadSaved } from "./pyodide.ts";

/** The directories that are no files of an installation's. */
const OTHERS = ["/dev", "/proc", "/tmp"];

const [directory, snapshot, wheel, name, target] = Deno.args;
using memory = Deno.openSync(snapshot!);
const pyodide = await loadSaved(directory!, memory);
const { FS } = pyodide;
const before = new Set(files("/").map(({ node }) => node));
const content = Deno.readFileSync(wheel!);
const info = pyodide.pyimport("rillbox.boot").unpack!(content, name, target);
const made = files("/").filter(({ node }) => !before.has(node));

using output = Deno.openSync("/dev/fd/3", { write: true });
for (const part of imageOf(FS, info as string, made)) write(output, part);

/** The files below a directory, each with its directory. */
function files(path: string): { directory: string; node: FileNode }[] {
  if (OTHERS.includes(path)) return [];
  const { node } = FS.lookupPath(path);
  return Object.values(node.contents).flatMap((child) =>
    FS.isDir(child.mode)
      ? files(path === "/" ? `/${child.name}` : `${path}/${child.name}`)
      : FS.isFile(child.mode)
      ? [{ directory: path, node: child }]
      : []
  );
}
