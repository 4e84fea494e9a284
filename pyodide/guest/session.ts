/**
 * Runs the cells of one session, one after the other. Its arguments are told in
 * child.ts; with the images is the control file.
 *
 * The wire is a worker's (see worker.ts), but that requests go on coming: a cell
 * each, or the answer to a frame of the cell's. Of a cell's frames each has the
 * cell's number. What they have beside a worker's:
 *
 *     {"cell":1,…}       a request: a cell, a text to complete, or one that may
 *                        be unfinished
 *     {"stdin":S}        the answer to {"type":"stdin"}: a piece of the cell's
 *                        standard input in base64, empty at its end; null when
 *                        the cell is interrupted
 *     {"type":"exited"}  the guest ends the process: os._exit
 *     {"type":"result","code":N,…}  a cell's exit code is told, since its
 *                        process lives on
 *
 * Between two cells the process waits in a read, so that nothing of the guest's
 * runs. The control file holds the number of the cell that is to be interrupted.
 * A timer looks there while Python waits for something, and Python itself while it
 * computes, by way of its interrupt buffer, which it reads every few instructions.
 * That gives the timer some time: the event loop's own code is better left alone.
 *
 * @module
 */

import {
  FrameWriter,
  PROTOCOL,
  readRequest,
} from "../../supervisor/wire/guest/wire.ts";
import { endProcess, loadPython, loan } from "./child.ts";
import type { PyFunction } from "./pyodide.ts";

interface Request {
  cell?: number;
  plan?: unknown;
  stdin?: string | null;
}

/** How often the control file is read while a cell runs, in milliseconds. */
const LOOK = 20;
/** How long the timer has before Python is interrupted where it computes. */
const PATIENCE = 100;
/** How long an interrupted cell has before it is interrupted again. */
const AGAIN = 300;
/** What Python's interrupt buffer holds when the cell is interrupted. */
const SIGINT = 2;

const frames = FrameWriter.open();
const control = Deno.openSync(`${loan}/control`);
const digits = new Uint8Array(16);
const decoder = new TextDecoder();

// Taken before the guest's code runs, which may replace them.
const exit: (code?: number) => never = Deno.exit;
const now = performance.now.bind(performance);
const { setInterval, clearInterval } = globalThis;
const { stringify } = JSON;
const { fromBase64 } = Uint8Array as unknown as {
  fromBase64(text: string): Uint8Array;
};

/** The number of the cell that runs, and its interruption. */
let cell = 0;
let armed = false; // it may come now
let wanted = false; // it is to come
let nextLook = 0;
let next = { whileWaiting: 0, whileComputing: 0 }; // when it may come
/** What has come of the cell's standard input and was not read yet. */
let input: Uint8Array = new Uint8Array();
let inputEnded = false;
/** A cell that came while an answer was waited for. */
let early: Request | undefined;

const { pyodide, boot, host, interruptSockets } = await loadPython(
  readInput,
  end,
);
pyodide.setInterruptBuffer({
  get 0() {
    return interrupts("whileComputing") ? SIGINT : 0;
  },
  set 0(_: number) {
    // Python takes the interruption back, which is not there any more.
  },
});
Object.assign(host, {
  send,
  ask(frame: string): string {
    send(frame);
    return stringify(awaitRequest("plan") ?? { plan: null });
  },
  interruptible(on: boolean): void {
    armed = on;
  },
});
const run = boot.open_session!(host) as PyFunction;
// Of an error that nobody waits for, the session does not end.
for (const type of ["error", "unhandledrejection"]) {
  addEventListener(type, (event) => {
    event.preventDefault();
    const error = (event as ErrorEvent).error ??
      (event as PromiseRejectionEvent).reason;
    console.error(`Uncaught ${error}`);
  });
}
frames.send({ type: "ready", protocol: PROTOCOL });

try {
  for (let request; (request = awaitRequest("cell"));) {
    cell = request.cell!;
    wanted = inputEnded = false;
    input = input.subarray(0, 0);
    const timer = setInterval(() => {
      if (!interrupts("whileWaiting")) return;
      if (interruptSockets()) next.whileComputing = 0; // Python looks now
      else boot.interrupt!();
    }, LOOK);
    await run.callPromising(stringify(request));
    clearInterval(timer);
  }
} catch (error) {
  end(error);
}
exit();

/** Sends a frame of the cell's. */
function send(frame: string): void {
  frames.sendJSON(`{"cell":${cell},${frame.slice(1)}`);
}

/**
 * Waits for a request of a kind; other answers are passed over, since nobody
 * waits for them any more. A new cell in place of an answer means that the
 * supervisor took this one for ended: there will be no answer.
 */
function awaitRequest(kind: keyof Request): Request | undefined {
  for (;;) {
    const request = early ?? readRequest() as Request;
    early = undefined;
    if (kind in request) return request;
    if ("cell" in request) {
      early = request;
      return undefined;
    }
  }
}

/** Gives Python a piece of the cell's standard input, nothing at its end. */
function readInput(buffer: Uint8Array): number {
  if (input.length === 0 && !inputEnded) {
    send('{"type":"stdin"}');
    const piece = awaitRequest("stdin")?.stdin ?? (early ? "" : null);
    if (piece === null) {
      wanted = true;
      next.whileComputing = 0; // Python looks now
      throw Object.assign(new Error("Interrupted"), { code: "EINTR" });
    }
    input = fromBase64(piece);
    inputEnded = input.length === 0;
  }
  const n = Math.min(input.length, buffer.length);
  buffer.set(input.subarray(0, n));
  input = input.subarray(n);
  return n;
}

/** Says that Python is to be interrupted now. */
function interrupts(when: keyof typeof next): boolean {
  if (!armed) return false;
  const time = now();
  if (!wanted) {
    if (time < nextLook) return false;
    nextLook = time + LOOK;
    control.seekSync(0, Deno.SeekMode.Start);
    const n = control.readSync(digits) ?? 0;
    wanted = Number(decoder.decode(digits.subarray(0, n))) === cell;
    if (!wanted) return false;
    next = { whileWaiting: time, whileComputing: time + PATIENCE };
  }
  if (time < next[when]) return false;
  next = { whileWaiting: time + AGAIN, whileComputing: time + AGAIN };
  return true;
}

function end(error: unknown): never {
  endProcess(error, send, "exited");
}
