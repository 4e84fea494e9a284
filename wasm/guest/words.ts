/**
 * The words of a command's line.
 *
 * @module
 */

/** The words of a command: in single quotes as they are, in double quotes with escapes. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  const pattern = /\s*(?:'((?:[^']|'')*)'|"((?:[^"\\]|\\.)*)"|(\S+))/gs;
  for (const [, single, double, bare] of text.matchAll(pattern)) {
    if (single !== undefined) words.push(single.replaceAll("''", "'"));
    else if (double !== undefined) {
      words.push(
        double.replace(
          /\\(.)/gs,
          (_, char) => ({ n: "\n", t: "\t", r: "\r" })[char as "n"] ?? char,
        ),
      );
    } else {
      words.push(
        bare!.replace(
          /\\(.)/g,
          (_, char) =>
            ({ n: "\n", t: "\t", r: "\r" })[char as "n"] ?? "\\" + char,
        ),
      );
    }
  }
  return words;
}
