/**
 * CommonJS's require in the words of this product.
 *
 * @module
 */

import { hasDirectory, NO_DIRECTORY } from "./traceback.ts";

const { cwd } = Deno;

// deno-lint-ignore no-explicit-any
type NodeModule = any;

/**
 * Has require say of a package that is not there what to do about it, and look in the
 * current directory for what the program, in its directory, names relative to itself
 * and has not. names are those of the project that stand for files, by their paths.
 */
export function explainRequire(
  Module: NodeModule,
  directory?: string,
  names: Record<string, string> = {},
): void {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (
    request: string,
    parent: NodeModule,
    ...rest: unknown[]
  ) {
    const ours = directory !== undefined &&
      parent?.filename?.startsWith(directory);
    if (ours && Object.hasOwn(names, request)) {
      return resolve.call(this, names[request], parent, ...rest);
    }
    const own = ours &&
      (rest[1] as { paths?: unknown } | undefined)?.paths === undefined &&
      /^\.{1,2}(\/|$)/.test(request);
    try {
      return resolve.call(this, request, parent, ...rest);
    } catch (error) {
      if (own && hasDirectory()) {
        const file = new URL(request, `file://${parent.filename}`).pathname;
        const path = file.startsWith(directory)
          ? `${cwd()}/${decodeURI(file.slice(directory.length))}`
          : `${cwd()}/${request}`;
        return resolve.call(this, path, parent, ...rest);
      }
      if (own && (error as { code?: unknown }).code === "MODULE_NOT_FOUND") {
        (error as Error).message = (error as Error).message.replace(
          /(?=\n|$)/,
          `: ${NO_DIRECTORY}`,
        );
      }
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
}
