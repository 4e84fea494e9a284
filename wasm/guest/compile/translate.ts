/**
 * A compiler that makes JavaScript of a program: what the JavaScript engine then runs, with
 * a source map, so that errors have the lines of what was written.
 *
 * @module
 */

import { readRequest } from "../../../supervisor/wire/guest/wire.ts";
import type { Start } from "../language.ts";

/** What is to be translated. */
export interface Sources {
  code: string;
  /** The path of the program's file. */
  file: string;
  /** The other sources, by their paths, in base64. */
  files?: Record<string, string>;
}

/** What came of it. */
export interface Translation {
  language: "javascript";
  code: string;
  /** Modules that it imports, by their paths. */
  files: Record<string, string>;
}

/** The compiler refuses the program, in these words. */
export class Refused extends Error {}

export type Translate = (
  sources: Sources,
) => Translation | Promise<Translation>;

const encoder = new TextEncoder();

/** Takes a request from fd 0, and writes its translation to fd 3. */
export async function serveTranslation(
  load: (start: Start) => Translate | Promise<Translate>,
): Promise<never> {
  const out = Deno.openSync("/dev/fd/3", { write: true });
  const translate = await load(JSON.parse(Deno.args[0]!));
  const sources = readRequest() as Sources;
  let text: string;
  try {
    text = JSON.stringify(await translate(sources));
  } catch (thrown) {
    if (!(thrown instanceof Refused)) throw thrown;
    writeAll(Deno.stderr, thrown.message.trimEnd() + "\n");
    Deno.exit(1);
  }
  writeAll(out, text);
  Deno.exit(0);
}

function writeAll(
  to: { writeSync(p: Uint8Array): number },
  text: string,
): void {
  let bytes: Uint8Array = encoder.encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(to.writeSync(bytes));
}
