/**
 * What languages have in common that Emscripten compiled: their JavaScript is
 * evaluated, their standard streams are the process's, and files of the machine's are
 * in their file system.
 *
 * @module
 */

import {
  type EmscriptenFS,
  mountHost,
  type Overlay,
} from "../../deno/guest/hostfs.ts";
import { type Host, type Start, WORKSPACE } from "./language.ts";

/** Emscripten's file system, as far as it is used. */
export interface FS extends EmscriptenFS {
  makedev(major: number, minor: number): number;
  registerDevice(device: number, operations: object): void;
  mkdev(path: string, mode: number, device: number): void;
  unlink(path: string): void;
  close(stream: unknown): void;
  open(path: string, flags: number): { fd: number };
  streams: unknown[];
  readFile(path: string): Uint8Array;
  writeFile(path: string, data: string | Uint8Array): void;
}

/** The process's streams, which each program has anew. */
export interface Streams {
  read(buffer: Uint8Array): number;
  stdout(bytes: Uint8Array): void;
  stderr(bytes: Uint8Array): void;
}

type Functions = Record<string, (...args: number[]) => unknown>;

/** Replaces a piece of a package's text that occurs once; another text is an error. */
export function replaceOnce(text: string, from: string, to: string): string {
  const at = text.indexOf(from);
  if (at < 0 || text.indexOf(from, at + 1) >= 0) {
    throw new Error(`the package is not as expected: ${JSON.stringify(from)}`);
  }
  return text.slice(0, at) + to + text.slice(at + from.length);
}

/**
 * Evaluates a package's script and gives what it returns; parameters are what it has
 * in place of globals. No text of a guest's comes here.
 */
export function evaluate(
  code: string,
  path: string,
  parameters: Record<string, unknown>,
): unknown {
  const names = Object.keys(parameters);
  return new Function(...names, `${code}\n//# sourceURL=file://${path}`)(
    ...Object.values(parameters),
  );
}

/** Compiles a module, of which no copy is kept beside it. */
export async function compile(path: string): Promise<WebAssembly.Module> {
  return await WebAssembly.compile(await Deno.readFile(path));
}

/**
 * Replaces functions that a module imports. That each is imported is sure, so that
 * another version of a package is noticed which has them by other names.
 */
export function replaceImports(
  imports: Record<string, Functions>,
  module: string,
  replacements: Functions,
): void {
  for (const [name, replacement] of Object.entries(replacements)) {
    if (!(name in imports[module]!)) {
      throw new Error(`the package is not as expected: it has no ${name}`);
    }
    imports[module]![name] = replacement;
  }
}

/** The last that was written of a text, from which an error is told. */
export class Tail {
  #pieces: Uint8Array[] = [];
  #size = 0;

  /** Keeps the last so many bytes, or somewhat more. */
  constructor(readonly most: number) {}

  add(bytes: Uint8Array): void {
    this.#pieces.push(bytes.slice(-this.most));
    this.#size += this.#pieces.at(-1)!.length;
    while (this.#size - this.#pieces[0]!.length >= this.most) {
      this.#size -= this.#pieces.shift()!.length;
    }
  }

  clear(): void {
    [this.#pieces, this.#size] = [[], 0];
  }

  text(): string {
    const decoder = new TextDecoder();
    return this.#pieces.map((piece) => decoder.decode(piece, { stream: true }))
      .join("");
  }
}

/** Whether an error is that of a stack that is full: V8's, or C's, which ends at 0. */
export function isStackOverflow(thrown: unknown): boolean {
  return thrown instanceof RangeError ||
    thrown instanceof WebAssembly.RuntimeError &&
      thrown.message.includes("out of bounds");
}

/** Makes descriptors 0, 1 and 2 the program's, which are no terminals. */
export function connectStreams(fs: FS, streams: Streams): void {
  const part = (buffer: Uint8Array, offset: number, length: number) =>
    new Uint8Array(buffer.buffer, buffer.byteOffset + offset, length);
  const device = (
    name: string,
    minor: number,
    flags: number,
    operations: object,
  ) => {
    const id = fs.makedev(90, minor), path = `/dev/${name}`;
    fs.registerDevice(id, {
      open() {},
      close() {},
      fsync: () => 0,
      llseek() {
        throw new fs.ErrnoError(70); // ESPIPE
      },
      ...operations,
    });
    fs.unlink(path);
    fs.mkdev(path, 0o666, id);
    if (fs.streams[minor]) fs.close(fs.streams[minor]);
    if (fs.open(path, flags).fd !== minor) {
      throw new Error(`the package is not as expected: ${path}`);
    }
  };
  type Operation = [
    stream: unknown,
    buffer: Uint8Array,
    offset: number,
    length: number,
  ];
  device("stdin", 0, 0, {
    read: (...[, buffer, offset, length]: Operation) =>
      length === 0 ? 0 : streams.read(part(buffer, offset, length)),
  });
  device("stdout", 1, 1, {
    write(...[, buffer, offset, length]: Operation): number {
      if (length > 0) streams.stdout(part(buffer, offset, length));
      return length;
    },
  });
  device("stderr", 2, 1, {
    write(...[, buffer, offset, length]: Operation): number {
      if (length > 0) streams.stderr(part(buffer, offset, length));
      return length;
    },
  });
}

/** The program that runs: its host, and its own file's path and content. */
export interface Running {
  host: Host;
  file: string;
  code: Uint8Array;
}

/**
 * Mounts the workspace and what was granted. Of the program that runs the files
 * in memory are found, and its own file is read first, whatever the workspace has there.
 */
export function mountFiles(
  fs: FS,
  start: Start,
  program: () => Running | undefined,
): void {
  let begun: unknown;
  const overlay: Overlay = (path, there) => {
    const now = program();
    if (!now) return undefined;
    if (path === now.file && begun !== now) {
      if (there) begun = now;
      return now.code;
    }
    if (there) return undefined;
    try {
      return now.host.files.readFile(path);
    } catch {
      return undefined;
    }
  };
  mountHost(fs, start.workspace, start.granted, overlay);
  if (!start.workspace) fs.mkdirTree(WORKSPACE);
  fs.mkdirTree("/home/user");
  fs.chdir(WORKSPACE);
}
