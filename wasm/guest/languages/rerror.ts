/**
 * The error by which a program in R ended, out of what R said of it.
 *
 * @module
 */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";

/** Gives the last error in a text of standard error's. */
export function failure(
  said: string,
  traceback: string,
): WireError | undefined {
  const starts = [...said.matchAll(/^Error(?: in |: )/gm)];
  const last = starts.at(-1);
  if (!last) return undefined;
  const text = said.slice(last.index).split(
    /\n(?=Calls: |In addition: |Execution halted$)/m,
  )[0]!.trimEnd();
  // "Error in f(x) : message", where the message may begin on the next line.
  const [, call, message] =
    /^Error(?: in ([\s\S]*?) ?)?:(?:\s+)([\s\S]*)$/.exec(text) ?? [];
  if (message === undefined) return { name: "Error", message: text, traceback };
  return {
    name: "Error",
    message: call ? `in ${call}: ${message}` : message,
    traceback,
  };
}
