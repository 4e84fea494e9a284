/**
 * Which of the files beside a program belong to it, and what its words ask of the
 * compiler.
 *
 * @module
 */

import type { Language } from "./commands.ts";
import { normalize } from "./tool.ts";

const EXTENSIONS = {
  "c": [".c"],
  "c++": [".cpp", ".cc", ".cxx", ".c++", ".C", ".c"],
};

export function languageOf(path: string): Language {
  return path.endsWith(".c") ? "c" : "c++";
}

/**
 * The sources that belong to a program whose options name none: for each header that
 * it includes by a name in quotes, the source of the same name beside the header, and
 * so on for what that includes. A source that is included itself is not compiled.
 */
export function sourcesOf(
  main: string,
  read: (path: string) => string | undefined,
): string[] {
  const language = languageOf(main);
  const found: string[] = [],
    seen = new Set([main]),
    included = new Set<string>();
  const queue = [main];
  for (let path; (path = queue.shift()) !== undefined;) {
    const directory = path.slice(0, path.lastIndexOf("/"));
    for (
      const [, name] of (read(path) ?? "").matchAll(
        /^[ \t]*#[ \t]*include[ \t]*"([^"]+)"/gm,
      )
    ) {
      const header = normalize(`${directory}/${name}`);
      included.add(header);
      if (read(header) === undefined || seen.has(header)) continue;
      seen.add(header);
      queue.push(header);
      const stem = header.replace(/\.[^./]*$/, "");
      for (const extension of EXTENSIONS[language]) {
        const source = stem + extension;
        if (seen.has(source) || read(source) === undefined) continue;
        seen.add(source);
        queue.push(source);
        found.push(source);
        break;
      }
    }
  }
  return found.filter((source) => !included.has(source));
}

/** Whether a text calls setjmp, which needs WebAssembly's exceptions. */
export function jumps(text: string): boolean {
  return /\b_?(sig)?setjmp\b/.test(text);
}

/** What a program may ask for that can't be had: names → the sentence's beginning. */
const UNAVAILABLE: [RegExp, string][] = [
  [
    /\b(pthread_create|thrd_create|__thread_create|std::thread)\b/,
    "Threads are not available in WebAssembly here",
  ],
  [
    /\b(socket|connect|bind|listen|getaddrinfo|gethostbyname|sendto|recvfrom|setsockopt|inet_addr|inet_ntoa)\b|netdb\.h|arpa\/inet\.h/,
    "Sockets are not available in WebAssembly here",
  ],
  [
    /\b(fork|vfork|execl|execlp|execle|execv|execvp|execve|system|popen|pclose|wait|waitpid|pipe|dup|dup2|kill)\b|sys\/wait\.h|spawn\.h/,
    "Starting other programs is not available in WebAssembly here",
  ],
];

/**
 * A sentence for what a compiler or linker did not find because no program can have
 * it here; undefined if its errors are of another kind.
 */
export function explain(words: string): string | undefined {
  for (const line of words.split("\n")) {
    const name = /undefined symbol: (?:__wrap_)?([\w:]+)/.exec(line)?.[1] ??
      /error: (?:call to undeclared (?:library )?function|use of undeclared identifier|no member named) '(\w+)'/
        .exec(line)?.[1] ??
      /error: '([\w./]+)' file not found/.exec(line)?.[1];
    if (name === undefined) continue;
    for (const [names, sentence] of UNAVAILABLE) {
      if (names.test(name)) return `${sentence}: ${name}.`;
    }
  }
}
