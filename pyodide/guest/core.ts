/**
 * Makes the Emscripten module that holds Python, as Pyodide's own `loadPyodide`
 * would, but sooner:
 *
 * - Pyodide takes Deno for Node and imports six of Node's modules, which stand on
 *   a hundred more (60 ms of CPU). Here each is loaded when it is first used.
 * - Imported, Pyodide's JavaScript (1.2 MB) would be parsed by Deno beside V8
 *   (70 ms, 20 MB). Here it is evaluated.
 * - WebAssembly is compiled while the JavaScript is.
 *
 * All of it is Pyodide's own business, so its version is pinned.
 *
 * @module
 */

import { fill } from "./memory.ts";
import { makeDirectory, place } from "./mount.ts";
import type { Pyodide } from "./pyodide.ts";

/** Pyodide's internals, as far as they are used. */
export interface Internals {
  config: Record<string, unknown>;
  runtimeEnv: typeof DENO;
  lockFilePromise: Promise<string>;
  packageIndexReady: Promise<void>;
  pyVersionTuple: number[];
  sitePackages: string;
  install: unknown;
  loadBinaryFile: unknown;
  public_api: Pyodide;
  sys: { path: { insert(index: number, path: string): void } };
  _pyodide: { set_excepthook(): void };
  makeSnapshot(serializer: (value: unknown) => string): Uint8Array<ArrayBuffer>;
  restoreSnapshot(snapshot: Uint8Array): unknown;
  finalizeBootstrap(
    restored?: unknown,
    deserializer?: (name: string) => unknown,
  ): Pyodide;
  initializeStreams(
    stdin: () => null,
    stdout: (text: string) => void,
    stderr: (text: string) => void,
  ): void;
  fatal_error: (error: unknown) => void;
}

/** One of Python's files, or a directory. */
export interface FileNode {
  name: string;
  mode: number;
  contents: Uint8Array | Record<string, FileNode>;
  usedBytes: number;
}

/** Python's files, which are in memory. */
export interface FileSystem {
  filesystems: {
    MEMFS: {
      createNode(
        parent: FileNode,
        name: string,
        mode: number,
        device: number,
      ): FileNode;
    };
    NODEFS: { staticInit(): void };
  };
  ErrnoError: new (errno: number) => Error;
  isDir(mode: number): boolean;
  isFile(mode: number): boolean;
  lookupPath(path: string): { node: FileNode };
  mkdirTree(path: string): void;
  chdir(path: string): void;
  writeFile(path: string, data: string | Uint8Array): void;
}

/** What makes sockets; see sockets.ts. */
export interface SocketSystem {
  root: unknown;
  createSocket(family: number, kind: number, protocol: number): unknown;
  getSocket(fd: number): unknown;
  pollAsync?(fds: number, count: number, timeout: number): Promise<number>;
}

/** The module that holds Python. */
export interface Core {
  SOCKFS: SocketSystem;
  /** Addresses that stand for names. */
  DNS: {
    lookup_name(name: string): string;
    lookup_addr(address: string): string | null;
  };
  API: Internals;
  FS: FileSystem;
  ENV: Record<string, string>;
  /** The numbers that errors have in WebAssembly's C library (WASI's). */
  ERRNO_CODES: Record<string, number>;
  HEAPU8: Uint8Array<ArrayBuffer>;
  HEAPU32: Uint32Array;
  HEAP32: Int32Array;
  HEAP16: Int16Array;
  _Py_Version: number;
  growMemory(size: number): void;
}

/** How a core is made. */
export interface CoreOptions {
  /** Makes what is known of packages from Pyodide's lock file. */
  lock(lock: Record<string, unknown>): Record<string, unknown>;
  /** Called before Python starts; without it, it does not start by itself. */
  beforePython?(core: Core): void;
}

/** The environment that Python sees. */
const ENV = {
  HOME: "/home/pyodide",
  LANG: "C.UTF-8",
  PYTHONDONTWRITEBYTECODE: "1",
  PYTHONINSPECT: "1", // Pyodide's own choice: Python does not end with its main
};

/** What Pyodide would find out about Deno; what is left out is false. */
const DENO = { IN_DENO: true, IN_NODE: true, IN_NODE_ESM: true };

/** The numbers of errors in WebAssembly's C library. */
const ENETDOWN = 38, EPERM = 63;

/** What may be asked of a socket. */
const SOCKET_CALLS = [
  "accept4",
  "bind",
  "connect",
  "getpeername",
  "getsockname",
  "getsockopt",
  "listen",
  "recvfrom",
  "recvmsg",
  "sendmsg",
  "sendto",
  "socket",
];

/** Names a build of Pyodide in its snapshots; we keep those apart ourselves. */
const BUILD = "0".repeat(64);

/** Makes the module from Pyodide's files in directory. */
export async function createCore(
  directory: string,
  options: CoreOptions,
): Promise<Core> {
  const wasm = WebAssembly.compile(read(`${directory}/pyodide.asm.wasm`));
  const lock = JSON.parse(
    Deno.readTextFileSync(`${directory}/pyodide-lock.json`),
  );
  const API: Partial<Internals> = {
    runtimeEnv: DENO,
    lockFilePromise: Promise.resolve(JSON.stringify(options.lock(lock))),
    config: {
      jsglobals: globalThis,
      env: ENV,
      args: [],
      packages: [],
      indexURL: `${directory}/`,
      packageBaseUrl: "/",
      packageCacheDir: "/",
      cdnUrl: "/",
      enableRunUntilComplete: true,
      BUILD_ID: BUILD,
      _makeSnapshot: options.beforePython !== undefined,
    },
  };
  let core: Core;
  const create = evaluate(`${directory}/pyodide.asm.mjs`);
  await asNode(() =>
    create({
      API,
      require: requirer(() => core.FS.filesystems.NODEFS.staticInit()),
      noInitialRun: !options.beforePython,
      noImageDecoding: true,
      noAudioDecoding: true,
      preRun: [(made: Core) => layOut(core = made, directory)],
      onRuntimeInitialized: () => options.beforePython?.(core),
      locateFile(name: string) {
        throw new Error(`Failed to find dynamic library "${name}"`);
      },
      instantiateWasm(imports: Imports, done: Done) {
        // C's own would copy all that is to be sent, of which a part may be taken.
        imports.env._maybe_sendto_async = (fd: number, ...data: number[]) => {
          const sock = core.SOCKFS.getSocket(fd) as Sender | null;
          return sock?.sock_ops.send?.(sock, ...data) ?? null;
        };
        hideFrames(imports, () => core.HEAPU32);
        wasm.then((module) => done(instantiate(module, imports), module));
        return {};
      },
    })
  );
  return core!;
}

type Sender = {
  sock_ops: { send?: (sock: unknown, ...data: number[]) => Promise<number> };
};
type Imports = WebAssembly.Imports & { env: Record<string, unknown> };
type Done = (
  instance: WebAssembly.Instance,
  module: WebAssembly.Module,
) => void;

function instantiate(
  module: WebAssembly.Module,
  imports: Imports,
): WebAssembly.Instance {
  // Stands for "there was an error" where a JavaScript value is wanted.
  const failure = Symbol("error");
  imports.env.Jsv_GetError_import = () => failure;
  imports.env.JsvError_Check = (value: unknown) => value === failure;
  // These ask for permissions. A refusal is not to be Python's end.
  refusable(imports, "__syscall_getuid32_js", 0);
  refusable(imports, "_emscripten_system", -EPERM);
  // These stand on a module of Node's that is not there.
  for (const call of SOCKET_CALLS) {
    refusable(imports, `__syscall_${call}`, -ENETDOWN);
  }
  return new WebAssembly.Instance(module, imports);
}

/** Where PyThreadState of CPython 3.14 has current_frame. */
const CURRENT_FRAME = 52;

/** A stack that waits, as Pyodide keeps it; without a PyThreadState it can't wait. */
interface Waiting {
  threadState?: number;
  frame?: number;
}

/**
 * Hides the calls of a stack that waits from Python's garbage collector. That walks the
 * frames of all stacks, of which some lie on C's stack, whose place another has meanwhile.
 * What they hold is counted all the same.
 */
function hideFrames(imports: Imports, memory: () => Uint32Array): void {
  const { saveState, restoreState } = imports.env as {
    saveState(): Waiting;
    restoreState(state: Waiting): void;
  };
  const frameAt = (threadState: number) => (threadState + CURRENT_FRAME) >>> 2;
  imports.env.saveState = () => {
    const state = saveState();
    if (state?.threadState) {
      const at = frameAt(state.threadState);
      state.frame = memory()[at]!;
      memory()[at] = 0;
    }
    return state;
  };
  imports.env.restoreState = (state: Waiting) => {
    memory()[frameAt(state.threadState!)] = state.frame!;
    restoreState(state);
  };
}

/** Lets a function of the C library's give refused in place of an exception. */
function refusable(imports: Imports, name: string, refused: number): void {
  const call = imports.env[name] as (...args: number[]) => number;
  imports.env[name] = (...args: number[]) => {
    try {
      return call(...args);
    } catch {
      return refused;
    }
  };
}

/** Reads a file, of 10 MB in half the time that Deno.readFileSync takes. */
function read(path: string): Uint8Array<ArrayBuffer> {
  using file = Deno.openSync(path);
  return fill(file, new Uint8Array(file.statSync().size));
}

/** Makes the files and the environment that Python starts with. */
function layOut(core: Core, directory: string): void {
  const version = core.HEAPU32[core._Py_Version >>> 2]!;
  const [major, minor] = [version >>> 24, version >>> 16 & 0xff];
  const library = `/lib/python${major}.${minor}`;
  core.API.pyVersionTuple = [major, minor, version >>> 8 & 0xff];
  core.API.sitePackages = `${library}/site-packages`;
  core.FS.mkdirTree(core.API.sitePackages);
  core.FS.mkdirTree(`${library}/lib-dynload`);
  // Most of what programs import is in the snapshot.
  const modules = `${directory}/python_stdlib.zip`;
  const { size } = Deno.statSync(modules);
  const lib = makeDirectory(core.FS, "/lib");
  place(core.FS, lib, `python${major}${minor}.zip`, size, () => read(modules));
  core.FS.mkdirTree(ENV.HOME);
  core.FS.chdir(ENV.HOME);
  Object.assign(core.ENV, ENV);
}

/**
 * Gives what the module at path exports, with require in place of imports from
 * Node: settings.require, which is called before anything is waited for.
 */
function evaluate(path: string): (settings: unknown) => Promise<unknown> {
  const name = "_createPyodideModule";
  let text = Deno.readTextFileSync(path).trimEnd();
  for (
    const [from, to] of [
      [/^(?=async function _createPyodideModule\()/, "("],
      [/export default _createPyodideModule;$/, ")"],
      [
        /const\{createRequire\}=await import\("node:module"\);var require=createRequire\(import\.meta\.url\)/,
        "var require=Module.require",
      ],
      [/await import\("(node:[a-z/]+)"\)/g, 'require("$1")'],
      [/import\.meta\.url/g, `"${name}"`],
    ] as const
  ) {
    if (text.search(from) < 0) {
      throw new Error(`Cannot load ${path}: it has nothing like ${from}`);
    }
    text = text.replace(from, to);
  }
  // In brackets, V8 compiles it at once in place of parsing it twice.
  return (0, eval)(`${text}\n//# sourceURL=${path}`);
}

/**
 * Calls create while `process`, which stands on most of Deno's Node, is as little
 * as is looked at before anything is waited for.
 */
function asNode<T>(create: () => T): T {
  const process = Object.getOwnPropertyDescriptor(globalThis, "process")!;
  const value = {
    versions: { node: "20" },
    argv: [],
    platform: "",
    binding: () => ({ fs: {} }),
  };
  Object.defineProperty(globalThis, "process", { value, configurable: true });
  try {
    return create();
  } finally {
    Object.defineProperty(globalThis, "process", process);
  }
}

/** Fills bytes with random ones, of which the system gives 64 KiB at a time. */
function randomFillSync(bytes: Uint8Array<ArrayBuffer>): void {
  for (let i = 0; i < bytes.length; i += 65536) {
    crypto.getRandomValues(bytes.subarray(i, i + 65536));
  }
}

/** Gives modules of Node's that are loaded when one of their names is asked for. */
function requirer(loadedFS: () => void): (name: string) => unknown {
  const known: Record<string, Record<string, unknown>> = {
    "node:path": { sep: "/" },
    "node:crypto": { randomFillSync },
  };
  const names = /^node:(child_process|crypto|fs|fs\/promises|path|tty|url|vm)$/;
  return (name) => {
    if (!names.test(name)) throw new Error(`Cannot find module '${name}'`);
    let module: object | undefined;
    return new Proxy(known[name] ?? {}, {
      get(some, key, self) {
        if (key in some) return some[key as string];
        if (key === "default") return self;
        if (!module) {
          module = process.getBuiltinModule(name)!;
          if (name === "node:fs") loadedFS();
        }
        return Reflect.get(module, key);
      },
    });
  };
}
