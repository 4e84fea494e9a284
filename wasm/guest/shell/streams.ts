/**
 * What file descriptors stand for: pipes between commands that run at the same time,
 * files, here-documents, and the program's own three. Whoever reads a piece too many
 * gives it back, so `read` takes a line and no more.
 *
 * @module
 */

import type { OpenFile } from "../files.ts";
import { concat, fromBytes } from "./syntax.ts";

type Bytes = Uint8Array;

/** Writing where nobody reads any more. */
export class BrokenPipe extends Error {}

/** How many bytes a pipe holds before its writer waits. */
const PIPE = 1 << 16;
const CHUNK = 1 << 16;
const NEWLINE = 10;

/** An open file description. The holder of the last descriptor closes it. */
export abstract class Stream {
  private holders = 1;
  /** Its file's path, if it has one. */
  path?: string;
  /** It was made for the command: a pipe or a here-document. */
  get own(): boolean {
    return false;
  }
  /** Reading may have to wait for a writer. */
  get waits(): boolean {
    return false;
  }

  /** Some bytes, null at the end. Only a pipe answers later. */
  read(): Bytes | null | Promise<Bytes | null> {
    throw new Error("Bad file descriptor");
  }
  /** Gives back what was read. */
  unread(_bytes: Bytes): void {}
  write(_bytes: Bytes): void | Promise<void> {
    throw new Error("Bad file descriptor");
  }
  hold(): this {
    this.holders++;
    return this;
  }
  release(): void {
    if (--this.holders === 0) this.close();
  }
  protected close(): void {}
}

/** The program's standard output or error. */
export class Output extends Stream {
  constructor(private put: (bytes: Bytes) => void) {
    super();
  }
  override write(bytes: Bytes): void {
    if (bytes.length > 0) this.put(bytes);
  }
}

/** What is read from a function: the program's standard input. */
export class Input extends Stream {
  private left: Bytes[] = [];
  private ended = false;
  constructor(private get: (buffer: Bytes) => number) {
    super();
  }
  override read(): Bytes | null {
    const back = this.left.pop();
    if (back !== undefined) return back;
    if (this.ended) return null;
    const buffer = new Uint8Array(CHUNK);
    const n = this.get(buffer);
    if (n === 0) this.ended = true;
    return n === 0 ? null : buffer.subarray(0, n);
  }
  override unread(bytes: Bytes): void {
    if (bytes.length > 0) this.left.push(bytes);
  }
}

/** Bytes that are there: a here-document. */
export class Given extends Stream {
  override get own(): boolean {
    return true;
  }
  constructor(private bytes: Bytes) {
    super();
  }
  override read(): Bytes | null {
    const all = this.bytes;
    this.bytes = all.subarray(all.length);
    return all.length > 0 ? all : null;
  }
  override unread(bytes: Bytes): void {
    this.bytes = this.bytes.length === 0 ? bytes : concat([bytes, this.bytes]);
  }
}

/** `/dev/null`. */
export class Nothing extends Stream {
  override read(): null {
    return null;
  }
  override write(): void {}
}

/** Keeps what is written, up to `limit` bytes. */
export class Collector extends Stream {
  private pieces: Bytes[] = [];
  private size = 0;
  constructor(private limit = 512 << 20) {
    super();
  }
  override write(bytes: Bytes): void {
    this.size += bytes.length;
    if (this.size > this.limit) {
      throw new RangeError("too much output for a variable");
    }
    // Writers may use their buffers again.
    this.pieces.push(bytes.slice());
  }
  take(): Uint8Array<ArrayBuffer> {
    const all = concat(this.pieces);
    this.pieces = [];
    return all;
  }
}

/** A file, with the place where it is read and written. */
export class FileStream extends Stream {
  private at = 0;
  /** What was given back: the bytes at the place. */
  private back: Bytes | undefined;
  constructor(
    private file: OpenFile,
    override path: string,
    private append: boolean,
  ) {
    super();
  }
  override read(): Bytes | null {
    const { back } = this;
    if (back !== undefined) {
      this.back = undefined;
      this.at += back.length;
      return back;
    }
    const buffer = new Uint8Array(CHUNK);
    const n = this.file.read(buffer, this.at);
    this.at += n;
    return n === 0 ? null : buffer.subarray(0, n);
  }
  override unread(bytes: Bytes): void {
    if (bytes.length === 0) return;
    this.at -= bytes.length;
    this.back = bytes;
  }
  override write(bytes: Bytes): void {
    this.back = undefined;
    if (this.append) this.at = this.file.stat().size;
    while (bytes.length > 0) {
      const n = this.file.write(bytes, this.at);
      this.at += n;
      bytes = bytes.subarray(n);
    }
  }
  protected override close(): void {
    this.file.close();
  }
}

/** Makes bytes for ever: `/dev/zero`, `/dev/urandom`. */
export class Endless extends Stream {
  constructor(private fill: (buffer: Uint8Array<ArrayBuffer>) => void) {
    super();
  }
  override read(): Bytes {
    const buffer = new Uint8Array(CHUNK);
    this.fill(buffer);
    return buffer;
  }
  override write(): void {}
}

/** The two ends of a pipe. */
export function pipe(): { reader: Stream; writer: Stream } {
  const pieces: Bytes[] = [];
  let size = 0, ended = false, broken = false;
  let wakeReader: (() => void) | undefined,
    wakeWriter: (() => void) | undefined;
  const wake = () => {
    wakeReader?.();
    wakeWriter?.();
    wakeReader = wakeWriter = undefined;
  };
  class Reader extends Stream {
    override get own(): boolean {
      return true;
    }
    override get waits(): boolean {
      return !ended;
    }
    override read(): Bytes | null | Promise<Bytes | null> {
      const piece = pieces.shift();
      if (piece !== undefined) {
        size -= piece.length;
        if (size < PIPE) wake();
        return piece;
      }
      if (ended) return null;
      return new Promise<void>((resolve) => {
        const before = wakeReader;
        wakeReader = () => (before?.(), resolve());
      }).then(() => this.read());
    }
    override unread(bytes: Bytes): void {
      if (bytes.length === 0) return;
      pieces.unshift(bytes);
      size += bytes.length;
    }
    protected override close(): void {
      broken = true;
      pieces.length = 0;
      wake();
    }
  }
  class Writer extends Stream {
    override write(bytes: Bytes): void | Promise<void> {
      if (broken) throw new BrokenPipe();
      if (bytes.length === 0) return;
      pieces.push(bytes.slice());
      size += bytes.length;
      if (wakeReader !== undefined) wake();
      if (size >= PIPE) {
        return new Promise<void>((resolve) => {
          const before = wakeWriter;
          wakeWriter = () => (before?.(), resolve());
        }).then(() => {
          if (broken) throw new BrokenPipe();
        });
      }
    }
    protected override close(): void {
      ended = true;
      wake();
    }
  }
  return { reader: new Reader(), writer: new Writer() };
}

/** All that is left. */
export async function readAll(
  stream: Stream,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Bytes[] = [];
  for (;;) {
    let piece = stream.read();
    if (piece instanceof Promise) piece = await piece;
    if (piece === null) return concat(pieces);
    pieces.push(piece);
  }
}

/** All that is left, where nobody has to be waited for; else undefined. */
export function readAllNow(
  stream: Stream,
): Uint8Array<ArrayBuffer> | undefined {
  if (stream.waits) return undefined;
  const pieces: Bytes[] = [];
  for (let piece; (piece = stream.read() as Bytes | null) !== null;) {
    pieces.push(piece);
  }
  return concat(pieces);
}

/** Bytes up to a delimiter, which is taken; `found` tells whether it was there. */
export async function readUntil(
  stream: Stream,
  delimiter: number,
): Promise<{ bytes: Bytes; found: boolean } | null> {
  const pieces: Bytes[] = [];
  for (;;) {
    let piece = stream.read();
    if (piece instanceof Promise) piece = await piece;
    if (piece === null) {
      return pieces.length === 0
        ? null
        : { bytes: concat(pieces), found: false };
    }
    const end = piece.indexOf(delimiter);
    if (end < 0) {
      pieces.push(piece);
      continue;
    }
    stream.unread(piece.subarray(end + 1));
    const head = piece.subarray(0, end);
    return {
      bytes: pieces.length === 0 ? head : concat([...pieces, head]),
      found: true,
    };
  }
}

/** The lines of a stream, each without its newline; the last may have had none. */
export async function* lines(
  stream: Stream,
  delimiter = NEWLINE,
): AsyncGenerator<{ text: string; ended: boolean }> {
  let rest: Bytes = new Uint8Array();
  for (;;) {
    let piece = stream.read();
    if (piece instanceof Promise) piece = await piece;
    if (piece === null) break;
    if (rest.length > 0) piece = concat([rest, piece]);
    let from = 0;
    for (let end; (end = piece.indexOf(delimiter, from)) >= 0; from = end + 1) {
      yield { text: fromBytes(piece.subarray(from, end)), ended: true };
    }
    rest = piece.subarray(from);
  }
  if (rest.length > 0) yield { text: fromBytes(rest), ended: false };
}
