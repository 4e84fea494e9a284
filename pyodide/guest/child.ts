/**
 * What a worker and a session have in common: Python, loaded from its snapshot
 * and connected to the process that it runs in.
 *
 * @module
 */

import { type EmscriptenFS, mountHost } from "../../deno/guest/hostfs.ts";
import { loadSaved, type PyFunction, type Pyodide } from "./pyodide.ts";
import { mountSockets } from "./sockets.ts";
import { mountImage, mountWheel } from "./wheel.ts";

/** The exit status of a process that aborted, as a shell gives it. */
const ABORTED = 134;
/** The exit status of a program that failed. */
const FAILED = 1;
/** What V8 says when its stack is full. */
const FULL = "Maximum call stack size exceeded";

// Taken before the guest's code runs, which may replace them.
const exit: (code?: number) => never = Deno.exit;
const { stringify } = JSON;

/**
 * The arguments: Pyodide's directory, the snapshot, "ahead" when the request will come
 * later, else nothing, the directory of images (whose paths come with the plan), the
 * workspace's directory or nothing, and the paths of files that the operator granted.
 */
const [directory, snapshot, start, images, workspace, ...granted] = Deno.args;
export const ahead = start === "ahead", loan = images!;

/** Python in its process: its interpreter, and our module `rillbox.boot`. */
export interface Loaded {
  pyodide: Pyodide;
  boot: Record<string, PyFunction>;
  /** What Python asks of its process beside the wire; see packages.Host. */
  host: Record<string, unknown>;
  /** Ends what Python waits for with sockets, if it does. */
  interruptSockets(): boolean;
}

/**
 * Loads Python. Each of its writes is made before it returns; `read` gives its
 * standard input; `end` ends the process where Python itself can't go on.
 */
export async function loadPython(
  read: (buffer: Uint8Array) => number,
  end: (error: unknown) => never,
): Promise<Loaded> {
  using file = Deno.openSync(snapshot!);
  const pyodide = await loadSaved(directory!, file);
  const writeTo = (stream: { writeSync(bytes: Uint8Array): number }) => ({
    isatty: false,
    write: stream.writeSync.bind(stream),
  });
  pyodide.setStdin({ isatty: false, read });
  pyodide.setStdout(writeTo(Deno.stdout));
  pyodide.setStderr(writeTo(Deno.stderr));
  pyodide._api.fatal_error = end;
  mountHost(pyodide.FS as unknown as EmscriptenFS, workspace!, granted);
  const boot = pyodide.pyimport("rillbox.boot");
  pyodide.loadPackage = boot.load;
  const { sockets, interrupt } = mountSockets(pyodide._module);
  const host = {
    sockets,
    mount: (image: string, packages: string, metadata: string) =>
      mountImage(pyodide.FS, image, packages, JSON.parse(metadata)),
    place: (wheel: Uint8Array, name: string, to: string, metadata: string) =>
      mountWheel(pyodide.FS, wheel, name, to, JSON.parse(metadata)),
  };
  return { pyodide, boot, host, interruptSockets: interrupt };
}

/**
 * Ends the process for an error that Python itself could not survive, or for
 * os._exit, which is told by a frame of the type `exited`.
 */
export function endProcess(
  error: unknown,
  send: (frame: string) => void,
  exited: string,
): never {
  if (isExit(error)) {
    send(stringify({ type: exited }));
    exit(error.status & 0xff);
  }
  const message = error instanceof Error ? error.message : String(error);
  if (message === FULL) { // Python can't go on: none of its C code was told
    send(stringify({ type: "fatal", deep: true, message }));
    exit(FAILED);
  }
  send(stringify({ type: "fatal", message: message.slice(0, 2000) }));
  exit(ABORTED);
}

function isExit(error: unknown): error is { status: number } {
  return error instanceof Object && "name" in error &&
    error.name === "ExitStatus" && "status" in error;
}
