/**
 * Clojure: ClojureScript's dialect, by the interpreter nbb. Its namespace `js` is the
 * child's JavaScript, with the child's permissions. What nbb asks of Node (files, the
 * process) it gets from here.
 *
 * @module
 */

import {
  type Host,
  type Language,
  type Program,
  WORKSPACE,
} from "../language.ts";
import { printf } from "../printf.ts";
import { Reader } from "../reader.ts";
import { serve } from "../serve.ts";
import { PRELUDE } from "./clojure/prelude.ts";

// Taken before the guest's code runs, which may replace them.
const { exit } = Deno;
const [later, cancel] = [setTimeout, clearTimeout];
const now = performance.now.bind(performance);
const encoder = new TextEncoder(), decoder = new TextDecoder();
const encode = encoder.encode.bind(encoder),
  decode = decoder.decode.bind(decoder);
const { wait } = Atomics;

/** What the prelude's last form gives: functions of ClojureScript's. */
interface Tools {
  /** What is to be known of an error, as JSON. */
  error(thrown: unknown): string;
  /** A value as the REPL prints it. */
  show(value: unknown): string;
  /** A value as JSON, or undefined. */
  json(value: unknown): string | undefined;
  /** The names that begin with a text. */
  complete(text: string): string[];
  /** Whether a text ends within a form. */
  unfinished(text: string): boolean;
  begin(args: string[]): void;
}

interface Nbb {
  loadString(code: string): Promise<unknown>;
  loadFile(path: string): Promise<unknown>;
}

let nbb: Nbb, tools: Tools, session = false;
let host!: Host, input!: Reader, program: Program | undefined;

const language: Language = {
  async prepare(start) {
    session = start.session;
    // deno-lint-ignore no-explicit-any
    const root = globalThis as any;
    countTimers(root);
    Object.defineProperty(root, "process", {
      value: node,
      configurable: true,
      writable: true,
    });
    // ClojureScript's errors become errors by it, and Deno has none.
    const { getPrototypeOf, setPrototypeOf } = Object;
    Object.defineProperty(Object.prototype, "__proto__", {
      configurable: true,
      get() {
        return getPrototypeOf(this);
      },
      set(prototype: object | null) {
        setPrototypeOf(this, prototype);
      },
    });
    const log = (to: "stdout" | "stderr") => (...values: unknown[]) =>
      host[to](
        encode(
          values.map((v) => typeof v === "string" ? v : Deno.inspect(v)).join(
            " ",
          ) + "\n",
        ),
      );
    for (const name of ["log", "info", "debug"] as const) {
      console[name] = log("stdout");
    }
    for (const name of ["error", "warn"] as const) {
      console[name] = log("stderr");
    }
    const load = loader(
      `${start.parts.nbb}/lib`,
      `${start.parts["import-meta-resolve"]}/index.js`,
    );
    nbb = await load("nbb_api.js") as Nbb;
    root.rillbox = bridge;
    tools = await nbb.loadString(PRELUDE) as Tools;
    delete root.rillbox;
  },
  async run(given, connected) {
    program = given;
    host = connected;
    input = new Reader((buffer) => connected.read(buffer));
    tools.begin(given.args);
    try {
      const value = session
        ? await nbb.loadString(given.code)
        : await nbb.loadFile(given.file);
      if (!session) await idle();
      if (session && value !== undefined && value !== null) {
        if (given.echo) host.stdout(encode(tools.show(value) + "\n"));
        const json = tools.json(value);
        if (json !== undefined) host.value(JSON.parse(json));
      }
      return 0;
    } catch (thrown) {
      host.fail(JSON.parse(tools.error(thrown)));
      return 1;
    }
  },
  complete: (text) => tools.complete(/[^\s()[\]{}"']*$/.exec(text)![0]),
  unfinished: (text) => tools.unfinished(text),
};

/** What the prelude is written with. */
const bridge = {
  slurp: (path: string) =>
    path === "/dev/stdin"
      ? input.text()
      : decode(host.files.readFile(absolute(path))),
  spit(path: string, text: string, append: boolean) {
    const file = host.files.open(absolute(path), {
      write: true,
      create: true,
      append,
      truncate: !append,
    });
    try {
      let bytes: Uint8Array = encode(text);
      for (let at = 0; bytes.length > 0;) {
        const n = file.write(bytes, at);
        at += n;
        bytes = bytes.subarray(n);
      }
    } finally {
      file.close();
    }
  },
  exists(path: string) {
    try {
      host.files.stat(absolute(path));
      return true;
    } catch {
      return false;
    }
  },
  list: (path: string) =>
    host.files.readDir(absolute(path)).map(({ name }) => name).sort(),
  remove: (path: string) => host.files.unlink(absolute(path)),
  mkdir: (path: string) => host.files.mkdir(absolute(path)),
  line: () => input.line() ?? null,
  text: () => input.text(),
  env: () => program!.env,
  file: () => program!.file,
  exit: (code: number) => exit(code),
  print: (text: string) => host.stdout(encode(text)),
  error: (text: string) => host.stderr(encode(text)),
  format: (pattern: string, values: unknown[]) => printf(pattern, values),
  isError: (value: unknown) => value instanceof Error,
  now,
  sleep(milliseconds: number) {
    if (milliseconds > 0) {
      wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
    }
  },
};

/** The `process` of Node's that nbb and its programs see. */
const node = {
  get env() {
    return program?.env ?? {};
  },
  get argv() {
    return ["nbb", program?.file ?? "", ...program?.args ?? []];
  },
  platform: "linux",
  version: "v22.0.0",
  versions: { node: "22.0.0" },
  cwd: () => WORKSPACE,
  exit: (code?: number) => exit(code ?? 0),
  exitCode: undefined,
  hrtime: (before?: [number, number]) => {
    const ms = now() - (before ? before[0] * 1e3 + before[1] / 1e6 : 0);
    return [Math.floor(ms / 1e3), Math.floor(ms % 1e3 * 1e6)];
  },
  nextTick: (call: (...args: unknown[]) => void, ...args: unknown[]) =>
    queueMicrotask(() => call(...args)),
  on() {},
  stdout: {
    write: (text: string) => (host.stdout(encode(String(text))), true),
  },
  stderr: {
    write: (text: string) => (host.stderr(encode(String(text))), true),
  },
};

/** The functions of node:fs that nbb itself uses. */
const fs = {
  existsSync: (path: string) => bridge.exists(path),
  readFileSync: (path: string) => bridge.slurp(path),
  readFile: (
    path: string,
    _: unknown,
    done: (error: unknown, text?: string) => void,
  ) => {
    try {
      done(null, bridge.slurp(path));
    } catch (error) {
      done(error);
    }
  },
};

function absolute(path: string): string {
  return decodeURI(
    new URL(
      encodeURI(path).replace(/[?#]/g, encodeURIComponent),
      `file://${WORKSPACE}/`,
    ).pathname,
  );
}

const pending = new Set<unknown>();

/** Knows of the timers that a program still waits for. */
// deno-lint-ignore no-explicit-any
function countTimers(root: any): void {
  const { setInterval } = root;
  root.setTimeout = (
    call: (...args: unknown[]) => void,
    ms?: number,
    ...args: unknown[]
  ) => {
    const id = later(() => {
      pending.delete(id);
      call(...args);
    }, ms);
    pending.add(id);
    return id;
  };
  root.setInterval = (call: () => void, ms?: number, ...args: unknown[]) => {
    const id = setInterval(call, ms, ...args);
    pending.add(id);
    return id;
  };
  root.clearTimeout = root.clearInterval = (id: number) => {
    pending.delete(id);
    cancel(id);
  };
}

/** Waits until no timer is left, or until something goes wrong that nobody awaits. */
function idle(): Promise<void> {
  return new Promise((done, fail) => {
    addEventListener("unhandledrejection", (event) => {
      event.preventDefault();
      fail(event.reason);
    });
    addEventListener("error", (event) => {
      event.preventDefault();
      fail(event.error);
    });
    const look = () => pending.size === 0 ? done() : void later(look, 1);
    later(look);
  });
}

/** Loads nbb's modules, with what is here in place of what they import of Node's. */
function loader(
  directory: string,
  resolver: string,
): (name: string) => Promise<unknown> {
  // deno-lint-ignore no-explicit-any
  const { nbbParts } = Object.assign(globalThis as any, {
    nbbParts: {
      fs,
      process: node,
      load: (name: string) =>
        import(name.startsWith("./nbb_") ? urlOf(name.slice(2)) : name),
    },
  });
  const made: Record<string, string> = {};
  const blob = (text: string) =>
    URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const ours: Record<string, string> = {
    "node:fs": blob(
      "const {existsSync,readFileSync,readFile}=globalThis.nbbParts.fs;export{existsSync,readFileSync,readFile}",
    ),
    "node:process": blob(
      `const p=globalThis.nbbParts.process;export const {platform,version,versions,cwd,exit,hrtime,on,stdout,stderr,nextTick}=p;export const env=p.env,argv=p.argv;export default p`,
    ),
    "import-meta-resolve": `file://${resolver}`,
  };
  const urlOf = (name: string): string => {
    if (made[name] !== undefined) return made[name];
    const text = Deno.readTextFileSync(`${directory}/${name}`)
      .replace(
        "const shadow_esm_import = function(x) { return import(x) };",
        "const shadow_esm_import = globalThis.nbbParts.load;",
      )
      .replace(/((?:from|import) ?)"([^"\s]+)"/g, (whole, before, wanted) => {
        if (wanted in ours) return `${before}"${ours[wanted]}"`;
        if (/^\.\/nbb_\w+\.js$/.test(wanted)) {
          return `${before}"${urlOf(wanted.slice(2))}"`;
        }
        return whole;
      });
    return made[name] = blob(text);
  };
  void nbbParts;
  return (name) => import(urlOf(name));
}

await serve(language);
