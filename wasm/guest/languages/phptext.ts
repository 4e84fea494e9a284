/**
 * What a session has to know of PHP's texts before PHP reads them.
 *
 * @module
 */

/** A program without any of PHP's tags is PHP, unless it begins as HTML does. */
export function programOf(code: string): string {
  return /<\?|^\s*</.test(code) ? code : `<?php ${code}`;
}

/** Makes a cell a script: its value, if it is an expression, is shown. */
export function scriptOf(cell: string, echo: boolean): string {
  const code = cell.trim();
  if (/^<\?/.test(code)) return cell;
  const ended = [code, code.replace(COMMENTS, "")].some((text) =>
    text === "" || /(?:[;}]|\?>)$/.test(text)
  );
  if (!echo || ended) {
    return `<?php ${cell}`;
  }
  if (STATEMENT.test(code)) return `<?php ${cell};`;
  return `<?php (function ($value) { if ($value !== null) var_dump($value); })(${cell}\n);`;
}

/** Comments at the end of a text, or what looks so. */
const COMMENTS = /(?:\s+|(?:\/\/|#)[^\n]*$|\/\*[^*]*\*\/$)+$/;

/** What begins a statement that is no expression. */
const STATEMENT =
  /^(?:echo|return|throw|global|static|unset|use|const|goto|break|continue)\b|^#|^\/\//i;

/** Whether a text ends within brackets, a string or a comment. */
export function isUnfinished(text: string): boolean {
  let depth = 0;
  const token =
    /\/\*[^]*?(?:\*\/|$(?![^]))|(?:\/\/|#(?!\[))[^\n]*|<<<[ \t]*(["']?)(\w+)\1\n[^]*?(?:\n[ \t]*\2\b|$(?![^]))|(["'`])(?:\\[^]|(?!\3)[^\\])*(?:\3|$(?![^]))|[([{]|[)\]}]/g;
  for (const [all, , heredoc, quote] of text.matchAll(token)) {
    if (all.startsWith("/*")) {
      if (all.length < 4 || !all.endsWith("*/")) return true;
    } else if (heredoc) {
      if (!new RegExp(`\\n[ \\t]*${heredoc}$`).test(all)) return true;
    } else if (quote) {
      if (!ends(all, quote)) return true;
    } else if (/^[([{]/.test(all)) {
      depth++;
    } else if (/^[)\]}]/.test(all)) {
      depth--;
    }
  }
  return depth > 0;
}

/** Whether a string has its end: a quote without a backslash that is for it. */
function ends(string: string, quote: string): boolean {
  const within = string.slice(1, -1);
  return string.length > 1 && string.endsWith(quote) &&
    /\\*$/.exec(within)![0].length % 2 === 0;
}
