/**
 * The child's loop: it loads a language, says `ready`, takes its request, runs the
 * program and reports its outcome. A session's child takes cell after cell.
 *
 * The argument is a Start as JSON. Requests beside a session's answers are `Request`;
 * a session's frames are those of Python's (../../pyodide/guest/session.ts): each has its
 * cell's number, `stdin` asks for a piece of standard input, and the result has the exit
 * code.
 *
 * @module
 */

import {
  FrameWriter,
  PROTOCOL,
  readRequest,
  type WireError,
} from "../../supervisor/wire/guest/wire.ts";
import { makeFiles } from "./files.ts";
import {
  type Call,
  type Called,
  Exit,
  type Host,
  type Language,
  type Start,
} from "./language.ts";

interface Request {
  /** The cell's number; 0 is a program. */
  cell?: number;
  code: string;
  /** The program's file, by its path. */
  file: string;
  /** Files that it sees beside the machine's, by their paths, in base64. */
  files?: Record<string, string>;
  args?: string[];
  env?: Record<string, string>;
  /** In base64. */
  compiled?: string;
  echo?: boolean;
  last?: boolean;
  /** How many bytes its result may have, and all displays. */
  limit: number;
  displays: number;
  /** A question in place of a program. */
  complete?: string;
  unfinished?: string;
}

/** The exit status of a language that broke. */
const ABORTED = 134;
/** What a result frame has beside the value or the error. */
const ROOM = 1024;

// Taken before the guest's code runs, which may replace them.
const exit: (code?: number) => never = Deno.exit;
const { stringify, parse } = JSON;
const { stdin, stdout, stderr } = Deno;
const [readSync, writeOut, writeErr] = [
  stdin.readSync.bind(stdin),
  stdout.writeSync.bind(stdout),
  stderr.writeSync.bind(stderr),
];
const { fromBase64 } = Uint8Array as unknown as {
  fromBase64(text: string): Uint8Array;
};
const { toBase64 } = Uint8Array.prototype as unknown as {
  toBase64(): string;
};
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);

export async function serve(language: Language): Promise<never> {
  const start: Start = parse(Deno.args[0]!);
  const frames = FrameWriter.open();
  const files = makeFiles(start);
  await language.prepare(start);
  frames.send({ type: "ready", protocol: PROTOCOL });
  if (!start.session) {
    const request = readRequest() as Request;
    const { code, frame } = await runOne(
      language,
      request,
      files,
      (buffer) => readSync(buffer) ?? 0,
      (frame) => frames.sendJSON(frame),
    );
    frames.sendJSON(`{${frame}}`);
    exit(code);
  }
  for (let early: Request | undefined;;) {
    const request = early ?? readRequest() as Request;
    early = undefined;
    if (request.cell === undefined) continue; // an answer that came too late
    const send = (frame: string) =>
      frames.sendJSON(`{"cell":${request.cell},${frame.slice(1)}`);
    if (request.complete !== undefined || request.unfinished !== undefined) {
      send(
        `{"type":"result","code":0,"value":${await answer(language, request)}}`,
      );
      continue;
    }
    let input: Uint8Array = new Uint8Array(), ended = false;
    const read = (buffer: Uint8Array): number => {
      if (input.length === 0 && !ended) {
        send('{"type":"stdin"}');
        const next = readRequest() as Request & { stdin?: string | null };
        if ("cell" in next) early = next as Request;
        input = fromBase64(next.stdin ?? "");
        ended = input.length === 0;
      }
      const n = Math.min(input.length, buffer.length);
      buffer.set(input.subarray(0, n));
      input = input.subarray(n);
      return n;
    };
    const call = (call: Call): Called => {
      const { stdin, ...rest } = call;
      send(stringify({
        type: "call",
        ...rest,
        stdin: stdin && toBase64.call(stdin),
      }));
      const next = readRequest() as { call?: Record<keyof Called, string> };
      if (!next.call) throw new Error("the call was not answered");
      return {
        code: Number(next.call.code),
        stdout: fromBase64(next.call.stdout ?? ""),
        stderr: fromBase64(next.call.stderr ?? ""),
      };
    };
    const { code, frame } = await runOne(
      language,
      request,
      files,
      read,
      send,
      call,
    );
    send(`{"code":${code},${frame}}`);
  }
}

/** Runs one program; the frame is the result's without its braces. */
async function runOne(
  language: Language,
  request: Request,
  files: Host["files"],
  read: Host["read"],
  send: (frame: string) => void,
  call?: Host["call"],
): Promise<{ code: number; frame: string }> {
  let value: string | undefined, error: WireError | undefined;
  let left = request.displays, leftOut = 0;
  const host: Host = {
    files,
    read,
    stdout: (bytes) => writeAll(writeOut, bytes),
    stderr: (bytes) => writeAll(writeErr, bytes),
    display(data) {
      const frame = `{"type":"display","data":${stringify(data)}}`;
      const size = encode(frame).length + 64;
      if (size > left) {
        return send(`{"type":"display","left_out":${++leftOut}}`);
      }
      left -= size;
      send(frame);
    },
    value(given) {
      value = stringify(given);
    },
    fail(given) {
      error = given;
    },
    call,
  };
  files.overlay(request.file, encode(request.code));
  for (const [path, content] of Object.entries(request.files ?? {})) {
    files.overlay(path, fromBase64(content));
  }
  let code: number;
  try {
    code = await language.run({
      code: request.code,
      file: request.file,
      args: request.args ?? [],
      env: request.env ?? {},
      compiled: request.compiled === undefined
        ? undefined
        : fromBase64(request.compiled),
      echo: request.echo ?? false,
      last: request.last ?? request.cell === undefined,
    }, host);
  } catch (thrown) {
    if (thrown instanceof Exit) {
      code = thrown.code;
    } else {
      code = ABORTED;
      error ??= broken(thrown);
    }
  }
  let frame = '"type":"result"';
  if (error !== undefined) {
    frame += `,"error":${stringify(cut(error, request.limit / 4))}`;
  } else if (value !== undefined) {
    frame += `,"value":${value}`;
    if (encode(frame).length > request.limit - ROOM) {
      frame = '"type":"result"';
    }
  }
  return { code: code & 0xff, frame };
}

function cut(error: WireError, most: number): WireError {
  return {
    name: error.name.slice(0, 200),
    message: error.message.slice(0, most),
    traceback: error.traceback.slice(0, most),
  };
}

/** Tells of an error by which a language itself could not go on. */
function broken(thrown: unknown): WireError {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const name = thrown instanceof WebAssembly.RuntimeError
    ? "RuntimeError"
    : !(thrown instanceof RangeError)
    ? "InternalError"
    : /call stack/i.test(message)
    ? "StackOverflow"
    : /invalid .*length|allocation/i.test(message)
    ? "OutOfMemory"
    : "InternalError";
  return { name, message, traceback: "" };
}

async function answer(language: Language, request: Request): Promise<string> {
  try {
    return stringify(
      request.complete !== undefined
        ? await language.complete?.(request.complete) ?? []
        : await language.unfinished?.(request.unfinished!) ?? false,
    );
  } catch {
    return request.complete !== undefined ? "[]" : "false";
  }
}

function writeAll(write: (p: Uint8Array) => number, bytes: Uint8Array): void {
  while (bytes.length > 0) bytes = bytes.subarray(write(bytes));
}
