/**
 * The entry module of every JavaScript and TypeScript run. It takes one
 * request, makes itself as invisible as it can, imports the guest's program and
 * reports its value or its error. The guest's program is never the entry
 * module, whose static imports Deno loads without asking for permission.
 *
 * @module
 */

import { FrameWriter, PROTOCOL, readRequest } from "./wire.ts";
import { describeError, type Source } from "./traceback.ts";
import { encodeValue } from "./value.ts";
import { lenientEnv } from "./env.ts";

interface Request {
  source: Source;
  /** Run the program as CommonJS. */
  commonjs: boolean;
  /** The program will load node:process, or packages that may. */
  node: boolean;
  /** How many bytes the result frame may have. */
  limit: number;
}

const frames = FrameWriter.open();
frames.send({ type: "ready", protocol: PROTOCOL });
const { source, commonjs, node, limit } = readRequest() as Request;

// Taken before the guest's code runs, which may replace them.
const exit = Deno.exit;
const queue = queueMicrotask;
const preventDefault = Event.prototype.preventDefault;

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

function reportValue(value: unknown): void {
  const json = encodeValue(value, limit - 1024);
  report(
    json === undefined
      ? `{"type":"result"}`
      : `{"type":"result","value":${json}}`,
  );
}

/**
 * Ends the program as Deno would, with a frame in place of Deno's message,
 * unless a listener of the guest's takes care of the error.
 */
function onUncaught(event: ErrorEvent | PromiseRejectionEvent): void {
  const thrown = event instanceof ErrorEvent ? event.error : event.reason;
  if (nodeListens(event.type)) return;
  let handled = false;
  Object.defineProperty(event, "preventDefault", {
    value: () => handled = true,
  });
  preventDefault.call(event);
  queue(() => { // the guest's listeners come after this one
    if (handled) return;
    try {
      frames.send({
        type: "uncaught",
        error: describeError(thrown, source, limit / 4),
      });
    } finally { // a guest may have closed the wire
      exit(1);
    }
  });
}

/** Says that Deno will hand the error to listeners of node:process. */
function nodeListens(type: string): boolean {
  if (type !== "unhandledrejection") return false; // those use addEventListener
  const process = prepareProcess();
  return process.listenerCount("unhandledRejection") +
      process.listenerCount("uncaughtException") > 0;
}

interface NodeProcess {
  env: Record<string, string | undefined>;
  listenerCount(name: string): number;
}

// The global process is made when it is first used, which takes 20 ms.
const { get: nodeProcess, set: setProcess } = Object.getOwnPropertyDescriptor(
  globalThis,
  "process",
)! as { get(): NodeProcess; set(value: unknown): void };

let preparedProcess: NodeProcess | undefined;
function prepareProcess(): NodeProcess {
  if (preparedProcess === undefined) {
    preparedProcess = nodeProcess.call(globalThis);
    preparedProcess.env = lenientEnv(preparedProcess.env);
  }
  return preparedProcess;
}

Object.defineProperty(globalThis, "process", {
  configurable: true,
  enumerable: true,
  get: prepareProcess,
  set: setProcess,
});

addEventListener("error", onUncaught);
addEventListener("unhandledrejection", onUncaught);
addEventListener("beforeunload", () => {
  if (reported) return; // nothing is left to do, so nothing will settle the value
  reportError(
    new Error("The promise that the program exports by default never settled"),
  );
  exit(1);
});
addEventListener("unload", () => report(`{"type":"result"}`)); // Deno.exit

// process.argv[1] comes from it too.
Object.defineProperty(Deno, "mainModule", {
  value: source.url,
  enumerable: true,
});

async function loadModule(): Promise<unknown> {
  const module = await import(source.url);
  return await module.default;
}

// deno-lint-ignore no-explicit-any
type NodeModule = any;

async function loadCommonJS(): Promise<unknown> {
  const { default: Module }: { default: NodeModule } = await import(
    "node:module"
  );
  const path = new URL(source.url).pathname;
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (
    request: string,
    parent: NodeModule,
    ...rest: unknown[]
  ) {
    try {
      return resolve.call(this, request, parent, ...rest);
    } catch (error) {
      // Deno looks for it in directories that the program may not read.
      if (!(error instanceof Deno.errors.NotCapable) || /^[./]/.test(request)) {
        throw error;
      }
      const missing = new Error(
        `Cannot find package "${request}": require finds what it is given as a literal, or what packages names`,
      );
      throw Object.assign(missing, { code: "MODULE_NOT_FOUND" });
    }
  };
  const exports = Module._load(path, null, true);
  const isEmpty = typeof exports === "object" && exports !== null &&
    Object.getPrototypeOf(exports) === Object.prototype &&
    Reflect.ownKeys(exports).length === 0;
  return isEmpty ? undefined : await exports;
}

if (node) prepareProcess();
(commonjs ? loadCommonJS() : loadModule()).then(reportValue).catch(
  (thrown: unknown) => {
    reportError(thrown);
    exit(1);
  },
);
