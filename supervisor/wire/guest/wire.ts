/**
 * The child's end of the wire, protocol 1: the first comment of wire.go says what
 * goes over it.
 *
 * @module
 */

/** The version of the wire. */
export const PROTOCOL = 1;

/** An error of the guest's, as it is shown. */
export interface WireError {
  name: string;
  message: string;
  traceback: string;
}

/** How many bytes come before a request's JSON text. */
const HEADER = 9;

/** What a child tells the supervisor. */
export type Frame =
  | { type: "ready"; protocol: number }
  | { type: "uncaught"; error: WireError }
  | { type: "result"; value?: unknown; error?: WireError };

/** A source of bytes that is read synchronously, such as `Deno.stdin`. */
export interface SyncReader {
  readSync(p: Uint8Array): number | null;
}

/** A sink of bytes that is written synchronously, such as `Deno.FsFile`. */
export interface SyncWriter {
  writeSync(p: Uint8Array): number;
}

// Taken before the guest's code runs, which may replace them.
const stringify = JSON.stringify;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** Reads one request from fd 0, and not a byte more. Blocks until it is there. */
export function readRequest(from: SyncReader = Deno.stdin): unknown {
  return JSON.parse(readRequestText(from));
}

/** Reads the JSON text of one request. */
export function readRequestText(from: SyncReader = Deno.stdin): string {
  const header = decode(readExactly(from, HEADER));
  if (!/^\d{8}\n$/.test(header)) {
    throw new Error("Cannot read the request: its length is not a number");
  }
  return decode(readExactly(from, Number(header)));
}

function readExactly(from: SyncReader, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let filled = 0; filled < length;) {
    const n = from.readSync(bytes.subarray(filled));
    if (n === null) {
      throw new Error("Cannot read the request: fd 0 ended before it");
    }
    filled += n;
  }
  return bytes;
}

/** Writes frames. */
export class FrameWriter {
  #to: SyncWriter;
  #write: SyncWriter["writeSync"];

  constructor(to: SyncWriter) {
    this.#to = to;
    this.#write = to.writeSync;
  }

  /**
   * Opens fd 3 and gives up the permission to open it, so that code that runs
   * later finds it closed unless it may write everywhere.
   */
  static open(): FrameWriter {
    const file = Deno.openSync("/dev/fd/3", { write: true });
    if (Deno.permissions.querySync({ name: "write" }).state !== "granted") {
      Deno.permissions.revokeSync({ name: "write", path: "/dev/fd/3" });
    }
    return new FrameWriter(file);
  }

  /** Writes one frame; it is with the supervisor when this returns. */
  send(frame: Frame | { type: string; [key: string]: unknown }): void {
    this.sendJSON(stringify(frame));
  }

  /** Writes one frame that is a JSON text already. */
  sendJSON(frame: string): void {
    let bytes = encode(frame + "\n");
    while (bytes.length > 0) {
      bytes = bytes.subarray(this.#write.call(this.#to, bytes));
    }
  }
}
