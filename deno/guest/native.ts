/**
 * Native code that packages ask for in vain: they say something else of it, or
 * nothing.
 *
 * @module
 */

/** The file's name, and whether it is there and was refused. */
export interface NativeCode {
  name: string;
  refused: boolean;
}

let last: NativeCode | undefined;

/** Names a file of native code by its package, if it is in one. */
export function nativeCodeAt(path: string, refused: boolean): NativeCode {
  const file = path.slice(path.lastIndexOf("/") + 1);
  const owner =
    /(?:^npm:|\/npm\/.*?)((?:@[^/]+\/)?[^/@]+)[@/]\d+\.\d+\.\d+[^/]*\//
      .exec(path);
  return { name: owner ? `${file} of ${owner[1]}` : file, refused };
}

/** Gives the last native code that was not loaded. */
export function nativeCode(): NativeCode | undefined {
  return last;
}

/** Takes note of native code that is not loaded. */
// deno-lint-ignore no-explicit-any
export function watchNativeCode(Module: any): void {
  const note = (path: string, refused: boolean) => {
    if (path.endsWith(".node") && !last?.refused) {
      last = nativeCodeAt(path, refused);
    }
  };
  const load = Module._extensions[".node"];
  Module._extensions[".node"] = (module: unknown, path: string) => {
    try {
      return load(module, path);
    } catch (error) {
      if (error instanceof Deno.errors.NotCapable) note(path, true);
      throw error;
    }
  };
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (request: string, ...rest: unknown[]) {
    try {
      return resolve.call(this, request, ...rest);
    } catch (error) {
      note(request, false);
      throw error;
    }
  };
}
