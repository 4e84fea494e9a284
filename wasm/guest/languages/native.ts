/**
 * Runs the modules that C and C++ programs were compiled to. A trap becomes the error
 * and the exit code that the signal has on Linux, with the program's functions and
 * lines.
 *
 * @module
 */

import type { Host, Language, Program } from "../language.ts";
import { serve } from "../serve.ts";
import { instantiate } from "../wasi.ts";
import { describe } from "../native/trap.ts";
import { paced } from "../native/pace.ts";

// Taken of all frames: by few of them an endless recursion is not known.
Error.stackTraceLimit = 100;

/** How many characters of standard error are looked at for why a program ended. */
const LAST = 2000;
const decoder = new TextDecoder();

const native: Language = {
  prepare() {},
  async run(program: Program, host: Host): Promise<number> {
    const bytes = program.compiled!;
    const module = new WebAssembly.Module(bytes as Uint8Array<ArrayBuffer>);
    let last = "";
    const { out, host: streams } = paced(host, (bytes) => {
      last = (last + decoder.decode(bytes.subarray(-LAST))).slice(-LAST);
    });
    const { instance, start } = await instantiate(module, {
      argv: [program.file.replace(/\.[^./]*$/, ""), ...program.args],
      env: program.env,
      host: streams,
    });
    try {
      return start();
    } catch (thrown) {
      const end = describe(thrown, bytes, last);
      if (end === undefined) throw thrown;
      try {
        (instance.exports.rillbox_flush as () => void)();
      } catch {
        // Its buffers are beyond use.
      }
      out.flush();
      host.fail(end.error);
      return end.code;
    } finally {
      out.flush();
    }
  },
};

await serve(native);
