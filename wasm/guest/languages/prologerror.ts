/**
 * What Prolog writes to standard error tells which error came first.
 *
 * @module
 */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";

/** Finds the first error, or else the first goal that failed. */
export function firstError(written: string): WireError | undefined {
  const blocks = blocksOf(written);
  const first = blocks.find(({ kind }) => kind === "ERROR") ??
    blocks.find(({ text }) => /\bfailed\b/.test(text));
  if (!first) return undefined;
  const message = first.text;
  const name = /stack limit|C-stack/i.test(message)
    ? "StackOverflow"
    : /Syntax error/.test(message)
    ? "SyntaxError"
    : /Unknown procedure|does not exist/.test(message)
    ? "ExistenceError"
    : /Type error/.test(message)
    ? "TypeError"
    : /evaluation error/.test(message)
    ? "EvaluationError"
    : /No permission/.test(message)
    ? "PermissionError"
    : /not enough memory|No memory/i.test(message)
    ? "OutOfMemory"
    : first.kind === "ERROR"
    ? "Error"
    : "GoalFailed";
  return { name, message, traceback: first.whole };
}

interface Block {
  kind: "ERROR" | "Warning";
  /** Without what each line begins with. */
  text: string;
  whole: string;
}

/**
 * A message is a line and those after it that are further in, or that the line before
 * announced.
 */
function blocksOf(written: string): Block[] {
  const blocks: Block[] = [];
  for (const line of written.split("\n")) {
    const begin = /^(ERROR|Warning): (.*)$/.exec(line);
    if (!begin) continue;
    const [kind, text] = [begin[1] as Block["kind"], begin[2]!];
    const last = blocks.at(-1);
    if (
      last?.kind === kind && (text.startsWith("  ") || /:$/.test(last.text))
    ) {
      last.text += `\n${text.trim()}`;
      last.whole += `\n${line}`;
    } else {
      blocks.push({ kind, text, whole: line });
    }
  }
  return blocks;
}
