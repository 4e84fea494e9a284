/**
 * The entry module of every JavaScript and TypeScript session. The supervisor
 * speaks to it through Deno's inspector: it evaluates the cells itself, and
 * calls the methods of {@linkcode Session} before and after each.
 *
 * @module
 */

import Module from "node:module";
import { describeError } from "./traceback.ts";
import { encodeValue } from "./value.ts";
import { Screen } from "./display.ts";
import { adjustProcess, onUncaught, prepareProcess } from "./process.ts";
import { explainRequire } from "./require.ts";
import { mustBePackage, prepareSystem } from "./system.ts";
import { hideHelpers, nameFrames } from "./frames.ts";
import { nodeStdin, reopenable } from "./stdin.ts";
import type { WireError } from "../../supervisor/wire/guest/wire.ts";

/** A cell, and how it is to be evaluated. */
interface Cell {
  /** Names the cell in tracebacks; no other cell has this name. */
  name: string;
  code: string;
  typescript: boolean;
  /** A source map if the code was transpiled, else empty. */
  map: string;
  /** What is added to the import map: packages, and paths in the workspace ("./x"). */
  imports: Record<string, string>;
  /** The same for modules below a path in the workspace. */
  scopes?: Record<string, Record<string, string>>;
  args: string[];
  /** The largest size of the value or the error, and of all displays, in bytes. */
  limit: number;
  displays: number;
  /** Whether to show any value, as a console does. */
  echo: boolean;
}

/** What is to be loaded before a cell. */
interface Loads {
  packages: string[];
  /** Whether files of the workspace import by names. */
  named: boolean;
}

/** The code to evaluate, or why there is none. */
type Prepared =
  /** An `expression` needs parentheses around it. */
  | { code: string; expression: boolean }
  /** Leaving its types out is not enough. */
  | { transpile: true }
  | { error: WireError };

// Taken before the guest's code runs, which may replace them.
const { defineProperty, getOwnPropertyNames, getPrototypeOf } = Object;
const { clearTimeout, setTimeout } = globalThis;
const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
const strip = (Module as unknown as {
  stripTypeScriptTypes(code: string, options?: { mode: string }): string;
}).stripTypeScriptTypes;
const { registerHooks } = Module as unknown as {
  registerHooks(hooks: unknown): { deregister(): void };
};
const { exit, readTextFileSync: read, statSync: stat } = Deno;
const { NotFound } = Deno.errors;
const text = String;
const { wait: sleep } = Atomics;
const LAST_WORDS = new Int32Array(new SharedArrayBuffer(4));
const stderr = Deno.stderr;
const write = stderr.writeSync.bind(stderr);
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);

/** The session's directory, which is the current one. */
const DIRECTORY = Deno.cwd();
const WORKSPACE = `file://${
  encodeURI(DIRECTORY).replace(/[?#]/g, encodeURIComponent)
}/`;
const SOURCE = {
  url: WORKSPACE,
  name: "",
  prelude: { line: 0, column: 0, text: "" },
};
const UNCAUGHT_LIMIT = 64 << 10;
/** The exit status of a process that ended before its cell began. */
const NOT_BEGUN = 254;

/**
 * Sends a frame to the supervisor, which gives the function through the
 * inspector. Deno waits for its connection, and not for what it asks for first.
 */
while (!Reflect.has(globalThis, "rillbox")) {
  await new Promise((resolve) => setTimeout(resolve, 1));
}
const send = take("rillbox") as (frame: string) => void;

function take(name: string): unknown {
  const value = Reflect.get(globalThis, name);
  Reflect.deleteProperty(globalThis, name);
  return value;
}

/** What names of modules stand for. */
class ImportMap {
  #exact = new Map<string, string>();
  #prefixes = new Map<string, string>(); // those that end with a slash

  add(imports: Record<string, string>): void {
    const names = getOwnPropertyNames(imports);
    for (let i = 0; i < names.length; i++) { // the guest may have changed what for…of does
      const name = names[i]!;
      const to = imports[name]!;
      const of = name.endsWith("/") ? this.#prefixes : this.#exact;
      of.set(name, to.startsWith("./") ? new URL(to, WORKSPACE).href : to);
    }
  }

  find(specifier: string): string | undefined {
    const exact = this.#exact.get(specifier);
    if (exact !== undefined) return exact;
    let end = specifier.length; // of a prefix, the longest first
    while ((end = specifier.lastIndexOf("/", end - 1)) > 0) {
      const to = this.#prefixes.get(specifier.slice(0, end + 1));
      if (to !== undefined) return to + specifier.slice(end + 1);
    }
  }
}

class Session {
  #imports = new ImportMap();
  #scopes = new Map<string, ImportMap>(); // by the URLs that theirs begin with
  #screen = new Screen(send, 0);
  #limit = 0;
  #echo = false;
  #lastTimer = 0;
  #hook: { deregister(): void } | undefined;
  #positions = new Map<string, string>();
  /** Whether the last cell that was prepared for has begun. */
  #begun = true;

  constructor() {
    nameFrames(this.#positions);
    hideHelpers({
      display: (value: unknown, options?: { raw?: boolean }) =>
        this.#screen.display(value, options),
      require: Module.createRequire(WORKSPACE),
      close: () => exit(0), // at once, and not before the next cell
      $begin: () => void (this.#begun = true),
      $importMeta: {
        url: `${WORKSPACE}cell.ts`,
        main: true,
        dirname: DIRECTORY,
        filename: `${DIRECTORY}/cell.ts`,
        resolve: (specifier: string) => this.#resolve(specifier) ?? specifier,
      },
    });
  }

  /** Resolves a specifier of a cell's or a module's; undefined leaves that to Deno. */
  #resolve(specifier: string, parent?: string): string | undefined {
    if (/^\.{0,2}\//.test(specifier)) return new URL(specifier, WORKSPACE).href;
    let to: string | undefined;
    let longest = "";
    this.#scopes.forEach((scope, at) => {
      if (!parent?.startsWith(at) || at.length < longest.length) return;
      const found = scope.find(specifier);
      if (found !== undefined) [to, longest] = [found, at];
    });
    return to ?? this.#imports.find(specifier);
  }

  /** Is asked for each module that is imported, with whoever imports it. */
  resolve(
    specifier: string,
    context: { parentURL?: string; conditions: string[] },
    next: (specifier: string, context: unknown) => unknown,
  ): unknown {
    const parent = context.parentURL;
    const ours = parent === undefined || parent.startsWith(WORKSPACE);
    if (!ours || context.conditions.includes("require")) {
      return next(specifier, context);
    }
    if (parent !== undefined && /^\.{0,2}\//.test(specifier)) {
      return next(specifier, context);
    }
    const to = this.#resolve(specifier, parent) ?? specifier;
    if (to.startsWith(WORKSPACE)) mustExist(to);
    const found = next(to, context) as { url?: string };
    if (parent !== undefined) mustBePackage(to, parent, found.url);
    return found;
  }

  /**
   * Is called when the process exits: gives another thread the time to send the
   * answers that are made, and says by the exit status that no cell had begun.
   */
  ending(): void {
    if (!this.#begun) Deno.exitCode = NOT_BEGUN;
    sleep(LAST_WORDS, 0, 0, 100);
  }

  #addScopes(scopes: Record<string, Record<string, string>>): void {
    const places = getOwnPropertyNames(scopes);
    for (let i = 0; i < places.length; i++) {
      const at = new URL(places[i]!, WORKSPACE).href;
      const scope = this.#scopes.get(at) ?? new ImportMap();
      scope.add(scopes[places[i]!]!);
      this.#scopes.set(at, scope);
    }
  }

  /** Prepares for a cell. */
  prepare(cell: Cell): Prepared {
    this.#begun = false;
    this.#hook?.deregister(); // of the cell before
    this.#imports.add(cell.imports);
    if (cell.scopes) this.#addScopes(cell.scopes);
    this.#screen = new Screen(send, cell.displays);
    this.#limit = cell.limit;
    this.#echo = cell.echo;
    setArguments(cell.args);
    let code = cell.code;
    if (cell.typescript && cell.map === "") {
      try {
        code = strip(code);
      } catch {
        return explainSyntax(cell);
      }
    }
    this.#positions.set(cell.name, cell.map);
    return { code, expression: isObject(code) };
  }

  /**
   * Loads packages, which require and the imports of files find only then, and has
   * files find them by the names that the import map has for them.
   */
  async load({ packages, named }: Loads): Promise<void> {
    for (let i = 0; i < packages.length; i++) {
      try {
        await import(packages[i]!);
      } catch {
        // Whoever imports it is told.
      }
    }
    if (named) this.#hook = registerHooks({ load });
  }

  /**
   * Shows a cell's value and returns it as JSON. Like every method that runs the
   * guest's code, it first returns a promise: the supervisor can't interrupt it
   * before.
   */
  async value(value: unknown): Promise<string | undefined> {
    await undefined;
    await this.#screen.finish(value, this.#echo);
    this.#screen.end();
    return encodeValue(value, this.#limit);
  }

  /** Describes what a cell threw. */
  async error(thrown: unknown): Promise<WireError> {
    await undefined;
    this.#screen.end();
    return describeError(thrown, SOURCE, this.#limit);
  }

  /**
   * Stops the timers that were set since the last call, in a turn of the event loop:
   * an answer means that the guest is not computing without an end.
   */
  async stop(): Promise<void> {
    await new Promise((resolve) => {
      turned = resolve;
      turn(null);
    });
    const last = Number(setTimeout(() => {}, 0));
    for (let id = this.#lastTimer + 1; id <= last; id++) clearTimeout(id);
    this.#lastTimer = last;
    this.#screen.end();
  }

  /** Lists the names of an object's properties, including inherited ones. */
  async names(object: unknown): Promise<string[]> {
    await undefined;
    const names: string[] = [];
    let holder = object === null || object === undefined
      ? null
      : Object(object) as object | null;
    for (let depth = 0; holder !== null && depth < 20; depth++) {
      const own = getOwnPropertyNames(holder);
      for (let i = 0; i < own.length; i++) {
        const name = own[i]!;
        if (/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)) {
          names[names.length] = name;
        }
        if (names.length === 10_000) return names;
      }
      holder = getPrototypeOf(holder);
    }
    return names;
  }
}

/** Deno would remember that a module is missing even after a cell writes it. */
function mustExist(url: string): void {
  try {
    stat(new URL(url));
  } catch (error) {
    if (!(error instanceof NotFound)) return; // Deno says what is wrong
    const missing = new Error(`Module not found "${url}".`);
    missing.name = ""; // Deno makes a TypeError of it, with its name in the text
    throw missing;
  }
}

/** Reports whether the code is an object literal, and not a block. */
function isObject(code: string): boolean {
  if (!/^\s*\{/.test(code)) return false;
  try {
    new AsyncFunction(`return (${code}\n)`);
    return true;
  } catch {
    return false;
  }
}

/** Tells why the types could not be left out. */
function explainSyntax({ code, name, limit }: Cell): Prepared {
  try {
    strip(code, { mode: "transform" });
    return { transpile: true };
  } catch (error) {
    const message = text((error as Error).message).replaceAll(
      "file:///stripTypeScriptTypes.ts",
      name,
    );
    return { error: describeError(new SyntaxError(message), SOURCE, limit) };
  }
}

function setArguments(args: string[]): void {
  if (args.length === 0 && Deno.args.length === 0) return;
  defineProperty(Deno, "args", {
    configurable: true,
    enumerable: true,
    value: args,
  });
  const { argv } = prepareProcess();
  argv.length = 2;
  for (let i = 0; i < args.length; i++) argv[i + 2] = args[i]!;
}

const SCRIPT = "data:text/javascript,";

/** The code of modules that Deno has only where no name led to them: files, and ours. */
function sourceOf(url: string): string | null {
  if (url.startsWith(SCRIPT)) {
    return decodeURIComponent(url.slice(SCRIPT.length));
  }
  if (!url.startsWith(WORKSPACE)) return null;
  if (/\.m?js$/.test(url)) return read(new URL(url));
  if (!/\.m?ts$/.test(url)) return null;
  const code = read(new URL(url));
  try {
    return strip(code);
  } catch {
    return strip(code, { mode: "transform" });
  }
}

/**
 * Has Deno load modules as it does. Only where somebody is asked to load them, it asks
 * what files import statically before it looks for that.
 */
function load(
  url: string,
  context: { conditions: string[] },
  next: (url: string, context: unknown) => object,
): unknown {
  if (url.startsWith("node:")) return next(url, context);
  if (!context.conditions.includes("require")) {
    return { source: sourceOf(url), shortCircuit: true };
  }
  const loaded = next(url, context);
  return url.endsWith(".json") // Deno takes what is required for code
    ? { ...loaded, format: "json" }
    : loaded;
}

const session = new Session();
prepareSystem(Module, { resolve: session.resolve.bind(session) });
addEventListener("unload", () => session.ending());
explainRequire(Module);
onUncaught((thrown) => {
  const { traceback, message } = describeError(thrown, SOURCE, UNCAUGHT_LIMIT);
  write(encode(`Uncaught ${traceback || message}\n`));
});
reopenable(Deno.stdin);
adjustProcess((process) => {
  nodeStdin(process);
  process.argv[1] = `${DIRECTORY}/cell.ts`;
});
defineProperty(Deno, "mainModule", {
  value: `${WORKSPACE}cell.ts`,
  enumerable: true,
});

// The process lives as long as somebody may send to this port.
const { port1, port2 } = new MessageChannel();
const turn = port2.postMessage.bind(port2);
let turned = (_: unknown): void => {};
port1.onmessage = () => turned(undefined);

// The supervisor takes it before the first cell.
Reflect.set(globalThis, "rillbox", session);
send("{}");
