/**
 * Runs one Python program. Its arguments are told in child.ts.
 *
 * It starts without knowing its program, says `ready`, and then waits for its
 * request; see ../../supervisor/wire/guest/wire.ts. Frames of its own, all before the guest's code
 * starts: `resolve` (answered by a second request: the install plan),
 * `installed` and `started`. `fatal` says that Python itself broke.
 */

import {
  FrameWriter,
  PROTOCOL,
  readRequestText,
} from "../../supervisor/wire/guest/wire.ts";
import { ahead, endProcess, loadPython } from "./child.ts";

const frames = FrameWriter.open();
const exit: (code?: number) => never = Deno.exit;

const read = Deno.stdin.readSync.bind(Deno.stdin);
const { boot, host } = await loadPython((buffer) => read(buffer) ?? 0, end);
Object.assign(host, {
  ready: () => frames.send({ type: "ready", protocol: PROTOCOL }),
  read: readRequestText,
  send: (frame: string) => frames.sendJSON(frame),
  ask(frame: string): string {
    frames.sendJSON(frame);
    return readRequestText();
  },
});
try {
  exit(await boot.serve!.callPromising(host, ahead) as number);
} catch (error) {
  end(error);
}

function end(error: unknown): never {
  endProcess(error, (frame) => frames.sendJSON(frame), "result");
}
