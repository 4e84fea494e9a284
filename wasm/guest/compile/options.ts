/**
 * The options of a C or C++ program, which its first comment gives as they would be
 * given to gcc:
 *
 *     // rillbox: -std=c99 -O2 -Wall -DSIZE=10 helper.c -lm
 *
 * They become the compiler's flags and a list of sources. What has no meaning here, or
 * would reach further than the program's own files, is refused in one sentence.
 *
 * @module
 */

import type { Flags, Language } from "./commands.ts";
import { normalize } from "./tool.ts";

/** What the options of a program say. */
export interface Options {
  flags: Omit<Flags, "unwinding">;
  /** Sources to compile beside the program's own, as absolute paths. */
  sources: string[];
  /** Linker's: names of functions, and lines, are left out. */
  strip: boolean;
}

/** An option that is refused. */
export class OptionError extends Error {}

const WORKSPACE = "/workspace";
export const SOURCE = /\.(c|cc|cpp|cxx|c\+\+|C)$/;

/** What gcc takes, and what is so here without it, or makes no difference to what a program does. */
const IGNORED = new RegExp(
  "^(-march=.*|-mtune=.*|-m64|-pipe|-static|-no-pie|-fPIC|-fpic|-fPIE|-fpie|-pie|-rdynamic|" +
    "-fomit-frame-pointer|-fno-omit-frame-pointer|-fstack-protector.*|-fdiagnostics-.*|" +
    "-fcolor-diagnostics|-funroll-loops|-flto.*|-fno-plt|-fconcepts.*|-fmodules-ts|-fcoroutines|" +
    "-fmax-errors=.*|-l(m|c|stdc\\+\\+|c\\+\\+|rt|dl|util|stdc\\+\\+fs|gcc|stdc\\+\\+exp))$",
);

/** Flags that mean to cc1 what they mean to gcc. */
const PASSED = new RegExp(
  "^(-w|-pedantic|-pedantic-errors|-trigraphs|-f(no-)?(signed-char|builtin|math-errno|" +
    "char8_t|ms-extensions|declspec|blocks|fixed-point)|-fwrapv|-ftrapv|-fno-rtti|-ftemplate-depth=\\d+|" +
    "-fconstexpr-depth=\\d+|-fconstexpr-steps=\\d+|-ftemplate-backtrace-limit=\\d+|" +
    "-fbracket-depth=\\d+|-ferror-limit=\\d+|-fno-threadsafe-statics|-fshort-enums|-ffreestanding|-fno-inline)$",
);

const RENAMED: Record<string, string[]> = {
  "-fno-strict-aliasing": ["-relaxed-aliasing"],
  "-fstrict-aliasing": [],
  "-fno-wrapv": [],
  "-fno-common": [],
  "-fcommon": ["-fcommon"],
  "-funsigned-char": ["-fno-signed-char"],
  "-fpermissive": [],
  "-fexceptions": [],
  "-frtti": [],
  "-fstrict-overflow": [],
  "-fno-strict-overflow": ["-fwrapv"],
  "-finline-functions": [],
  "-ffast-math": [
    "-menable-no-infs",
    "-menable-no-nans",
    "-fapprox-func",
    "-funsafe-math-optimizations",
    "-fno-signed-zeros",
    "-mreassociate",
    "-freciprocal-math",
    "-ffp-contract=fast",
    "-ffast-math",
    "-ffinite-math-only",
  ],
  "-msimd128": ["-target-feature", "+simd128"],
  "-mrelaxed-simd": [
    "-target-feature",
    "+simd128",
    "-target-feature",
    "+relaxed-simd",
  ],
};

/** The checks of every program: they cost next to nothing, and tell of what would else be silent. */
export const DEFAULT_CHECKS = [
  "array-bounds",
  "integer-divide-by-zero",
  "null",
  "return",
  "unreachable",
];

/** The checks of -fsanitize=undefined whose handlers the runtime has. */
const UNDEFINED = (
  "alignment array-bounds bool builtin enum float-cast-overflow integer-divide-by-zero " +
  "nonnull-attribute null pointer-overflow return returns-nonnull-attribute shift-base " +
  "shift-exponent signed-integer-overflow unreachable vla-bound"
).split(" ");

/** The sanitizer's checks that can be had without its runtime: they end the program. */
const SANITIZERS = new Set([
  "undefined",
  "bounds",
  "null",
  "signed-integer-overflow",
  "integer",
]);

/**
 * Finds a program's options in the comments before its first line of code: the words
 * that follow "rillbox:" on a line.
 */
export function optionWords(code: string): string[] {
  const words: string[] = [];
  let inside = false;
  for (const line of code.replace(/^\ufeff/, "").split(/\r?\n/)) {
    let text = line.trim();
    if (text === "" || text.startsWith("#!")) continue;
    if (inside) {
      // The comment goes on.
    } else if (text.startsWith("//")) {
      text = text.slice(2);
    } else if (text.startsWith("/*")) {
      text = text.slice(2);
      inside = true;
    } else {
      break;
    }
    const end = inside ? text.indexOf("*/") : -1;
    const found = /^[\s*!]*rillbox:(.*)$/.exec(
      end < 0 ? text : text.slice(0, end),
    );
    if (found) words.push(...split(found[1]!));
    if (end >= 0) {
      inside = false;
      if (text.slice(end + 2).trim() !== "") break;
    }
  }
  return words;
}

/** Words as a shell has them: '…' and "…" keep what is in them together. */
export function split(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined, quote = "";
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quote !== "") {
      if (c === quote) quote = "";
      else if (c === "\\" && quote === '"' && /["\\]/.test(line[i + 1] ?? "")) {
        word += line[++i]!;
      } else word += c;
    } else if (c === '"' || c === "'") {
      quote = c;
      word ??= "";
    } else if (c === "\\" && i + 1 < line.length) {
      word = (word ?? "") + line[++i]!;
    } else if (/\s/.test(c)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + c;
    }
  }
  if (quote !== "") {
    throw new OptionError(`The options have a ${quote} that is not closed.`);
  }
  if (word !== undefined) words.push(word);
  return words;
}

/** Reads options. `exists` knows the program's files. */
export function readOptions(
  language: Language,
  words: string[],
  exists: (path: string) => boolean,
): Options {
  let standard = language === "c" ? "gnu17" : "gnu++23";
  let optimize = "-O1", strip = false;
  const checks = new Set(DEFAULT_CHECKS);
  const other: string[] = [], sources: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const value = (flag: string): string => {
      if (word.length > flag.length) return word.slice(flag.length);
      const next = words[++i];
      if (next === undefined) {
        throw new OptionError(`The option ${flag} needs a word after it.`);
      }
      return next;
    };
    const renamed = RENAMED[word];
    if (!word.startsWith("-")) {
      if (word.startsWith("@")) {
        throw new OptionError(`Options can't be read from a file: ${word}.`);
      }
      const path = inWorkspace(word);
      if (!SOURCE.test(path)) {
        throw new OptionError(
          `${word} is no source file: those end in .c, .cc, .cpp or .cxx.`,
        );
      }
      if (!exists(path)) {
        throw new OptionError(
          `${word}: there is no such file in the workspace.`,
        );
      }
      sources.push(path);
    } else if (/^-D|^-U/.test(word)) {
      other.push(word.slice(0, 2), value(word.slice(0, 2)));
    } else if (word.startsWith("-I")) {
      other.push("-I", inWorkspace(value("-I")));
    } else if (
      word === "-iquote" || word === "-isystem" || word === "-include"
    ) {
      const path = inWorkspace(value(word));
      if (word === "-include" && !exists(path)) {
        throw new OptionError(
          `-include ${path}: there is no such file in the workspace.`,
        );
      }
      other.push(word, path);
    } else if (word === "-ansi") {
      standard = language === "c" ? "c89" : "c++98";
    } else if (word.startsWith("-std=")) {
      standard = readStandard(language, word.slice("-std=".length));
    } else if (/^-O/.test(word)) {
      const levels: Record<string, string> = {
        "-O": "-O1",
        "-Og": "-O1",
        "-Ofast": "-O3",
        "-O4": "-O3",
      };
      optimize = levels[word] ?? word;
      if (word === "-Ofast") other.push(...RENAMED["-ffast-math"]!);
      if (!/^-O[0-3sz]$/.test(optimize)) {
        throw new OptionError(`There is no level ${word}.`);
      }
    } else if (/^-g(\d|gdb\d?|dwarf.*)?$/.test(word)) {
      // Lines are kept without it.
    } else if (word === "-s") {
      strip = true;
    } else if (
      word === "-pthread" || word === "-lpthread" || word === "-fopenmp"
    ) {
      throw new OptionError(
        `Threads are not available in WebAssembly here: ${word}.`,
      );
    } else if (word.startsWith("-fsanitize=")) {
      for (const name of word.slice("-fsanitize=".length).split(",")) {
        if (!SANITIZERS.has(name)) {
          throw new OptionError(
            `There is no -fsanitize=${name} here; undefined, bounds, null, integer and signed-integer-overflow there are.`,
          );
        }
        for (const check of name === "undefined" ? UNDEFINED : [name]) {
          checks.add(check);
        }
      }
    } else if (word.startsWith("-fno-sanitize=")) {
      for (const name of word.slice("-fno-sanitize=".length).split(",")) {
        if (name === "all" || name === "undefined") checks.clear();
        checks.delete(name);
      }
    } else if (/^-fno-sanitize-recover|^-fsanitize-/.test(word)) {
      // Checks end the program, whatever else is asked for.
    } else if (/^-W[alp],/.test(word)) {
      throw new OptionError(
        `Options for the linker or the assembler are not taken: ${word}.`,
      );
    } else if (word.startsWith("-W") || PASSED.test(word)) {
      other.push(word);
    } else if (renamed) {
      other.push(...renamed);
    } else if (IGNORED.test(word)) {
      // As it is.
    } else if (/^-o/.test(word)) {
      throw new OptionError(
        `There is no output to name: the program is compiled and run, so leave out ${word}.`,
      );
    } else if (/^-[cSEM]/.test(word)) {
      throw new OptionError(
        `The program is compiled, linked and run, so leave out ${word}.`,
      );
    } else if (word.startsWith("-l")) {
      throw new OptionError(
        `There is no library ${
          word.slice(2)
        }: C and C++ have their standard libraries here.`,
      );
    } else {
      throw new OptionError(
        `The option ${word} is not taken for C and C++ here.`,
      );
    }
  }
  return {
    flags: {
      standard,
      optimize,
      lines: !strip,
      checks: [...checks].join(","),
      other,
    },
    sources,
    strip,
  };
}

function readStandard(language: Language, name: string): string {
  const c =
    /^(c|gnu)(89|90|99|9x|11|1x|17|18|2x|23|2y)$|^iso9899:(1990|1999|2011|2017|2018|2024)$/;
  const cxx = /^(c|gnu)\+\+(98|03|0x|11|1y|14|1z|17|2a|20|2b|23|2c|26)$/;
  // Of C++ the headers are read ahead with GNU's extensions, which change no program
  // that does without them.
  if (/^c\+\+23$/.test(name) && language === "c++") return "gnu++23";
  if ((language === "c" ? c : cxx).test(name)) return name;
  if ((language === "c" ? cxx : c).test(name)) {
    throw new OptionError(
      `-std=${name} is a standard of ${
        language === "c" ? "C++: the program is C" : "C: the program is C++"
      }.`,
    );
  }
  throw new OptionError(`There is no standard ${name}.`);
}

/** A path in the workspace; what leads out of it is refused. */
function inWorkspace(path: string): string {
  const whole = normalize(path.startsWith("/") ? path : `${WORKSPACE}/${path}`);
  const out = path.startsWith("/")
    ? whole !== WORKSPACE && !whole.startsWith(WORKSPACE + "/")
    : escapes(path);
  if (out) throw new OptionError(`${path} is outside of the workspace.`);
  return whole;
}

/** Whether a relative path leads above where it begins. */
function escapes(path: string): boolean {
  let depth = 0;
  for (const part of path.split("/")) {
    if (part === "..") depth--;
    else if (part !== "" && part !== ".") depth++;
    if (depth < 0) return true;
  }
  return false;
}
