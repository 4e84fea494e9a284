/**
 * CommonJS's require in the words of this product.
 *
 * @module
 */

// deno-lint-ignore no-explicit-any
type NodeModule = any;

/** Has require say of a package that is not there what to do about it. */
export function explainRequire(Module: NodeModule): void {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (
    request: string,
    parent: NodeModule,
    ...rest: unknown[]
  ) {
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
