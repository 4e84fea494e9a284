/**
 * Texts of Perl's: the message by which a program died, and the code of a session.
 *
 * @module
 */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";

/** The error of a message of Perl's: "text at main.pl line 3." and what follows. */
export function died(message: string): WireError {
  const text = message.trimEnd();
  const syntax =
    /^(syntax error|Global symbol|Can't locate .* in @INC|Bareword ".*" not allowed)/m
      .test(text) ||
    /had compilation errors\.|aborted due to compilation errors\./.test(text);
  return {
    name: syntax ? "CompileError" : "Died",
    message: text,
    traceback: "",
  };
}

/** What Perl said last if by it a program ended with a status; nothing if it just exited. */
export function lastWords(said: string, status: number): string {
  const text = said.trimEnd();
  const whole =
    /(?:^|\n)((?:.*(?:syntax error|Global symbol|Can't |not allowed|Missing right).*\n(?:.*\n)*?)?(?:Execution of .* aborted due to compilation errors\.|.* had compilation errors\.|BEGIN failed--compilation aborted .*))$/
      .exec(text);
  if (whole) return whole[1]!;
  return status === 255 ? text.slice(text.lastIndexOf("\n") + 1) : "";
}

/**
 * The code of a session's cell, with the lines of its own. A variable that is declared
 * with `my` at the beginning of a line is the package's, so that later cells see it.
 */
export function sessionCode(code: string, name: string): string {
  const kept = code.replace(/^my(?=\s*[$@%(])/gm, "our");
  return `no strict 'vars';\n#line 1 "${name.replaceAll('"', "")}"\n${kept}\n`;
}

/** Whether a message says that a text ended too early. */
export function waits(message: string): boolean {
  return /Missing right curly|Can't find string terminator|, at EOF|at end of line/
    .test(message);
}
