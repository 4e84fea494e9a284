/**
 * Runs one Python program. Arguments: Pyodide's directory, the snapshot,
 * "ahead" when the request will come later, else nothing, the directory of images
 * (whose paths come with the plan), the workspace's directory or nothing, and the
 * paths of files that the operator granted.
 *
 * It starts without knowing its program, says `ready`, and then waits for its
 * request; see ../../deno/wire.ts. Frames of its own, all before the guest's code
 * starts: `resolve` (answered by a second request: the install plan),
 * `installed` and `started`. `fatal` says that Python itself broke.
 */

import { FrameWriter, PROTOCOL, readRequestText } from "../../deno/wire.ts";
import { endProcess, loadPython } from "./child.ts";
import { mountGranted, mountWorkspace } from "./hostfs.ts";
import { mountImage } from "./mount.ts";
import { mountWheel } from "./wheel.ts";

const [directory, snapshot, ahead, , workspace, ...granted] = Deno.args;
const frames = FrameWriter.open();
const exit: (code?: number) => never = Deno.exit;

const read = Deno.stdin.readSync.bind(Deno.stdin);
const pyodide = await loadPython(
  directory!,
  snapshot!,
  (buffer) => read(buffer) ?? 0,
  end,
);
mountGranted(pyodide.FS, granted);
if (workspace) mountWorkspace(pyodide.FS, workspace);
const boot = pyodide.pyimport("rillbox.boot");
pyodide.loadPackage = boot.load;

const host = {
  ready: () => frames.send({ type: "ready", protocol: PROTOCOL }),
  read: readRequestText,
  send: (frame: string) => frames.sendJSON(frame),
  ask(frame: string): string {
    frames.sendJSON(frame);
    return readRequestText();
  },
  mount: (image: string, metadata: string) =>
    mountImage(pyodide.FS, image, JSON.parse(metadata)),
  place: (wheel: Uint8Array, name: string, to: string, metadata: string) =>
    mountWheel(pyodide.FS, wheel, name, to, JSON.parse(metadata)),
};
try {
  exit(await boot.serve!.callPromising(host, ahead === "ahead") as number);
} catch (error) {
  end(error);
}

function end(error: unknown): never {
  endProcess(error, (frame) => frames.sendJSON(frame), "result");
}
