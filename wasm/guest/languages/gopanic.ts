/**
 * The panic by which a Go program ended, out of what its runtime said of it.
 *
 * @module
 */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";

/** Gives the panic or fatal error in a text of standard error's, with the program's calls. */
export function panicked(said: string): WireError | undefined {
  const start = [...said.matchAll(/^(panic|fatal error): /gm)].at(-1);
  if (!start) return undefined;
  const text = said.slice(start.index);
  const frames = text.search(/^goroutine \d+ .*:$/m);
  const head = (frames < 0 ? text : text.slice(0, frames)).trim();
  const message = head.slice(start[0].length).replace(
    /\n*\[signal [^\]]*\]/,
    "",
  ).trimEnd();
  return {
    name: start[1] === "panic" ? "panic" : "FatalError",
    message,
    traceback: frames < 0 ? "" : text.slice(frames).trimEnd(),
  };
}
