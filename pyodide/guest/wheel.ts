/**
 * Installs wheels without unpacking them: their files appear at once, and each is
 * read, and decompressed, when it is first used. Unpacking them all in WebAssembly
 * takes a second for twenty megabytes, of which a program uses a tenth.
 *
 * What is not as the wheels that everybody makes (a .data directory, two
 * dist-infos, ZIP64, a name that leads elsewhere) is left to Pyodide to unpack,
 * or to refuse.
 *
 * An image is an archive, too: of all that a wheel unpacks to, compiled, under its
 * full path, and not compressed. images.py writes it, image.go keeps it.
 *
 * @module
 */

import type { FileSystem } from "./core.ts";
import { fill } from "./memory.ts";
import { makeDirectory, place, placeTexts } from "./mount.ts";

/** A file of an archive: where it is there, and its sizes in bytes. */
interface Entry {
  name: string;
  compressed: boolean;
  at: number;
  packedSize: number;
  size: number;
}

/** Gives a part of an archive as bytes of its own. */
type Read = (from: number, size: number) => Uint8Array;

/**
 * Installs a wheel, given its file name, into a directory, and adds files to its
 * dist-info directory: metadata maps their names to their texts. Returns whether
 * it is a wheel that can be installed so.
 */
export function mountWheel(
  fs: FileSystem,
  wheel: Uint8Array,
  filename: string,
  directory: string,
  metadata: Record<string, string>,
): boolean {
  const read = (from: number, size: number) => wheel.slice(from, from + size);
  const entries = list(read, wheel.length);
  const info = entries && infoOf(entries, filename);
  if (!info) return false;
  placeAll(fs, entries, read, directory);
  placeTexts(fs, `${directory}/${info}`, metadata);
  return true;
}

/**
 * Mounts the image at path, and adds files to the dist-info directory that it has in
 * the directory of packages.
 */
export function mountImage(
  fs: FileSystem,
  path: string,
  packages: string,
  metadata: Record<string, string>,
): void {
  const read = (from: number, size: number) => {
    using file = Deno.openSync(path);
    file.seekSync(from, Deno.SeekMode.Start);
    return fill(file, new Uint8Array(size));
  };
  const entries = list(read, Deno.statSync(path).size);
  if (!entries) throw new Error(`${path} is no image of a wheel`);
  placeAll(fs, entries, read, "");
  const info = topsOf(entries, `${packages.slice(1)}/`).find(isInfo);
  if (info) placeTexts(fs, `${packages}/${info}`, metadata);
}

function placeAll(
  fs: FileSystem,
  entries: Entry[],
  read: Read,
  directory: string,
): void {
  const directories = new Map<string, ReturnType<typeof makeDirectory>>();
  for (const entry of entries) {
    const end = entry.name.lastIndexOf("/");
    const path = end < 0
      ? directory
      : `${directory}/${entry.name.slice(0, end)}`;
    let parent = directories.get(path);
    if (!parent) directories.set(path, parent = makeDirectory(fs, path));
    const name = entry.name.slice(end + 1);
    if (name) place(fs, parent, name, entry.size, () => unpack(entry, read));
  }
}

/** The first parts of names below a prefix, each once. */
function topsOf(entries: Entry[], prefix: string): string[] {
  const tops = new Set<string>();
  for (const { name } of entries) {
    if (name.startsWith(prefix)) {
      tops.add(name.slice(prefix.length).split("/", 1)[0]!);
    }
  }
  return [...tops];
}

const isInfo = (top: string) => top.endsWith(".dist-info");

/** The one dist-info directory of a wheel; undefined when it is not so simple. */
function infoOf(entries: Entry[], filename: string): string | undefined {
  const tops = topsOf(entries, ""), infos = tops.filter(isInfo);
  const parts = filename.split("-");
  if (
    parts.length < 5 || infos.length !== 1 ||
    tops.some((top) => top.endsWith(".data"))
  ) return undefined;
  const canonical = (name: string) =>
    name.replaceAll(/[-_.]+/g, "-").toLowerCase();
  const project = canonical(parts.slice(0, -4).join("-"));
  return canonical(infos[0]!).startsWith(project) ? infos[0] : undefined;
}

// ZIP, as in PKWARE's APPNOTE.TXT 6.3: the sizes and signatures of records, and
// what is too large for their fields (ZIP64).
const END = { signature: 0x06054b50, size: 22 };
const CENTRAL = { signature: 0x02014b50, size: 46 };
const LOCAL = { signature: 0x04034b50, size: 30 };
const LARGE = 0xffff;
const STORED = 0, DEFLATED = 8;
const ENCRYPTED = 1, UTF8 = 0x800;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** In a path: an empty part, "." or "..", or what may be taken for that. */
const ODD = /^$|^\/|\/\/|(^|\/)\.(\/|$)|\.\.|\0/;

/** The files of an archive; undefined when it is none, or an unusual one. */
function list(read: Read, length: number): Entry[] | undefined {
  try {
    const end = length - END.size; // without a comment
    const { u16, u32 } = numbers(read(end, END.size));
    const count = u16(10), size = u32(12), start = u32(16);
    const usual = u32(0) === END.signature && u16(4) === 0 &&
      u16(8) === count && count < LARGE && start + size === end;
    return usual ? listDirectory(read(start, size), count) : undefined;
  } catch { // what it should have is beyond its end, or a name is not UTF-8
    return undefined;
  }
}

/** The files in an archive's central directory. */
function listDirectory(
  directory: Uint8Array,
  count: number,
): Entry[] | undefined {
  const { u16, u32 } = numbers(directory);
  const entries: Entry[] = [];
  for (let i = 0, start = 0; i < count; i++) {
    const flags = u16(start + 8), method = u16(start + 10);
    const packedSize = u32(start + 20), size = u32(start + 24);
    const from = start + CENTRAL.size, end = from + u16(start + 28);
    const name = decoder.decode(directory.subarray(from, end));
    const isText = flags & UTF8 || name.length === end - from; // or of another encoding
    if (
      u32(start) !== CENTRAL.signature || flags & ENCRYPTED ||
      method !== STORED && method !== DEFLATED ||
      method === STORED && size !== packedSize || !isText || ODD.test(name)
    ) return undefined;
    const at = u32(start + 42);
    const compressed = method === DEFLATED;
    entries.push({ name, compressed, at, packedSize, size });
    start = end + u16(start + 30) + u16(start + 32);
  }
  return entries;
}

function numbers(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    u16: (at: number) => view.getUint16(at, true),
    u32: (at: number) => view.getUint32(at, true),
  };
}

function unpack(entry: Entry, read: Read): Uint8Array {
  const { u16, u32 } = numbers(read(entry.at, LOCAL.size));
  const from = entry.at + LOCAL.size + u16(26) + u16(28);
  let content = read(from, entry.packedSize);
  if (entry.compressed) {
    // Deno's Node takes 25 ms to load, so it is when a file is used.
    const { inflateRawSync } = process.getBuiltinModule("node:zlib");
    const inflated = inflateRawSync(content, {
      maxOutputLength: entry.size || 1,
    });
    content = new Uint8Array(
      inflated.buffer,
      inflated.byteOffset,
      inflated.length,
    );
  }
  if (u32(0) !== LOCAL.signature || content.length !== entry.size) {
    throw new Error(`Cannot unpack ${entry.name}: the archive is corrupt`);
  }
  return content;
}
