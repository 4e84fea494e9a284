/**
 * CommonJS's require in the words of this product.
 *
 * @module
 */

import { hasDirectory } from "./traceback.ts";

const { cwd } = Deno;

// deno-lint-ignore no-explicit-any
type NodeModule = any;

/**
 * Has require say of a package that is not there what to do about it, and find
 * what the program names relative to itself in the current directory.
 */
export function explainRequire(Module: NodeModule, program?: string): void {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (
    request: string,
    parent: NodeModule,
    ...rest: unknown[]
  ) {
    if (
      program !== undefined && parent?.filename === program &&
      (rest[1] as { paths?: unknown } | undefined)?.paths === undefined &&
      /^\.{1,2}(\/|$)/.test(request) && hasDirectory()
    ) {
      request = `${cwd()}/${request.replace(/^\.\//, "")}`;
    }
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
}
