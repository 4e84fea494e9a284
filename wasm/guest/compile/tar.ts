/**
 * Where the files of a tar archive are: the archive's headers become an index, by which
 * a file is read when it is wanted.
 *
 * @module
 */

/** Paths in the archive → where the content starts, and how many bytes it has. */
export type Index = Record<string, [number, number]>;

const BLOCK = 512;
const decoder = new TextDecoder();

/** Finds the plain files of an archive whose bytes `read` gives. */
export function indexTar(
  size: number,
  read: (at: number, length: number) => Uint8Array,
): Index {
  const index: Index = {};
  for (let at = 0; at + BLOCK <= size;) {
    const header = read(at, BLOCK);
    const name = text(header, 0, 100);
    if (name === "") break;
    const prefix = text(header, 257, 5) === "ustar"
      ? text(header, 345, 155)
      : "";
    const length = parseInt(text(header, 124, 12), 8);
    if (!(length >= 0) || at + BLOCK + length > size) {
      throw new Error(`The archive is cut off at ${name}`);
    }
    const type = String.fromCharCode(header[156]!);
    if (type === "0" || type === "\0") {
      index[prefix ? `${prefix}/${name}` : name] = [at + BLOCK, length];
    }
    at += BLOCK + Math.ceil(length / BLOCK) * BLOCK;
  }
  return index;
}

function text(block: Uint8Array, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return decoder.decode(end < 0 ? field : field.subarray(0, end)).trim();
}
