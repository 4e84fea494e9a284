/**
 * Node's modules that look at the machine, as the guest sees them. Its files are
 * not found by the code of npm packages that may not read them; a program's own
 * code learns what it may not read.
 *
 * @module
 */

import { watchNativeCode } from "./native.ts";
import { adjustProcess, prepareProcess } from "./process.ts";
import {
  answer,
  denoAnswers,
  type Functions,
  osAnswers,
  processAnswers,
  replace,
} from "./sandbox.ts";

// Taken before the guest's code runs, which may replace them.
const { NotCapable } = Deno.errors;
const { apply } = Reflect;
const { assign, hasOwn, keys } = Object;
const queue = queueMicrotask;

/** Where Deno has a package's file: the registry, its name and its version. */
const PACKAGE = /\/npm\/[^/]+\/.+\/\d+\.\d+\.\d+[^/]*\//;

/** Node's functions that take the name of a file and read, without "Sync". */
const READS = [
  "access",
  "lstat",
  "open",
  "opendir",
  "readFile",
  "readdir",
  "readlink",
  "realpath",
  "stat",
  "statfs",
];

/** Says that a function of ours was called by the code of an npm package. */
function isPackageCalling(ours: Functions[string]): boolean {
  const { prepareStackTrace, stackTraceLimit } = Error;
  let file = "";
  Error.stackTraceLimit = 30; // those of Deno's own count
  Error.prepareStackTrace = (_, sites) => {
    for (let i = 0; i < sites.length && file === ""; i++) {
      const name = sites[i]!.getFileName() ?? "";
      if (!/^(ext|node):/.test(name)) file = name;
    }
  };
  try {
    const trace = { stack: "" };
    Error.captureStackTrace(trace, ours);
    void trace.stack;
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
  return PACKAGE.test(file);
}

/** Makes of a read that was refused what Node says of a file that is not there. */
function missing(error: unknown, name: string, file: unknown): unknown {
  const isRefused = error instanceof NotCapable &&
    error.message.startsWith("Requires read access");
  if (!isRefused) return error;
  let syscall = name.replace(/Sync$/, "");
  if (syscall === "readFile") syscall = "open";
  if (syscall === "readdir") syscall = "scandir";
  const path = String(file);
  const text = `ENOENT: no such file or directory, ${syscall} '${path}'`;
  const cause = error;
  return assign(new Error(text, { cause }), {
    errno: -2,
    code: "ENOENT",
    syscall,
    path,
  });
}

/** Has a function not find for packages what they may not read. */
function findNothing(holder: Functions, name: string): void {
  const native = holder[name]?.native;
  replace(holder, name, (ask) =>
    function ours(...args) {
      const done = args.at(-1);
      const later = typeof done === "function";
      const none = (error: unknown) => missing(error, name, args[0]);
      const forPackage = later && isPackageCalling(ours);
      if (forPackage) {
        args[args.length - 1] = (error: unknown, ...rest: unknown[]) =>
          done(none(error), ...rest);
      }
      try {
        const found = apply(ask, this, args);
        if (!(found instanceof Promise) || !isPackageCalling(ours)) {
          return found;
        }
        return found.catch((error: unknown) => {
          throw none(error);
        });
      } catch (error) {
        const told = none(error);
        if (told === error || !(later ? forPackage : isPackageCalling(ours))) {
          throw error;
        }
        if (later) return queue(() => done(told));
        if (name === "existsSync") return false;
        const options = args[1] as { throwIfNoEntry?: boolean } | undefined;
        if (options?.throwIfNoEntry === false) return undefined;
        throw told;
      }
    });
  if (native === undefined) return;
  const own: Functions = { native };
  findNothing(own, "native");
  holder[name].native = own.native;
}

/** Where there are hooks, Deno takes a package that is not there for a file. */
export function mustBePackage(
  specifier: string,
  parent: string,
  url?: string,
): void {
  const isName = /^[^./#:]+(\/[^:]*)?$/.test(specifier);
  if (!isName || url !== new URL(specifier, parent).href) return;
  const missing = new Error(
    PACKAGE.test(parent)
      ? `Could not find package '${specifier}' from referrer '${parent}'`
      : `Import "${specifier}" not a dependency`,
  );
  missing.name = ""; // Deno makes a TypeError of it, with its name in the text
  throw missing;
}

/** Prepares a module, and names what was replaced in it. */
const PREPARE: Record<
  string,
  (require: (name: string) => Functions) => string[]
> = {
  os(require) {
    answer(require("node:os"), osAnswers);
    return keys(osAnswers);
  },
  process() {
    prepareProcess();
    return ["env", ...keys(processAnswers)];
  },
  fs(require) {
    const fs = require("node:fs");
    const sync = READS.map((name) => `${name}Sync`);
    const names = [...READS, ...sync, "existsSync"];
    for (const name of names) findNothing(fs, name);
    for (const name of READS) findNothing(fs.promises, name);
    return names.filter((name) => hasOwn(fs, name));
  },
  "fs/promises"(require) {
    const { promises } = require("fs"); // prepares it
    return READS.filter((name) => hasOwn(promises, name));
  },
};

/**
 * Registers hooks without which packages require ECMAScript modules that import others:
 * where there are any, Deno 2.9 does not resolve what these import.
 */
// deno-lint-ignore no-explicit-any
function register(Module: any, hooks: unknown[]): void {
  const all = () => hooks.map((one) => Module.registerHooks(one));
  let registered: { deregister(): void }[] = all();
  for (const extension of [".js", ".mjs"]) {
    const load = Module._extensions[extension];
    Module._extensions[extension] = (module: unknown, path: string) => {
      try {
        return load(module, path);
      } catch (error) {
        const isUnresolved = registered.length > 0 &&
          error instanceof TypeError && UNRESOLVED.test(error.message);
        if (!isUnresolved) throw error;
        for (const hook of registered) hook.deregister();
        registered = [];
        try {
          return load(module, path); // none of its code has run
        } finally {
          registered = all();
        }
      }
    };
  }
}

const plain = (name: string) => name.replace(/^node:/, "");

const UNRESOLVED = /^(?:TypeError: )?Cannot resolve module "/;

/**
 * Prepares modules of Node's when they are first imported, and has what is
 * imported from them by its name be what was prepared: Deno gives its own
 * functions, whatever became of those of a module's default export. More hooks,
 * which come after these, may be registered with them.
 */
// deno-lint-ignore no-explicit-any
export function prepareSystem(Module: any, ...more: unknown[]): void {
  const require = Module.createRequire("file:///");
  const prepared: Record<string, string> = {};
  const prepare = (name: string) => {
    if (!hasOwn(PREPARE, name) || hasOwn(prepared, name)) return;
    prepared[name] = ""; // it is required meanwhile
    const code = `export * from "node:${name}"; ` +
      `import m from "node:${name}"; export default m; ` +
      `export const { ${PREPARE[name]!(require)} } = m;`;
    prepared[name] = `data:text/javascript,${encodeURIComponent(code)}`;
  };
  adjustProcess((process) =>
    // asks no hook
    replace(process as unknown as Functions, "getBuiltinModule", (ask) =>
      function (...args) {
        if (typeof args[0] === "string") {
          prepare(plain(args[0]));
        }
        return apply(ask, this, args);
      })
  );
  watchNativeCode(Module);
  answer(Deno as Functions, denoAnswers, isPackageCalling);
  register(Module, [...more, {
    resolve(
      specifier: string,
      context: { parentURL?: string; conditions: string[] },
      next: (specifier: string, context: unknown) => unknown,
    ): unknown {
      const name = plain(specifier);
      const parent = context.parentURL ?? "";
      if (!hasOwn(PREPARE, name) || parent === prepared[name]) {
        const found = next(specifier, context) as { url?: string };
        if (PACKAGE.test(parent)) mustBePackage(specifier, parent, found.url);
        return found;
      }
      prepare(name);
      const own = name.startsWith("fs") && !PACKAGE.test(parent);
      if (own || context.conditions.includes("require")) {
        return next(specifier, context);
      }
      return { url: prepared[name], format: "module", shortCircuit: true };
    },
  }]);
}
