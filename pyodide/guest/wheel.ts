/**
 * Installs a wheel as it is: its files appear at once, and each is decompressed
 * when it is first used. Unpacking them all in WebAssembly takes a second for
 * twenty megabytes, of which a program uses a tenth.
 *
 * What is not as the wheels that everybody makes (a .data directory, two
 * dist-infos, ZIP64, a name that leads elsewhere) is left to Pyodide to unpack,
 * or to refuse.
 *
 * @module
 */

import type { FileSystem } from "./core.ts";
import { makeDirectory, place, placeTexts } from "./mount.ts";

/** A file of an archive. */
interface Entry {
  name: string;
  compressed: boolean;
  /** Its content as it is in the archive, and its size in bytes when it is not. */
  packed: Uint8Array;
  size: number;
}

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
  const entries = list(wheel);
  const info = entries && infoOf(entries, filename);
  if (!info) return false;
  const directories = new Map<string, ReturnType<typeof makeDirectory>>();
  for (const entry of entries) {
    const end = entry.name.lastIndexOf("/");
    const path = end < 0
      ? directory
      : `${directory}/${entry.name.slice(0, end)}`;
    let parent = directories.get(path);
    if (!parent) directories.set(path, parent = makeDirectory(fs, path));
    const name = entry.name.slice(end + 1);
    if (name) place(fs, parent, name, entry.size, () => unpack(entry));
  }
  placeTexts(fs, `${directory}/${info}`, metadata);
  return true;
}

/** The one dist-info directory of a wheel; undefined when it is not so simple. */
function infoOf(entries: Entry[], filename: string): string | undefined {
  const tops = new Set(entries.map(({ name }) => name.split("/", 1)[0]!));
  const infos = [...tops].filter((top) => top.endsWith(".dist-info"));
  const parts = filename.split("-");
  if (
    parts.length < 5 || infos.length !== 1 ||
    [...tops].some((top) => top.endsWith(".data"))
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
const LARGE = { count: 0xffff, offset: 0xffffffff };
const STORED = 0, DEFLATED = 8;
const ENCRYPTED = 1, UTF8 = 0x800;

/** The files of an archive; undefined when it is none, or an unusual one. */
function list(archive: Uint8Array): Entry[] | undefined {
  const view = new DataView(
    archive.buffer,
    archive.byteOffset,
    archive.byteLength,
  );
  const u16 = (at: number) => view.getUint16(at, true);
  const u32 = (at: number) => view.getUint32(at, true);
  const end = archive.length - END.size; // without a comment
  if (end < 0 || u32(end) !== END.signature) return undefined;
  const count = u16(end + 10), start = u32(end + 16);
  const usual = u16(end + 4) === 0 && u16(end + 8) === count &&
    count < LARGE.count && start + u32(end + 12) === end;
  if (!usual) return undefined;

  const entries: Entry[] = [];
  for (let i = 0, at = start; i < count; i++) {
    if (at + CENTRAL.size > end || u32(at) !== CENTRAL.signature) {
      return undefined;
    }
    const flags = u16(at + 8), method = u16(at + 10);
    const packedSize = u32(at + 20), size = u32(at + 24), local = u32(at + 42);
    const nameEnd = at + CENTRAL.size + u16(at + 28);
    const bytes = archive.subarray(at + CENTRAL.size, nameEnd);
    at = nameEnd + u16(at + 30) + u16(at + 32);
    if (
      flags & ENCRYPTED || method !== STORED && method !== DEFLATED ||
      method === STORED && size !== packedSize ||
      local + LOCAL.size > start || u32(local) !== LOCAL.signature
    ) return undefined;
    const from = local + LOCAL.size + u16(local + 26) + u16(local + 28);
    if (from + packedSize > start) return undefined;
    const name = nameOf(bytes, flags);
    if (name === undefined) return undefined;
    const packed = archive.subarray(from, from + packedSize);
    entries.push({ name, compressed: method === DEFLATED, packed, size });
  }
  return entries;
}

/** The path of a file or (with a slash at its end) of a directory, if it is plain. */
function nameOf(bytes: Uint8Array, flags: number): string | undefined {
  if (!(flags & UTF8) && bytes.some((byte) => byte > 0x7f)) return undefined;
  let name;
  try {
    name = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
      .decode(bytes);
  } catch {
    return undefined;
  }
  const parts = name.replace(/\/$/, "").split("/");
  const plain = parts.every((part) =>
    part !== "" && part !== "." && !part.includes("..") &&
    !part.includes("\\") && !part.includes("\0")
  );
  return plain ? name : undefined;
}

function unpack({ compressed, packed, size }: Entry): Uint8Array {
  if (!compressed) return packed.slice();
  // Deno's Node takes 25 ms to load, so it is when a file is used.
  const { process } = globalThis as unknown as {
    process: { getBuiltinModule(name: "node:zlib"): Zlib };
  };
  const { inflateRawSync } = process.getBuiltinModule("node:zlib");
  const content = inflateRawSync(packed, { maxOutputLength: size || 1 });
  if (content.length !== size) throw new Error("its size is another");
  return new Uint8Array(content.buffer, content.byteOffset, size);
}

interface Zlib {
  inflateRawSync(
    content: Uint8Array,
    options: { maxOutputLength: number },
  ): Uint8Array<ArrayBuffer>;
}
