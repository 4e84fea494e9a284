/**
 * What PHP writes last tells by which error a program ended.
 *
 * @module
 */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";

/** Finds the error in what was written to standard error, if it ended so. */
export function uncaught(written: string): WireError | undefined {
  const begin = [...written.matchAll(/^(Fatal|Parse) error: +/gm)].at(-1);
  if (!begin) return undefined;
  const traceback = written.slice(begin.index).trimEnd();
  const text = traceback.slice(begin[0].length);
  const thrown =
    /^Uncaught ([\w\\]+)(?:@anonymous)?(?:: ([^]*?))? in \S[^\n]*:\d+\nStack trace:/
      .exec(text);
  if (thrown) return { name: thrown[1]!, message: thrown[2] ?? "", traceback };
  const name = begin[1] === "Parse"
    ? "ParseError"
    : /^Out of memory|^Allowed memory size/.test(text)
    ? "OutOfMemory"
    : /^Maximum call stack/.test(text)
    ? "StackOverflow"
    : "FatalError";
  return { name, message: text, traceback };
}
