/**
 * Loads Pyodide in Deno, afresh or from a memory snapshot.
 *
 * Only what is used here of Pyodide's interface is declared, some of it
 * Pyodide's own internals (`_api`, `_makeSnapshot`): its version is pinned.
 */

/** A Python function, seen from JavaScript. */
export interface PyFunction {
  (...args: unknown[]): unknown;
  /** Calls it so that Python can wait for promises (JSPI). */
  callPromising(...args: unknown[]): Promise<unknown>;
}

/** How Python writes to one of its standard streams, and reads from one. */
interface Stream {
  isatty: boolean;
  read?(buffer: Uint8Array): number;
  write?(buffer: Uint8Array): number;
}

/** Pyodide's internals, as far as they are used. */
interface Internals {
  install: unknown;
  loadBinaryFile: unknown;
  public_api: Pyodide;
  fatal_error: (error: unknown) => void;
}

/** Pyodide's public interface, as far as it is used. */
export interface Pyodide {
  FS: {
    mkdirTree(path: string): void;
    writeFile(path: string, data: string | Uint8Array): void;
  };
  _api: Internals;
  loadPackage: unknown;
  runPython(code: string): unknown;
  loadedPackages: Record<string, string>;
  pyimport(name: string): Record<string, PyFunction>;
  setStdin(stream: Stream): void;
  setStdout(stream: Stream): void;
  setStderr(stream: Stream): void;
  makeMemorySnapshot(
    options: { serializer: (value: unknown) => string },
  ): Uint8Array;
}

/** Pyodide's options, as far as they are used. */
interface Options {
  indexURL: string;
  lockFileContents: string;
  packageBaseUrl: string;
  env: Record<string, string>;
  createPyodideModule: (settings: Settings) => Promise<unknown>;
  _makeSnapshot?: boolean;
  _loadSnapshot?: Uint8Array;
  _snapshotDeserializer?: (name: string) => unknown;
}

/** What Pyodide gives to the module that holds Python. */
interface Settings {
  API: Internals;
}

/** The Emscripten module that holds Python. */
interface Core {
  HEAP8: Int8Array;
  growMemory(size: number): void;
}

/** The environment that Python sees. */
const ENV = {
  HOME: "/home/pyodide",
  LANG: "C.UTF-8",
  PYTHONDONTWRITEBYTECODE: "1",
};

/**
 * The JavaScript objects that a snapshot's Python holds and that Pyodide can't
 * name by itself: those that micropip imports.
 */
const CARRIED: Record<string, (api: Internals) => unknown> = {
  pyodide: (api) => api.public_api,
  loadPackage: (api) => api.public_api.loadPackage,
  loadedPackages: (api) => api.public_api.loadedPackages,
  install: (api) => api.install,
  loadBinaryFile: (api) => api.loadBinaryFile,
};

/** Loads Pyodide from its files, ready to be made a snapshot of. */
export async function loadFresh(directory: URL): Promise<Pyodide> {
  return await load(directory, (lock) => lock, { _makeSnapshot: true });
}

/** The memory of a Pyodide that loadFresh returned. */
export function snapshotOf(pyodide: Pyodide): Uint8Array {
  return pyodide.makeMemorySnapshot({
    serializer(value) {
      for (const [name, get] of Object.entries(CARRIED)) {
        if (get(pyodide._api) === value) return name;
      }
      throw new Error(`Cannot carry ${value} in a snapshot`);
    },
  });
}

/** Loads Pyodide as snapshotOf saw it. */
export async function loadSnapshot(
  directory: URL,
  snapshot: Uint8Array,
): Promise<Pyodide> {
  // What is known of packages is in the snapshot, with micropip.
  return await load(directory, (lock) => ({ ...lock, packages: {} }), {
    _loadSnapshot: snapshot,
  });
}

async function load(
  directory: URL,
  changeLock: (lock: Record<string, unknown>) => unknown,
  options: Partial<Options>,
): Promise<Pyodide> {
  const [pyodide, core, lock] = await Promise.all([
    import(new URL("pyodide.mjs", directory).href),
    import(new URL("pyodide.asm.mjs", directory).href),
    Deno.readTextFile(new URL("pyodide-lock.json", directory)),
  ]);
  let api: Internals;
  return await pyodide.loadPyodide({
    // Found by Pyodide itself from a stack trace otherwise, wrongly in Deno.
    indexURL: directory.pathname,
    lockFileContents: JSON.stringify(changeLock(JSON.parse(lock))),
    packageBaseUrl: "/",
    env: ENV,
    async createPyodideModule(settings: Settings) {
      api = settings.API;
      const module: Core = await core.default(settings);
      // Pyodide copies a snapshot without making room for it.
      const size = options._loadSnapshot?.byteLength ?? 0;
      if (size > module.HEAP8.byteLength) module.growMemory(size);
      return module;
    },
    _snapshotDeserializer: (name: string) => CARRIED[name]?.(api),
    ...options,
  });
}
