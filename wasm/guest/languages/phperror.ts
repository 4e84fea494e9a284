/** Reads, in what PHP wrote last, by which error it ended. */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";

export function uncaught(written: string): WireError | undefined {
  const last = [...written.matchAll(/^(?:PHP )?(Fatal|Parse) error: +/gm)].at(-1);
  if (!last) return undefined;
  const traceback = written.slice(last.index).trimEnd();
  const text = written.slice(last.index + last[0].length).trimEnd();
  const where = / in (?:\/|php:|Standard )[^\n]*? on line \d+/;
  if (last[1] === "Parse") {
    return {
      name: "ParseError",
      message: text.replace(/^syntax error, /, "syntax error, "),
      traceback,
    };
  }
  const thrown = /^Uncaught (?:exception )?([\w\\]+)(?:: ([^]*?))? in \S[^\n]*:\d+\nStack trace:/
    .exec(text);
  if (thrown) return { name: thrown[1]!, message: thrown[2] ?? "", traceback };
  return { name: "Error", message: text.replace(where, ""), traceback };
}
