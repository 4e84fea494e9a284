/**
 * Runs one Python program. Arguments: Pyodide's directory, the snapshot.
 *
 * It starts without knowing its program, says `ready`, and then waits for its
 * request; see ../deno/wire.ts. Frames of its own, all before the guest's code
 * starts: `resolve` (answered by a second request: the install plan),
 * `installed` and `started`. `fatal` says that Python itself broke.
 */

import { FrameWriter, PROTOCOL, readRequest } from "../deno/wire.ts";
import { loadSnapshot, type Pyodide } from "./pyodide.ts";

/** The exit status of a process that aborted, as a shell gives it. */
const ABORTED = 134;

const [directory, snapshot] = Deno.args;
const frames = FrameWriter.open();
const exit: (code?: number) => never = Deno.exit;

const pyodide = await loadSnapshot(
  new URL(`file://${directory}/`),
  Deno.readFileSync(snapshot!),
);
connectStreams(pyodide);
pyodide._api.fatal_error = endFatally;
const boot = pyodide.pyimport("rillbox.boot");
pyodide.loadPackage = boot.load;
frames.send({ type: "ready", protocol: PROTOCOL });

const request = JSON.stringify(readRequest());
const host = {
  send: (frame: string) => frames.sendJSON(frame),
  ask(frame: string): string {
    frames.sendJSON(frame);
    return JSON.stringify(readRequest());
  },
};
try {
  exit(await boot.start!.callPromising(request, host) as number);
} catch (error) {
  endFatally(error);
}

/** Gives Python our standard streams; each write is made before it returns. */
function connectStreams(pyodide: Pyodide): void {
  const writeTo = (stream: { writeSync(bytes: Uint8Array): number }) => ({
    isatty: false,
    write: stream.writeSync.bind(stream),
  });
  const readSync = Deno.stdin.readSync.bind(Deno.stdin);
  pyodide.setStdin({ isatty: false, read: (buffer) => readSync(buffer) ?? 0 });
  pyodide.setStdout(writeTo(Deno.stdout));
  pyodide.setStderr(writeTo(Deno.stderr));
}

/** Ends the process for an error that Python itself could not survive. */
function endFatally(error: unknown): never {
  if (isExit(error)) { // os._exit
    frames.send({ type: "result" });
    exit(error.status & 0xff);
  }
  const message = error instanceof Error ? error.message : String(error);
  frames.send({ type: "fatal", message: message.slice(0, 2000) });
  exit(ABORTED);
}

function isExit(error: unknown): error is { status: number } {
  return error instanceof Object && "name" in error &&
    error.name === "ExitStatus" && "status" in error;
}
