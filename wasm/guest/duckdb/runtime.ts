/**
 * What DuckDB's module asks of the machine: files, which are those of the program's tree.
 *
 * @module
 */

import { FileError, type Files, type OpenFile } from "../files.ts";
import { fullPath, glob, isFile } from "../path.ts";

/** DuckDB's module, as Emscripten made it. */
interface Module {
  HEAPU8: Uint8Array;
  HEAPF64: Float64Array;
  _malloc(size: number): number;
  ccall(name: string, result: null, types: string[], args: unknown[]): void;
}

/** What the package has for a runtime to call the module. */
export interface Helpers {
  callSRet(
    module: Module,
    name: string,
    types: string[],
    args: unknown[],
  ): [status: number, data: number, length: number];
  readString(module: Module, at: number, length: number): string;
  dropResponseBuffers(module: Module): void;
  failWith(module: Module, message: string): void;
}

const WRITE = 2, CREATE = 8, CREATE_NEW = 16, NULL_IF_NOT_EXISTS = 128;
/** A protocol by which the module asks its runtime for all that is read. */
const OWN_FILES = 1;

export function makeRuntime(
  helpers: Helpers,
  files: () => Files,
): Record<string, unknown> {
  const open = new Map<number, OpenFile>();
  const path = (module: Module, at: number, length: number) =>
    fullPath(helpers.readString(module, at, length).replace(/^file:\/\//, ""));
  const nameOf = (module: Module, id: number): string => {
    const [status, data, length] = helpers.callSRet(
      module,
      "duckdb_web_fs_get_file_info_by_id",
      ["number", "number"],
      [id, 0],
    );
    const text = helpers.readString(module, data, length);
    helpers.dropResponseBuffers(module);
    if (status !== 0 || length === 0) throw new FileError("EBADF");
    return fullPath(JSON.parse(text).fileName.replace(/^file:\/\//, ""));
  };
  /** Calls, and tells the module of what files refuse. */
  const guard = <T>(module: Module, otherwise: T, call: () => T): T => {
    try {
      return call();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      helpers.failWith(module, `IO Error: ${error.message}`);
      return otherwise;
    }
  };
  const file = (id: number): OpenFile => {
    const found = open.get(id);
    if (!found) throw new FileError("EBADF");
    return found;
  };
  return {
    _udfFunctions: new Map(),
    _files: new Map(),
    testPlatformFeature: () => true,
    getDefaultDataProtocol: () => OWN_FILES,
    openFile: (module: Module, id: number, flags: number) =>
      guard(module, 0, () => {
        const name = nameOf(module, id);
        const write = (flags & WRITE) !== 0;
        let opened: OpenFile;
        try {
          opened = files().open(name, {
            read: true,
            write,
            create: write && (flags & (CREATE | CREATE_NEW)) !== 0,
            truncate: write && (flags & CREATE_NEW) !== 0,
          });
        } catch (error) {
          const gone = error instanceof FileError && error.code === "ENOENT";
          if (gone && (flags & NULL_IF_NOT_EXISTS) !== 0) return 0;
          throw error;
        }
        open.get(id)?.close();
        open.set(id, opened);
        const { size } = opened.stat();
        const at = module._malloc(16);
        module.HEAPF64[at / 8] = size;
        module.HEAPF64[at / 8 + 1] = 0; // the file is in no buffer
        return at;
      }),
    closeFile(_: Module, id: number) {
      open.get(id)?.close();
      open.delete(id);
    },
    dropFile() {},
    syncFile() {},
    getLastFileModificationTime: (module: Module, id: number) =>
      guard(module, 0, () => file(id).stat().mtime / 1000),
    truncateFile: (module: Module, id: number, size: number) =>
      guard(module, undefined, () => file(id).truncate(size)),
    readFile: (module: Module, id: number, to: number, n: number, at: number) =>
      guard(
        module,
        0,
        () => file(id).read(module.HEAPU8.subarray(to, to + n), at),
      ),
    writeFile: (
      module: Module,
      id: number,
      from: number,
      n: number,
      at: number,
    ) =>
      guard(
        module,
        0,
        () => file(id).write(module.HEAPU8.subarray(from, from + n), at),
      ),
    checkFile: (module: Module, at: number, length: number) =>
      isFile(files(), path(module, at, length)),
    removeFile: (module: Module, at: number, length: number) =>
      guard(module, undefined, () => files().unlink(path(module, at, length))),
    moveFile: (
      module: Module,
      from: number,
      fromLength: number,
      to: number,
      toLength: number,
    ) =>
      guard(module, false, () => {
        files().rename(
          path(module, from, fromLength),
          path(module, to, toLength),
        );
        return true;
      }),
    checkDirectory(module: Module, at: number, length: number) {
      try {
        return files().stat(path(module, at, length)).kind === "directory";
      } catch {
        return false;
      }
    },
    createDirectory: (module: Module, at: number, length: number) =>
      guard(module, undefined, () => files().mkdir(path(module, at, length))),
    removeDirectory: (module: Module, at: number, length: number) =>
      guard(module, undefined, () => files().rmdir(path(module, at, length))),
    listDirectoryEntries: () => false,
    glob(module: Module, at: number, length: number) {
      for (const found of glob(files(), path(module, at, length))) {
        module.ccall("duckdb_web_fs_glob_add_path", null, ["string"], [found]);
      }
    },
    progressUpdate() {},
    callScalarUDF() {},
  };
}
