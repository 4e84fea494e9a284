/**
 * The entry module of every JavaScript and TypeScript run. It takes one
 * request, makes itself as invisible as it can, imports the guest's program and
 * reports its value or its error. The guest's program is never the entry
 * module, whose static imports Deno loads without asking for permission.
 *
 * @module
 */

import {
  FrameWriter,
  PROTOCOL,
  readRequest,
} from "../../supervisor/wire/guest/wire.ts";
import { describeError, pathOf, type Source } from "./traceback.ts";
import { encodeValue } from "./value.ts";
import { Screen } from "./display.ts";
import {
  isProcessMade,
  onUncaught,
  prepareProcess,
  unlessPrevented,
} from "./process.ts";
import { explainRequire } from "./require.ts";
import { prepareSystem } from "./system.ts";

interface Request {
  source: Source;
  /** Run the program as CommonJS. */
  commonjs: boolean;
  /** It is a package's command, whose exports are no value. */
  command: boolean;
  /** Names that stand for files of the project, for require. */
  names?: Record<string, string>;
  /** The program will load modules of Node's that look at the machine. */
  system: boolean;
  /** How many bytes the result frame may have, and all displays. */
  limit: number;
  displays: number;
}

const frames = FrameWriter.open();
frames.send({ type: "ready", protocol: PROTOCOL });
const { source, commonjs, command, names, system, limit, displays } =
  readRequest() as Request;
const screen = new Screen((frame) => frames.sendJSON(frame), displays);

// Taken before the guest's code runs, which may replace it.
const exit = Deno.exit;
const queue = queueMicrotask;

let reported = false;
function report(frame: string): void {
  if (reported) return;
  reported = true;
  frames.sendJSON(frame);
}

function reportError(thrown: unknown): void {
  report(
    JSON.stringify({
      type: "result",
      error: describeError(thrown, source, limit / 4),
    }),
  );
}

async function reportValue(value: unknown): Promise<void> {
  await screen.finish(value);
  const json = encodeValue(value, limit - 1024);
  report(
    json === undefined
      ? `{"type":"result"}`
      : `{"type":"result","value":${json}}`,
  );
}

// The program ends as Deno would end it, with a frame in place of Deno's message.
onUncaught((thrown) => {
  try {
    frames.send({
      type: "uncaught",
      error: describeError(thrown, source, limit / 4),
    });
  } finally { // a guest may have closed the wire
    exit(1);
  }
});
addEventListener("beforeunload", (event) => { // nothing is left to do
  if (!reported) { // so nothing will settle the value
    reportError(
      new Error(
        "The promise that the program exports by default never settled",
      ),
    );
    exit(1);
  }
  screen.end();
  if (isProcessMade()) return; // it has events of its own at the end
  // Deno comes to the same end, and takes a millisecond longer. What the guest's
  // listeners throw is reported first.
  unlessPrevented(event, () => queue(() => exit()));
});

Object.defineProperty(globalThis, "display", {
  configurable: true,
  writable: true,
  value: screen.display,
});

// process.argv[1] comes from it too.
Object.defineProperty(Deno, "mainModule", {
  value: source.main ?? source.url,
  enumerable: true,
});

async function loadModule(): Promise<unknown> {
  if (system) prepareSystem((await import("node:module")).default);
  const module = await import(source.url);
  return await module.default;
}

/** The path of the main module, which in a workspace is the program's place there. */
// deno-lint-ignore no-explicit-any
function placed(Module: any, path: string): string {
  const extension = /\.c?js$/.exec(path)?.[0];
  if (!source.main?.startsWith("file:") || extension === undefined) return path;
  const code = Deno.readTextFileSync(path);
  const load = Module._extensions[extension];
  // deno-lint-ignore no-explicit-any
  Module._extensions[extension] = (module: any, filename: string) => {
    Module._extensions[extension] = load; // the main module is the first
    module._compile(code, filename);
  };
  return pathOf(source.main);
}

async function loadCommonJS(): Promise<unknown> {
  // deno-lint-ignore no-explicit-any
  const { default: Module }: { default: any } = await import("node:module");
  if (system) prepareSystem(Module);
  const path = pathOf(source.url);
  explainRequire(Module, new URL(source.directory!).pathname, names);
  const exports = Module._load(placed(Module, path), null, true);
  const isEmpty = typeof exports === "object" && exports !== null &&
    Object.getPrototypeOf(exports) === Object.prototype &&
    Reflect.ownKeys(exports).length === 0;
  return isEmpty ? undefined : await exports;
}

if (system) prepareProcess(); // packages use the global one too
(commonjs ? loadCommonJS() : loadModule()).then((value) =>
  reportValue(command ? undefined : value)
).catch(
  (thrown: unknown) => {
    reportError(thrown);
    exit(1);
  },
);
