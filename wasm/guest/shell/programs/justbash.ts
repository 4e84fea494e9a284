/**
 * Programs of the package just-bash, each of which is loaded at its first use: `jq`,
 * `yq`, `find` and others. They take all of their input at once, and so give all
 * of their output at once, as programs do that write to a file or pipe.
 *
 * @module
 */

import { FileError, type Files, type Stat } from "../../files.ts";
import { type Call, quote, reason, resolve } from "../shell.ts";
import { Collector, readAll, readAllNow } from "../streams.ts";
import { concat, fromBytes, toBytes } from "../syntax.ts";

/** Which file of the package has a program, and under which name. */
const FILES: Record<string, [file: string, exported: string]> = {
  find: ["find-PM3TD7V4", "findCommand"],
  jq: ["jq-X2P7Q64K", "jqCommand"],
  yq: ["yq-MI27NZ2U", "yqCommand"],
  column: ["column-LKMDIDCH", "column"],
  strings: ["strings-WTD7Q2EF", "strings"],
  tree: ["tree-7OOL2MH6", "treeCommand"],
  expand: ["expand-2BPPGGSM", "expand"],
  unexpand: ["unexpand-YD5BWFH4", "unexpand"],
  rg: ["rg-UQE6KUBP", "rgCommand"],
  xan: ["xan-HUOXKUQA", "xanCommand"],
  du: ["du-PR3M44X6", "duCommand"],
};

/** The limits of the package's own: the supervisor's are those that count. */
const LIMITS = Object.freeze(Object.fromEntries(
  ("maxSourceBytes maxExecDepth maxCallDepth maxCommandCount maxLoopIterations maxAwkIterations maxSedIterations " +
    "maxJqIterations maxQueryTokens maxQueryElements maxAwkParserTokens maxAwkParserOperations maxCsvRows maxCsvCells " +
    "maxWorkUnits maxTraversalEntries maxTraversalDepth maxTraversalWork maxLiveBytes maxInputBytes maxFileSystemBytes " +
    "maxDatabaseBytes maxDatabaseResultBytes maxArchiveBytes maxArchiveCompressedBytes maxArchiveEntryBytes " +
    "maxArchiveEntries maxWorkerMessageBytes maxExecutionTimeMs maxExtensionCleanupTimeMs maxSqliteTimeoutMs " +
    "maxPythonTimeoutMs maxJsTimeoutMs maxGlobOperations maxStringLength maxArrayElements maxHeredocSize " +
    "maxSubstitutionDepth maxBraceExpansionResults maxOutputSize maxFileDescriptors maxSourceDepth")
    .split(" ").map((name) => [name, 0x7fffffff]).concat([[
      "maxQueryDepth",
      1000,
    ], ["maxAwkParserDepth", 256]]),
));

interface Result {
  stdout: string;
  stderr: string;
  exitCode: number;
  stdoutKind?: "text" | "bytes";
  stdoutEncoding?: "binary";
}

interface Command {
  execute(args: string[], context: unknown): Promise<Result>;
}

const CSV =
  '(map(if type == "string" then "\\"" + (split("\\"") | join("\\"\\"")) + "\\"" elif . == null then "" else tostring end) | join(","))';

const loaded = new Map<string, Promise<Command>>();

/** The package reads variables of the child's, which it may not. */
async function withoutEnvironment(): Promise<void> {
  const { default: process } = await import("node:process");
  Object.defineProperty(process, "env", { value: {}, configurable: true });
}

export function justBash(
  directory: string,
): Map<string, (call: Call) => Promise<number>> {
  const programs = new Map<string, (call: Call) => Promise<number>>();
  for (const [name, [file, exported]] of Object.entries(FILES)) {
    programs.set(name, async (call) => {
      let command = loaded.get(name);
      if (command === undefined) {
        if (loaded.size === 0) await withoutEnvironment();
        command = import(
          new URL(`dist/bundle/chunks/${file}.js`, directoryURL(directory)).href
        )
          .then((module) => module[exported] as Command);
        loaded.set(name, command);
      }
      return await run(await command, call);
    });
  }
  return programs;
}

function directoryURL(directory: string): URL {
  const url = new URL("file:///");
  url.pathname = (/^[A-Za-z]:/.test(directory) ? "/" : "") +
    directory.replaceAll("\\", "/") + "/";
  return url;
}

async function run(command: Command, call: Call): Promise<number> {
  const { shell } = call;
  const environment = shell.environment();
  let input: string | undefined = undefined, wanted = false;
  const context = {
    fs: fileSystem(shell.files),
    cwd: shell.cwd,
    env: new Map(Object.entries(environment)),
    exportedEnv: environment,
    // Input is read when it is asked for; where a pipe has to be waited for first, the program begins anew.
    get stdin(): string {
      if (input === undefined) {
        const bytes = readAllNow(call.stdin);
        if (bytes === undefined) {
          wanted = true;
          return "";
        }
        input = latin1(bytes);
      }
      return input;
    },
    limits: LIMITS,
    exec: async (
      line: string,
      options: {
        cwd: string;
        stdin?: string;
        stdinKind?: string;
        args?: string[];
      },
    ): Promise<Result> => {
      const errors = new Collector();
      const { output, status } = await shell.capture(async (copy) => {
        copy.cwd = options.cwd;
        copy.replace(2, errors);
        const args = (options.args ?? []).map((a) => " " + quote(a, true));
        return await copy.script(line + args.join(""));
      });
      return {
        stdout: latin1(output),
        stderr: fromBytes(errors.take()),
        exitCode: status,
        stdoutKind: "bytes",
      };
    },
    getRegisteredCommands: () => [...shell.world.programs.names()],
    sleep: (ms: number) => shell.cancel.sleep(ms),
    substitutionDepth: 0,
  };
  // Its @csv puts no quotes around texts, as jq's does.
  const args = call.name === "jq"
    ? call.args.map((a) => a.replace(/@csv(?!\s*")/g, CSV))
    : call.args;
  let result = await command.execute(args, context);
  if (wanted) {
    input = latin1(await readAll(call.stdin));
    result = await command.execute(args, context);
  }
  if (result.stderr !== "") await call.stderr.write(toBytes(result.stderr));
  if (result.stdout !== "") {
    const binary = result.stdoutKind === "bytes" ||
      result.stdoutKind === undefined && result.stdoutEncoding === "binary";
    await call.stdout.write(
      binary ? fromLatin1(result.stdout) : toBytes(result.stdout),
    );
  }
  return result.exitCode;
}

/** Bytes as a string of one character each. */
export function latin1(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return text;
}

export function fromLatin1(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // A text after all.
    if (code > 255) return toBytes(text);
    bytes[i] = code;
  }
  return bytes;
}

/** The tree of files as the package wants it. */
function fileSystem(files: Files) {
  const named = async <T>(
    what: string,
    path: string,
    f: () => T,
  ): Promise<T> => {
    await null;
    try {
      return f();
    } catch (e) {
      if (!(e instanceof FileError)) throw e;
      const error = new Error(
        `${e.code}: ${reason(e).toLowerCase()}, ${what} '${path}'`,
      );
      throw Object.assign(error, { code: e.code });
    }
  };
  const shape = (stat: Stat) => ({
    isFile: stat.kind === "file",
    isDirectory: stat.kind === "directory",
    isSymbolicLink: stat.kind === "symlink",
    mode: stat.mode,
    size: stat.size,
    mtime: new Date(stat.mtime),
    ino: stat.ino,
  });
  const bytesOf = (
    content: string | Uint8Array,
    options?: { encoding?: string } | string,
  ) => {
    if (typeof content !== "string") return content;
    const encoding = typeof options === "string" ? options : options?.encoding;
    return encoding === "binary" || encoding === "latin1"
      ? fromLatin1(content)
      : toBytes(content);
  };
  const at = (path: string) => resolve("/", path);
  const read = (path: string) =>
    named("open", path, () => files.readFile(at(path)));
  const remove = (path: string, recursive: boolean): void => {
    if (files.stat(path, false).kind !== "directory") return files.unlink(path);
    if (recursive) {
      for (const { name } of files.readDir(path)) {
        remove(`${path}/${name}`, true);
      }
    }
    files.rmdir(path);
  };
  return {
    async readFile(path: string, options?: { encoding?: string } | string) {
      const bytes = await read(path);
      const encoding = typeof options === "string"
        ? options
        : options?.encoding;
      return encoding === "binary" || encoding === "latin1"
        ? latin1(bytes)
        : fromBytes(bytes);
    },
    async readFileBytes(path: string) {
      return latin1(await read(path));
    },
    readFileBuffer: read,
    writeFile: (
      path: string,
      content: string | Uint8Array,
      options?: { encoding?: string } | string,
    ) =>
      named(
        "open",
        path,
        () => files.writeFile(at(path), bytesOf(content, options)),
      ),
    appendFile: (
      path: string,
      content: string | Uint8Array,
      options?: { encoding?: string } | string,
    ) =>
      named("open", path, () => {
        let before = new Uint8Array();
        try {
          before = files.readFile(at(path)) as Uint8Array<ArrayBuffer>;
        } catch {
          // It is made.
        }
        files.writeFile(at(path), concat([before, bytesOf(content, options)]));
      }),
    exists: (path: string) =>
      named("stat", path, () => {
        try {
          files.stat(at(path));
          return true;
        } catch {
          return false;
        }
      }),
    stat: (path: string) =>
      named("stat", path, () => shape(files.stat(at(path)))),
    lstat: (path: string) =>
      named("lstat", path, () => shape(files.stat(at(path), false))),
    mkdir: (path: string, options?: { recursive?: boolean }) =>
      named("mkdir", path, () => {
        if (!options?.recursive) return files.mkdir(at(path));
        let sofar = "";
        for (const part of at(path).split("/").slice(1)) {
          sofar += "/" + part;
          try {
            files.stat(sofar);
          } catch {
            files.mkdir(sofar);
          }
        }
      }),
    readdir: (path: string) =>
      named(
        "scandir",
        path,
        () => files.readDir(at(path)).map((e) => e.name).sort(),
      ),
    readdirWithFileTypes: (path: string) =>
      named(
        "scandir",
        path,
        () =>
          files.readDir(at(path)).map(({ name, kind }) => ({
            name,
            isFile: kind === "file",
            isDirectory: kind === "directory",
            isSymbolicLink: kind === "symlink",
          })).sort((a, b) => a.name < b.name ? -1 : 1),
      ),
    rm: (path: string, options?: { recursive?: boolean; force?: boolean }) =>
      named("rm", path, () => {
        try {
          remove(at(path), options?.recursive ?? false);
        } catch (e) {
          if (
            !options?.force || !(e instanceof FileError) || e.code !== "ENOENT"
          ) throw e;
        }
      }),
    cp: (from: string, to: string) =>
      named(
        "cp",
        from,
        () => files.writeFile(at(to), files.readFile(at(from))),
      ),
    mv: (from: string, to: string) =>
      named("rename", from, () => files.rename(at(from), at(to))),
    resolvePath: (base: string, path: string) => resolve(base, path),
    getAllPaths: () => [],
    chmod: (path: string, mode: number) =>
      named("chmod", path, () => files.chmod(at(path), mode)),
    symlink: (target: string, path: string) =>
      named("symlink", path, () => files.symlink(target, at(path))),
    link: (from: string, to: string) =>
      named(
        "link",
        from,
        () => files.writeFile(at(to), files.readFile(at(from))),
      ),
    readlink: (path: string) =>
      named("readlink", path, () => files.readLink(at(path))),
    realpath: (path: string) => named("realpath", path, () => at(path)),
    utimes: (path: string, atime: Date, mtime: Date) =>
      named(
        "utimes",
        path,
        () => files.setTimes(at(path), atime.getTime(), mtime.getTime()),
      ),
  };
}
