/**
 * Loads Pyodide in Deno, afresh or from a memory snapshot.
 *
 * Only what is used here of Pyodide's interface is declared, some of it
 * Pyodide's own internals: its version is pinned.
 *
 * @module
 */

import {
  type Core,
  createCore,
  type FileSystem,
  type Internals,
} from "./core.ts";
import {
  pagesInUse,
  readMemory,
  type Sink,
  type Source,
  writeMemory,
} from "./memory.ts";

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

/** Pyodide's public interface, as far as it is used. */
export interface Pyodide {
  FS: FileSystem;
  _api: Internals;
  _module: Core;
  loadPackage: unknown;
  runPython(code: string): unknown;
  loadedPackages: Record<string, string>;
  pyimport(name: string): Record<string, PyFunction>;
  /** Takes what is read every few instructions; 2 in it raises KeyboardInterrupt. */
  setInterruptBuffer(buffer: { [0]: number }): void;
  setStdin(stream: Stream): void;
  setStdout(stream: Stream): void;
  setStderr(stream: Stream): void;
}

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

/** Loads Pyodide from its files in directory; save writes it as it is then. */
export async function loadFresh(
  directory: string,
): Promise<{ pyodide: Pyodide; save: (to: Sink) => void }> {
  let touched: boolean[] = [];
  const core = await createCore(directory, {
    lock: (lock) => lock,
    beforePython: (core) => touched = pagesInUse(core.HEAPU8),
  });
  const pyodide = core.API.finalizeBootstrap();
  core.API.sys.path.insert(0, "");
  core.API._pyodide.set_excepthook();
  await settle(core.API);
  const save = (to: Sink) => {
    const snapshot = core.API.makeSnapshot((value) => nameOf(value, core.API));
    const start = snapshot.length - core.HEAPU8.length;
    const beside = snapshot.subarray(0, start);
    writeMemory(to, snapshot.subarray(start), beside, touched);
  };
  return { pyodide, save };
}

function nameOf(value: unknown, api: Internals): string {
  for (const [name, get] of Object.entries(CARRIED)) {
    if (get(api) === value) return name;
  }
  throw new Error(`Cannot carry ${value} in a snapshot`);
}

/** Loads Pyodide as it was saved. */
export async function loadSaved(
  directory: string,
  from: Source,
): Promise<Pyodide> {
  // What is known of packages is in the snapshot, with micropip.
  const lock = (lock: object) => ({ ...lock, packages: {} });
  const core = await createCore(directory, { lock });
  const beside = readMemory(from, (size) => {
    core.growMemory(size);
    return core.HEAPU8;
  });
  const pyodide = core.API.finalizeBootstrap(
    core.API.restoreSnapshot(beside),
    (name) => CARRIED[name]?.(core.API),
  );
  await settle(core.API);
  return pyodide;
}

async function settle(api: Internals): Promise<void> {
  await api.packageIndexReady;
  // The worker connects its own; by default they are Node's.
  api.initializeStreams(() => null, () => {}, () => {});
}
