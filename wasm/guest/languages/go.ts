/**
 * Runs the modules that Go programs were compiled to.
 *
 * @module
 */

import type { Host, Language, Program } from "../language.ts";
import { paced } from "../native/pace.ts";
import { serve } from "../serve.ts";
import { instantiate } from "../wasi.ts";
import { panicked } from "./gopanic.ts";

/** The exit code with which Go's runtime ends a program. */
const PANICKED = 2;

/** How many characters of standard error are looked at for why a program ended. */
const KEPT = 64 << 10;

const decoder = new TextDecoder(), encoder = new TextEncoder();

const go: Language = {
  prepare() {},
  async run(program: Program, host: Host): Promise<number> {
    const module = new WebAssembly.Module(
      program.compiled! as Uint8Array<ArrayBuffer>,
    );
    let said = "";
    const { out, host: streams } = paced(host, (bytes) => {
      said = (said + decoder.decode(bytes)).slice(-KEPT);
    });
    const { start } = await instantiate(module, {
      argv: [program.file.replace(/\.go$/, ""), ...program.args],
      env: program.env,
      host: streams,
    });
    try {
      const code = start();
      const error = code === PANICKED ? panicked(said) : undefined;
      if (error) host.fail(error);
      return code;
    } catch (thrown) {
      // Calls of Go's are calls of WebAssembly's, which the process has a stack for.
      if (!(thrown instanceof RangeError)) throw thrown;
      out.flush();
      host.stderr(encoder.encode("fatal error: stack overflow\n"));
      host.fail({
        name: "StackOverflow",
        message: "stack overflow",
        traceback: "",
      });
      return PANICKED;
    } finally {
      out.flush();
    }
  },
};

await serve(go);
