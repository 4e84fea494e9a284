/**
 * The shell's builtins: commands that read or change the shell itself, and those that
 * are too frequent to be programs.
 *
 * @module
 */

import {
  type Builtin,
  collate,
  declaration,
  ExitShell,
  Leave,
  OPTION_LETTERS,
  quote,
  reason,
  resolve,
  Return,
  type Shell,
  ShellError,
  type Variable,
} from "./shell.ts";
import { format } from "./format.ts";
import { lines, readUntil, type Stream } from "./streams.ts";
import { type Assign, concat, escapes, fromBytes, toBytes } from "./syntax.ts";

export const builtins = new Map<string, Builtin>();

/** Defines one whose arguments are all texts. */
function define(
  names: string,
  run: (shell: Shell, args: string[], name: string) => number | Promise<number>,
): void {
  for (const name of names.split(" ")) builtins.set(name, run as Builtin);
}

/** Output that may have to wait for its reader. */
async function out(shell: Shell, text: string | Uint8Array): Promise<number> {
  const written = shell.print(text);
  if (written !== undefined) await written;
  return 0;
}

function usage(
  shell: Shell,
  name: string,
  message: string,
  status = 2,
): number {
  shell.complain(`${name}: ${message}`);
  return status;
}

define(": true", () => 0);
define("false", () => 1);

define("echo", (shell, args) => {
  let newline = true, escape = shell.shopts.has("xpg_echo"), i = 0;
  for (; i < args.length && /^-[neE]+$/.test(args[i]!); i++) {
    for (const letter of args[i]!.slice(1)) {
      if (letter === "n") newline = false;
      else escape = letter === "e";
    }
  }
  let text = (i === 0 ? args : args.slice(i)).join(" ");
  if (escape) {
    const cut = text.search(/(?<!\\)(\\\\)*\\c/);
    if (cut >= 0) {
      text = text.slice(0, text.indexOf("\\c", cut));
      newline = false;
    }
    text = escapes(text, "echo");
  }
  const written = shell.print(newline ? text + "\n" : text);
  return written === undefined ? 0 : written.then(() => 0);
});

define("printf", (shell, args, name) => {
  let variable: string | undefined;
  if (args[0] === "-v") {
    variable = args[1];
    args = args.slice(2);
  }
  if (args[0] === "--") args = args.slice(1);
  if (args.length === 0) {
    return usage(shell, name, "usage: printf [-v var] format [arguments]");
  }
  const { text, status } = format(
    args[0]!,
    args.slice(1),
    (message) => shell.complain(`printf: ${message}`),
  );
  if (variable !== undefined) {
    assignText(shell, variable, text);
    return status;
  }
  const written = shell.print(text);
  return written === undefined ? status : written.then(() => status);
});

/** Sets a variable or an element by its name as text. */
function assignText(shell: Shell, target: string, value: string): void {
  const parts = /^([A-Za-z_]\w*)(?:\[(.*)\])?$/s.exec(target);
  if (parts === null) {
    throw new ShellError(`\`${target}': not a valid identifier`);
  }
  if (parts[2] === undefined) shell.set(parts[1]!, value);
  else shell.setElement(parts[1]!, parts[2], value);
}

// Control.

define("exit", (shell, args) => {
  if (args.length > 0 && !/^-?\d+$/.test(args[0]!)) {
    shell.complain(`exit: ${args[0]}: numeric argument required`);
    throw new ExitShell(2);
  }
  throw new ExitShell(args.length === 0 ? shell.status : Number(args[0]) & 255);
});

define("return", (shell, args) => {
  if (shell.calls.length === 0 && shell.sourced === 0) {
    return usage(
      shell,
      "return",
      "can only `return' from a function or sourced script",
      2,
    );
  }
  if (args.length > 0 && !/^-?\d+$/.test(args[0]!)) {
    shell.complain(`return: ${args[0]}: numeric argument required`);
    throw new Return(2);
  }
  throw new Return(args.length === 0 ? shell.status : Number(args[0]) & 255);
});

define("break continue", (shell, args, name) => {
  if (shell.loops === 0) {
    shell.complain(
      `${name}: only meaningful in a \`for', \`while', or \`until' loop`,
    );
    return 0;
  }
  const levels = args.length === 0 ? 1 : Number(args[0]);
  if (!(levels >= 1)) {
    return usage(shell, name, `${args[0]}: loop count out of range`, 1);
  }
  throw new Leave(name as "break" | "continue", levels);
});

define("eval", async (shell, args) => {
  const text = args.join(" ");
  if (text.trim() === "") return 0;
  return await shell.script(text, shell.line, "eval");
});

define("source .", async (shell, args, name) => {
  if (args.length === 0) {
    return usage(shell, name, "filename argument required");
  }
  const [file, ...rest] = args as [string, ...string[]];
  let text: string;
  try {
    const path = file.includes("/") ? file : inPath(shell, file) ?? file;
    if (path.startsWith("/dev/")) {
      const stream = shell.openFile(path, "<");
      text = fromBytes(await all(stream));
      stream.release();
    } else {
      if (shell.kind(path) === "directory") {
        return usage(shell, name, `${file}: is a directory`, 1);
      }
      text = fromBytes(shell.files.readFile(resolve(shell.cwd, path)));
    }
  } catch (e) {
    shell.complain(`${file}: ${reason(e)}`);
    return 1;
  }
  const before = shell.arguments, { name: shellName } = shell;
  if (rest.length > 0) shell.arguments = rest;
  shell.sourced++;
  shell.calls.push({ name: "source", line: shell.line, source: file });
  shell.name = file;
  try {
    return await shell.script(text);
  } catch (e) {
    if (e instanceof Return) return e.code;
    throw e;
  } finally {
    shell.name = shellName;
    shell.sourced--;
    shell.calls.pop();
    if (rest.length > 0) shell.arguments = before;
  }
});

async function all(stream: Stream): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let piece; (piece = await stream.read()) !== null;) pieces.push(piece);
  return concat(pieces);
}

function inPath(shell: Shell, file: string): string | undefined {
  for (const directory of (shell.get("PATH") ?? "").split(":")) {
    if (directory !== "" && shell.kind(`${directory}/${file}`) === "file") {
      return `${directory}/${file}`;
    }
  }
  return undefined;
}

define("exec", async (shell, args) => {
  if (args.length === 0) return 0;
  let rest = args;
  while (rest[0]?.startsWith("-")) {
    rest = rest[0] === "-a" ? rest.slice(2) : rest.slice(1);
  }
  throw new ExitShell(rest.length === 0 ? 0 : await shell.program(rest));
});

define("command", async (shell, args) => {
  let verbose = "", i = 0;
  for (; /^-[pvV]+$/.test(args[i] ?? ""); i++) {
    verbose = args[i]!.includes("v")
      ? "v"
      : args[i]!.includes("V")
      ? "V"
      : verbose;
  }
  if (args[i] === "--") i++;
  const words = args.slice(i);
  if (verbose !== "") {
    let status = 1;
    for (const word of words) {
      const found = what(shell, word);
      if (found === undefined) {
        if (verbose === "V") shell.complain(`command: ${word}: not found`);
        continue;
      }
      status = 0;
      await out(
        shell,
        verbose === "V"
          ? `${describe(shell, word, found)}\n`
          : found.kind === "file"
          ? `${found.path}\n`
          : found.kind === "alias"
          ? `alias ${word}='${shell.aliases.get(word)}'\n`
          : `${word}\n`,
      );
    }
    return words.length === 0 ? 0 : status;
  }
  if (words.length === 0) return 0;
  const builtin = builtins.get(words[0]!);
  return builtin !== undefined
    ? await shell.builtin(builtin, words, words[0]!)
    : await shell.program(words);
});

define("builtin", async (shell, args) => {
  if (args.length === 0) return 0;
  const builtin = builtins.get(args[0]!);
  if (builtin === undefined) {
    return usage(shell, "builtin", `${args[0]}: not a shell builtin`, 1);
  }
  return await shell.builtin(builtin, args, args[0]!);
});

interface Found {
  kind: "alias" | "keyword" | "function" | "builtin" | "file";
  path?: string;
}

const KEYWORDS = new Set(
  "if then else elif fi case esac for select while until do done in function time { } ! [[ ]]"
    .split(" "),
);

/** What a name stands for as a command. */
export function what(shell: Shell, name: string, skip = ""): Found | undefined {
  if (KEYWORDS.has(name) && skip === "") return { kind: "keyword" };
  if (shell.aliases.has(name) && skip === "") return { kind: "alias" };
  if (shell.functions.has(name) && !skip.includes("f")) {
    return { kind: "function" };
  }
  if (builtins.has(name) && !skip.includes("b")) return { kind: "builtin" };
  if (name.includes("/")) {
    const known = /^\/(?:usr\/)?bin\/([^/]+)$/.exec(name)?.[1];
    if (known !== undefined && shell.world.programs.has(known)) {
      return { kind: "file", path: name };
    }
    return shell.kind(name) === "file" && shell.unary("-x", name)
      ? { kind: "file", path: name }
      : undefined;
  }
  if (shell.world.programs.has(name)) {
    return { kind: "file", path: `/usr/bin/${name}` };
  }
  const path = shell.search(name);
  return path === undefined ? undefined : { kind: "file", path };
}

function describe(shell: Shell, name: string, found: Found): string {
  switch (found.kind) {
    case "keyword":
      return `${name} is a shell keyword`;
    case "alias":
      return `${name} is aliased to \`${shell.aliases.get(name)}'`;
    case "function":
      return `${name} is a function\n${functionText(shell, name)}`;
    case "builtin":
      return `${name} is a shell builtin`;
    case "file":
      return `${name} is ${found.path}`;
  }
}

function functionText(shell: Shell, name: string): string {
  const { text } = shell.functions.get(name)!;
  return text;
}

define("type", async (shell, args) => {
  let mode = "", status = 0, i = 0;
  for (; /^-[tpPaf]+$/.test(args[i] ?? ""); i++) mode += args[i]!.slice(1);
  for (const name of args.slice(i)) {
    const found = what(
      shell,
      name,
      /P/.test(mode) ? "fb" : /f/.test(mode) ? "f" : "",
    );
    if (found === undefined) {
      status = 1;
      if (!/[tpP]/.test(mode)) shell.complain(`type: ${name}: not found`);
      continue;
    }
    if (mode.includes("t")) await out(shell, `${found.kind}\n`);
    else if (/[pP]/.test(mode)) {
      if (found.kind === "file") await out(shell, `${found.path}\n`);
    } else await out(shell, describe(shell, name, found) + "\n");
  }
  return status;
});

define("hash", () => 0);
define("enable", () => 0);
define(
  "times",
  (shell) => out(shell, "0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n"),
);
define(
  "fg bg",
  (shell, _args, name) => usage(shell, name, "no job control", 1),
);
define("disown suspend bind logout", () => 0);
define("history fc", () => 0);
define("complete compopt", () => 0);
define(
  "umask",
  async (shell, args) => args.length === 0 ? await out(shell, "0022\n") : 0,
);
define("ulimit", async (shell, args) => {
  if (args.some((a) => /^\d+$|^unlimited$/.test(a))) return 0;
  return await out(shell, "unlimited\n");
});

define("caller", async (shell, args) => {
  const n = Number(args[0] ?? 0);
  const call = [...shell.calls].reverse()[n];
  if (call === undefined) return 1;
  const outer = [...shell.calls].reverse()[n + 1];
  return await out(
    shell,
    args.length === 0
      ? `${call.line} ${shell.name}\n`
      : `${call.line} ${outer?.name ?? "main"} ${shell.name}\n`,
  );
});

// Variables.

define("set", async (shell, args) => {
  if (args.length === 0) {
    let text = "";
    for (const name of [...shell.variables.keys()].sort(collate)) {
      const v = shell.variables.get(name)!;
      if (v.list !== undefined || v.map !== undefined) {
        text += declaration(name, v).replace(/^declare -\S+ /, "") + "\n";
      } else if (v.value !== undefined) {
        text += `${name}=${
          /^[\w@%+:,.\/\-]*$/.test(v.value) ? v.value : quote(v.value, true)
        }\n`;
      }
    }
    return await out(shell, text);
  }
  let i = 0;
  for (; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === "--" || arg === "-") {
      shell.arguments = args.slice(i + 1);
      return 0;
    }
    if (!/^[-+]/.test(arg)) break;
    const on = arg[0] === "-";
    for (const letter of arg.slice(1)) {
      if (letter === "o") {
        const name = args[i + 1];
        if (name === undefined) {
          const names = [
            ...new Set([
              ...Object.values(OPTION_LETTERS),
              "pipefail",
              "posix",
              "vi",
              "emacs",
              "history",
              "ignoreeof",
            ]),
          ].sort();
          return await out(
            shell,
            names.map((n) =>
              on
                ? `${n.padEnd(15)}\t${shell.options.has(n) ? "on" : "off"}\n`
                : `set ${shell.options.has(n) ? "-" : "+"}o ${n}\n`
            ).join(""),
          );
        }
        i++;
        if (
          ![
            ...Object.values(OPTION_LETTERS),
            "pipefail",
            "posix",
            "vi",
            "emacs",
            "history",
            "ignoreeof",
            "nolog",
            "keyword",
            "onecmd",
            "privileged",
            "physical",
            "interactive-comments",
            "braceexpand",
          ].includes(name)
        ) {
          return usage(shell, "set", `${name}: invalid option name`, 2);
        }
        if (on) shell.options.add(name);
        else shell.options.delete(name);
        if (name === "posix") shell.posix = on;
        continue;
      }
      const name = OPTION_LETTERS[letter];
      if (name === undefined) {
        if ("kptr".includes(letter)) continue;
        shell.complain(`set: ${arg[0]}${letter}: invalid option`);
        shell.error(
          "set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]\n",
        );
        return 2;
      }
      if (on) shell.options.add(name);
      else shell.options.delete(name);
    }
  }
  if (i < args.length) shell.arguments = args.slice(i);
  return 0;
});

const SHOPTS = new Set(
  ("autocd assoc_expand_once cdable_vars cdspell checkhash checkjobs checkwinsize cmdhist compat31 compat32 compat40 compat41 compat42 compat43 compat44 complete_fullquote direxpand dirspell dotglob execfail expand_aliases extdebug extglob extquote failglob force_fignore globasciiranges globskipdots globstar gnu_errfmt histappend histreedit histverify hostcomplete huponexit inherit_errexit interactive_comments lastpipe lithist localvar_inherit localvar_unset login_shell mailwarn no_empty_cmd_completion nocaseglob nocasematch noexpand_translation nullglob patsub_replacement progcomp progcomp_alias promptvars restricted_shell shift_verbose sourcepath varredir_close xpg_echo")
    .split(" "),
);

define("shopt", async (shell, args) => {
  let mode = "", quiet = false, options = false, i = 0;
  for (; /^-[suqpo]+$/.test(args[i] ?? ""); i++) {
    for (const c of args[i]!.slice(1)) {
      if (c === "q") quiet = true;
      else if (c === "o") options = true;
      else if (c !== "p") mode = c;
    }
  }
  const names = args.slice(i);
  const on = options ? shell.options : shell.shopts;
  let status = 0;
  for (
    const name of names.length === 0
      ? mode === "" ? [...SHOPTS].sort() : [...on].sort()
      : names
  ) {
    if (!options && !SHOPTS.has(name)) {
      status = usage(shell, "shopt", `${name}: invalid shell option name`, 1);
      continue;
    }
    if (mode === "s" && names.length > 0) on.add(name);
    else if (mode === "u" && names.length > 0) on.delete(name);
    else {
      if (names.length > 0 && !on.has(name)) status = 1;
      if (!quiet) {
        await out(
          shell,
          `${name.padEnd(15)}\t${on.has(name) ? "on" : "off"}\n`,
        );
      }
    }
  }
  return status;
});

define("shift", (shell, args) => {
  const n = Number(args[0] ?? 1);
  if (Number.isNaN(n)) {
    return usage(shell, "shift", `${args[0]}: numeric argument required`, 1);
  }
  if (n < 0 || n > shell.arguments.length) return 1;
  shell.arguments = shell.arguments.slice(n);
  return 0;
});

define("unset", (shell, args) => {
  let mode = "", status = 0, i = 0;
  for (; /^-[vfn]$/.test(args[i] ?? ""); i++) mode = args[i]![1]!;
  for (const name of args.slice(i)) {
    if (mode === "f") {
      shell.functions.delete(name);
    } else if (mode === "n") shell.variables.delete(name);
    else if (
      mode === "" && !shell.variables.has(name.replace(/\[.*/s, "")) &&
      shell.functions.has(name)
    ) shell.functions.delete(name);
    else if (!shell.unset(name)) status = 1;
  }
  return status;
});

/** `declare`, `local`, `export` and `readonly`. */
async function declare(
  shell: Shell,
  args: (string | Assign)[],
  name: string,
): Promise<number> {
  const flags = new Set<string>(), off = new Set<string>();
  let i = 0, status = 0;
  for (; i < args.length; i++) {
    const arg = args[i]!;
    if (typeof arg !== "string" || !/^[-+][a-zA-Z]/.test(arg)) {
      if (arg === "--") i++;
      break;
    }
    for (const letter of arg.slice(1)) {
      if (!"aAilunrxfFgpI".includes(letter)) {
        shell.complain(`${name}: ${arg[0]}${letter}: invalid option`);
        return 2;
      }
      (arg[0] === "-" ? flags : off).add(letter);
    }
  }
  const rest = args.slice(i);
  if (name === "export") {
    flags.has("n") ? (off.add("x"), flags.delete("n")) : flags.add("x");
  }
  if (name === "readonly") flags.add("r");
  if (name === "local" && shell.scopes.length === 0) {
    return usage(shell, "local", "can only be used in a function", 1);
  }
  if (flags.has("f") || flags.has("F")) {
    const names = rest.length === 0
      ? [...shell.functions.keys()].sort()
      : rest as string[];
    for (const n of names) {
      if (!shell.functions.has(n)) {
        status = 1;
        continue;
      }
      if (name === "export") {
        shell.exportedFunctions.add(n);
        continue;
      }
      if (name === "readonly") continue;
      await out(
        shell,
        flags.has("F")
          ? rest.length === 0 ? `declare -f ${n}\n` : `${n}\n`
          : functionText(shell, n) + "\n",
      );
    }
    return status;
  }
  if (rest.length === 0 || flags.has("p")) {
    const wanted = rest.length > 0
      ? rest.map((r) => typeof r === "string" ? r : r.name)
      : [...shell.variables.keys()].sort(collate);
    for (const n of wanted) {
      const v = shell.variables.get(n);
      if (v === undefined) {
        if (rest.length > 0) {
          shell.complain(`${name}: ${n}: not found`);
          status = 1;
        }
        continue;
      }
      if (rest.length === 0) {
        if (
          flags.has("x") && !v.exported || flags.has("r") && !v.readonly ||
          flags.has("a") && !v.list || flags.has("A") && !v.map ||
          flags.has("i") && !v.integer
        ) continue;
        if (name === "local" && !shell.scopes.at(-1)!.has(n)) continue;
        if (
          name === "declare" && flags.size === 0 && v.value === undefined &&
          !v.list && !v.map
        ) continue;
      }
      const text =
        name === "declare" && flags.size === 0 && v.value !== undefined
          ? `${n}=${quote(v.value, !/^[\w@%+:,.\/\-]*$/.test(v.value))}`
          : declaration(n, v);
      await out(shell, text + "\n");
    }
    return status;
  }
  const local = shell.scopes.length > 0 && name !== "export" &&
    name !== "readonly" && !flags.has("g");
  for (const given of rest) {
    let assign: Assign | undefined,
      text: string | undefined,
      n: string,
      append = false;
    if (typeof given === "string") {
      const parts = /^([A-Za-z_]\w*)(\[[^\]]*\])?(?:(\+?)=(.*))?$/s.exec(given);
      if (parts === null) {
        shell.complain(`${name}: \`${given}': not a valid identifier`);
        status = 1;
        continue;
      }
      n = parts[1]!;
      append = parts[3] === "+";
      text = parts[4];
    } else {
      assign = given;
      n = given.name;
    }
    // The value is read before the name is hidden.
    const plainValue = assign !== undefined && assign.elements === undefined &&
      assign.index === undefined;
    if (plainValue) {
      text = await shell.single(assign!.value ?? { parts: [] }, true);
      append = assign!.append;
      assign = undefined;
    }
    const outer = local ? shell.variables.get(n) : undefined;
    if (local) {
      if (
        outer?.readonly && shell.scopes.at(-1)!.get(n) === undefined &&
        !shell.scopes.at(-1)!.has(n)
      ) {
        shell.complain(`${name}: ${n}: readonly variable`);
        status = 1;
        continue;
      }
      shell.local(n);
    }
    let variable: Variable | undefined = shell.variables.get(n);
    if (variable === undefined) {
      variable = {};
      shell.variables.set(n, variable);
      if (local && outer?.exported) variable.exported = true;
    }
    if (
      variable.readonly &&
      (text !== undefined || assign !== undefined || off.has("r"))
    ) {
      shell.complain(
        `${
          name === "declare" || name === "typeset" || name === "local"
            ? name + ": "
            : ""
        }${n}: readonly variable`,
      );
      status = 1;
      continue;
    }
    if (flags.has("A") && variable.map === undefined) {
      variable.map = new Map(
        variable.value === undefined ? [] : [["0", variable.value]],
      );
      variable.value = undefined;
    }
    if (
      flags.has("a") && variable.list === undefined &&
      variable.map === undefined
    ) {
      variable.list = variable.value === undefined ? [] : [variable.value];
      variable.value = undefined;
    }
    if (flags.has("i")) variable.integer = true;
    if (off.has("i")) variable.integer = false;
    if (flags.has("l")) [variable.lower, variable.upper] = [true, false];
    if (flags.has("u")) [variable.lower, variable.upper] = [false, true];
    if (off.has("l")) variable.lower = false;
    if (off.has("u")) variable.upper = false;
    if (flags.has("x")) variable.exported = true;
    if (off.has("x")) variable.exported = false;
    if (flags.has("n")) {
      variable.reference = true;
      if (text !== undefined) variable.value = text;
    } else {
      if (off.has("n")) variable.reference = false;
      if (assign !== undefined) await shell.assign(assign);
      else if (text !== undefined) {
        const index = typeof given === "string"
          ? /^\w+\[(.*?)\]/.exec(given)?.[1]
          : undefined;
        if (index !== undefined) shell.setElement(n, index, text, append);
        else shell.set(n, text, append);
      }
    }
    if (flags.has("r")) shell.variables.get(n)!.readonly = true;
  }
  return status;
}
for (const name of ["declare", "typeset", "local", "export", "readonly"]) {
  builtins.set(name, declare);
}

define("let", (shell, args) => {
  if (args.length === 0) return usage(shell, "let", "expression expected", 1);
  let last = 0n;
  for (const arg of args) last = shell.evaluate(arg);
  return last === 0n ? 1 : 0;
});

define("getopts", (shell, args) => {
  const [options, name, ...rest] = args as [string, string, ...string[]];
  if (name === undefined) {
    return usage(shell, "getopts", "usage: getopts optstring name [arg ...]");
  }
  const words = rest.length > 0 ? rest : shell.arguments;
  const silent = options.startsWith(":");
  let index = Number(shell.get("OPTIND") ?? 1);
  const word = words[index - 1];
  const end = (): number => {
    shell.set(name, "?");
    shell.unset("OPTARG");
    return 1;
  };
  if (word === undefined || !/^-./.test(word)) return end();
  if (word === "--") {
    shell.set("OPTIND", String(index + 1));
    return end();
  }
  let at = shell.optionAt || 1;
  const letter = word[at]!;
  at++;
  let next = at;
  const place = options.replace(/^:/, "").indexOf(letter);
  const known = letter !== ":" && place >= 0;
  const wants = known && options.replace(/^:/, "")[place + 1] === ":";
  let value: string | undefined, missing = false;
  if (wants) {
    if (at < word.length) value = word.slice(at);
    else {
      index++;
      value = words[index - 1];
      if (value === undefined) missing = true;
    }
    index++;
    next = 0;
  } else if (at >= word.length) {
    index++;
    next = 0;
  }
  shell.set("OPTIND", String(Math.min(index, words.length + 1)));
  shell.optionAt = next;
  if (!known) {
    shell.set(name, "?");
    if (silent) shell.set("OPTARG", letter);
    else {
      shell.unset("OPTARG");
      if (shell.get("OPTERR") !== "0") {
        shell.error(`${shell.name}: illegal option -- ${letter}\n`);
      }
    }
  } else if (missing) {
    shell.set(name, silent ? ":" : "?");
    if (silent) shell.set("OPTARG", letter);
    else {
      shell.unset("OPTARG");
      shell.error(`${shell.name}: option requires an argument -- ${letter}\n`);
    }
  } else {
    shell.set(name, letter);
    if (value === undefined) shell.unset("OPTARG");
    else shell.set("OPTARG", value);
  }
  return 0;
});

// Reading.

/** Splits a line for `read` into so many fields. */
function split(
  text: { char: string; escaped: boolean }[],
  ifs: string,
  most: number,
): string[] {
  const fields: string[] = [];
  const white = (c: { char: string; escaped: boolean }) =>
    !c.escaped && " \t\n".includes(c.char) && ifs.includes(c.char);
  const separator = (c: { char: string; escaped: boolean }) =>
    !c.escaped && ifs.includes(c.char);
  let i = 0, end = text.length;
  while (i < end && white(text[i]!)) i++;
  while (end > i && white(text[end - 1]!)) end--;
  while (i < end || fields.length === 0) {
    if (fields.length === most - 1) {
      let rest = text.slice(i, end);
      // One separator at the very end goes, if it is the only one.
      const last = rest.at(-1);
      if (
        last !== undefined && separator(last) && !white(last) &&
        rest.slice(0, -1).every((c) => !separator(c))
      ) rest = rest.slice(0, -1);
      fields.push(rest.map((c) => c.char).join(""));
      break;
    }
    let field = "";
    while (i < end && !separator(text[i]!)) field += text[i++]!.char;
    fields.push(field);
    if (i >= end) break;
    while (i < end && white(text[i]!)) i++;
    if (i < end && separator(text[i]!) && !white(text[i]!)) {
      i++;
      while (i < end && white(text[i]!)) i++;
    }
    if (i >= end) break;
  }
  return fields;
}

define("read", async (shell, args, command) => {
  let raw = false,
    array: string | undefined,
    delimiter = "\n",
    most: number | undefined,
    exact = false,
    fd = 0,
    timeout: number | undefined;
  let i = 0;
  for (; i < args.length && /^-./.test(args[i]!); i++) {
    if (args[i] === "--") {
      i++;
      break;
    }
    const arg = args[i]!;
    for (let j = 1; j < arg.length; j++) {
      const letter = arg[j]!;
      if (letter === "r") raw = true;
      else if ("se".includes(letter)) continue;
      else if ("adnNputi".includes(letter)) {
        const value = j + 1 < arg.length ? arg.slice(j + 1) : args[++i];
        if (value === undefined) {
          return usage(
            shell,
            command,
            `-${letter}: option requires an argument`,
          );
        }
        if (letter === "a") array = value;
        else if (letter === "d") delimiter = value === "" ? "\0" : value[0]!;
        else if (letter === "n" || letter === "N") {
          most = Number(value);
          exact = letter === "N";
        } else if (letter === "u") fd = Number(value);
        else if (letter === "t") timeout = Number(value);
        break;
      } else {
        shell.complain(`read: -${letter}: invalid option`);
        return 2;
      }
    }
  }
  const names = args.slice(i);
  for (const name of names) {
    if (!/^[A-Za-z_]\w*(\[.*\])?$/s.test(name)) {
      return usage(shell, command, `\`${name}': not a valid identifier`, 1);
    }
  }
  const stream = shell.stream(fd);
  const mark = exact ? -1 : toBytes(delimiter)[0]!;
  if (timeout !== undefined && stream.waits) {
    // Nothing may come for so long.
    const begun = performance.now();
    let piece: Uint8Array | null | undefined;
    const reading = Promise.resolve(stream.read()).then((p) => piece = p);
    while (piece === undefined && performance.now() - begun < timeout * 1000) {
      await Promise.race([
        reading,
        shell.cancel.sleep(Math.min(20, timeout * 1000)),
      ]);
    }
    if (piece === undefined) {
      reading.then((p) => p !== null && stream.unread(p));
      return 142;
    }
    if (piece !== null) stream.unread(piece);
  }
  let text = "", found = false, ended = false;
  if (most !== undefined) {
    while ([...text].length < most) {
      const piece = await stream.read();
      if (piece === null) {
        ended = true;
        break;
      }
      // A character's bytes come together.
      const size = piece[0]! < 0x80
        ? 1
        : piece[0]! < 0xe0
        ? 2
        : piece[0]! < 0xf0
        ? 3
        : 4;
      stream.unread(piece.subarray(Math.min(size, piece.length)));
      if (piece[0] === mark) {
        found = true;
        break;
      }
      text += fromBytes(piece.subarray(0, size));
    }
    if ([...text].length >= most) found = true;
  } else {
    for (;;) {
      const line = await readUntil(stream, mark);
      if (line === null) {
        ended = true;
        break;
      }
      text += fromBytes(line.bytes);
      found = line.found;
      ended = !found;
      // A backslash before the newline goes on.
      if (!raw && found && /(^|[^\\])(\\\\)*\\$/.test(text)) {
        text = text.slice(0, -1);
        continue;
      }
      break;
    }
  }
  const characters: { char: string; escaped: boolean }[] = [];
  for (let j = 0; j < text.length; j++) {
    if (!raw && text[j] === "\\" && j + 1 < text.length) {
      characters.push({ char: text[++j]!, escaped: true });
    } else if (text[j] !== "\\" || raw) {
      characters.push({ char: text[j]!, escaped: false });
    }
  }
  const ifs = shell.get("IFS") ?? " \t\n";
  if (array !== undefined) {
    const fields = text === "" ? [] : split(characters, ifs, Infinity);
    const variable = shell.variables.get(array);
    if (variable?.map !== undefined) shell.unset(array);
    shell.setList(array, fields.length === 1 && fields[0] === "" ? [] : fields);
  } else if (names.length === 0) {
    shell.set("REPLY", characters.map((c) => c.char).join(""));
  } else if (exact) {
    assignText(shell, names[0]!, text);
    for (const name of names.slice(1)) assignText(shell, name, "");
  } else {
    const fields = split(characters, ifs, names.length);
    for (const [n, name] of names.entries()) {
      assignText(shell, name, fields[n] ?? "");
    }
  }
  return found && !ended ? 0 : 1;
});

define("mapfile readarray", async (shell, args, command) => {
  let trim = false,
    delimiter = 10,
    most = Infinity,
    origin: number | undefined,
    skip = 0,
    fd = 0,
    i = 0;
  for (; /^-./.test(args[i] ?? ""); i++) {
    const letter = args[i]![1]!;
    if (letter === "t") {
      trim = true;
      if (args[i]!.length > 2) args.splice(i + 1, 0, "-" + args[i]!.slice(2));
      continue;
    }
    const value = args[i]!.length > 2 ? args[i]!.slice(2) : args[++i];
    if (value === undefined) {
      return usage(shell, command, `-${letter}: option requires an argument`);
    }
    if (letter === "d") delimiter = value === "" ? 0 : value.charCodeAt(0);
    else if (letter === "n") most = Number(value) || Infinity;
    else if (letter === "O") origin = Number(value);
    else if (letter === "s") skip = Number(value);
    else if (letter === "u") fd = Number(value);
    else return usage(shell, command, `-${letter}: invalid option`);
  }
  const name = args[i] ?? "MAPFILE";
  const list: string[] = origin === undefined
    ? []
    : shell.entries(name).map(([, v]) => v);
  let at = origin ?? 0, n = 0;
  for await (const { text, ended } of lines(shell.stream(fd), delimiter)) {
    if (n++ < skip) continue;
    if (n - skip > most) break;
    list[at++] = trim || !ended ? text : text + String.fromCharCode(delimiter);
  }
  shell.setList(name, list);
  return 0;
});

// Directories.

define("cd", async (shell, args) => {
  const rest = args.filter((a) => !/^-[LPe@]+$|^--$/.test(a));
  if (rest.length > 1) return usage(shell, "cd", "too many arguments", 1);
  let to = rest[0] ?? shell.get("HOME");
  if (to === undefined) return usage(shell, "cd", "HOME not set", 1);
  let show = false;
  if (to === "-") {
    const before = shell.get("OLDPWD");
    if (before === undefined) return usage(shell, "cd", "OLDPWD not set", 1);
    to = before;
    show = true;
  }
  return await change(shell, "cd", to, show);
});

async function change(
  shell: Shell,
  name: string,
  to: string,
  show = false,
): Promise<number> {
  const path = resolve(shell.cwd, to);
  try {
    if (to === "") return 0;
    if (shell.files.stat(path).kind !== "directory") {
      return usage(shell, name, `${to}: Not a directory`, 1);
    }
  } catch (e) {
    return usage(shell, name, `${to}: ${reason(e)}`, 1);
  }
  shell.set("OLDPWD", shell.cwd);
  shell.cwd = path;
  shell.set("PWD", path);
  if (show) await out(shell, path + "\n");
  return 0;
}

define("pwd", (shell) => out(shell, shell.cwd + "\n"));

const home = (shell: Shell, path: string) => {
  const to = shell.get("HOME") ?? "";
  return to !== "" && (path === to || path.startsWith(to + "/"))
    ? "~" + path.slice(to.length)
    : path;
};

define("dirs", async (shell, args) => {
  if (args.includes("-c")) {
    shell.directories = [];
    return 0;
  }
  const all = [shell.cwd, ...shell.directories].map((p) =>
    args.includes("-l") ? p : home(shell, p)
  );
  if (args.includes("-v")) {
    return await out(
      shell,
      all.map((p, i) => `${String(i).padStart(2)}  ${p}\n`).join(""),
    );
  }
  return await out(shell, all.join(args.includes("-p") ? "\n" : " ") + "\n");
});

define("pushd", async (shell, args) => {
  const { cwd } = shell;
  if (args.length === 0) {
    if (shell.directories.length === 0) {
      return usage(shell, "pushd", "no other directory", 1);
    }
    const to = shell.directories[0]!;
    if (await change(shell, "pushd", to) !== 0) return 1;
    shell.directories[0] = cwd;
  } else {
    const n = /^[+-](\d+)$/.exec(args[0]!);
    if (n !== null) {
      const all = [cwd, ...shell.directories];
      const k = args[0]![0] === "+"
        ? Number(n[1])
        : all.length - 1 - Number(n[1]);
      if (k < 0 || k >= all.length) {
        return usage(
          shell,
          "pushd",
          `${args[0]}: directory stack index out of range`,
          1,
        );
      }
      const turned = [...all.slice(k), ...all.slice(0, k)];
      if (await change(shell, "pushd", turned[0]!) !== 0) return 1;
      shell.directories = turned.slice(1);
    } else {
      if (await change(shell, "pushd", args.at(-1)!) !== 0) return 1;
      shell.directories.unshift(cwd);
    }
  }
  return await builtins.get("dirs")!(shell, [], "dirs");
});

define("popd", async (shell) => {
  const to = shell.directories.shift();
  if (to === undefined) return usage(shell, "popd", "directory stack empty", 1);
  if (await change(shell, "popd", to) !== 0) return 1;
  return await builtins.get("dirs")!(shell, [], "dirs");
});

// Jobs and signals.

const SIGNALS =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
    .split(" ");

export function signalNumber(text: string): number | undefined {
  if (/^\d+$/.test(text)) return Number(text);
  const at = SIGNALS.indexOf(text.toUpperCase().replace(/^SIG/, ""));
  return at < 0 ? undefined : at + 1;
}

define("trap", async (shell, args) => {
  const name = (text: string): string | undefined => {
    if (text === "0" || text.toUpperCase() === "EXIT") return "EXIT";
    const upper = text.toUpperCase().replace(/^SIG/, "");
    if (["ERR", "DEBUG", "RETURN"].includes(upper)) return upper;
    if (/^\d+$/.test(text)) return SIGNALS[Number(text) - 1];
    return SIGNALS.includes(upper) ? upper : undefined;
  };
  if (args[0] === "-l") {
    return await out(
      shell,
      SIGNALS.map((s, i) => `${i + 1}) SIG${s}`).join("\n") + "\n",
    );
  }
  if (args.length === 0 || args[0] === "-p") {
    const order = (s: string) =>
      s === "EXIT" ? 0 : SIGNALS.indexOf(s) + 1 || 100;
    for (
      const [signal, action] of [...shell.traps].sort((a, b) =>
        order(a[0]) - order(b[0])
      )
    ) {
      if (args.length > 1 && !args.slice(1).map(name).includes(signal)) {
        continue;
      }
      await out(
        shell,
        `trap -- ${quote(action, true)} ${
          SIGNALS.includes(signal) ? "SIG" : ""
        }${signal}\n`,
      );
    }
    return 0;
  }
  const rest = args[0] === "--" ? args.slice(1) : args;
  const reset = rest[0] === "-" || rest.length === 1;
  let status = 0;
  for (const text of rest.length === 1 ? rest : rest.slice(1)) {
    const signal = name(text);
    if (signal === undefined) {
      status = usage(shell, "trap", `${text}: invalid signal specification`, 1);
    } else if (reset) shell.traps.delete(signal);
    else shell.traps.set(signal, rest[0]!);
  }
  return status;
});

function findJob(shell: Shell, text: string) {
  if (text === "%%" || text === "%+" || text === "%") return shell.jobs.at(-1);
  if (text === "%-") return shell.jobs.at(-2) ?? shell.jobs.at(-1);
  if (/^%\d+$/.test(text)) {
    return shell.jobs.find((j) => j.number === Number(text.slice(1)));
  }
  if (text.startsWith("%")) {
    return shell.jobs.find((j) => j.text.startsWith(text.slice(1)));
  }
  return shell.jobs.find((j) => j.pid === Number(text));
}

define("wait", async (shell, args) => {
  let variable: string | undefined, next = false;
  const rest: string[] = [];
  for (let i = 0; i < args.length; i++) {
    if (args[i] === "-n") next = true;
    else if (args[i] === "-p") variable = args[++i];
    else if (args[i] !== "-f") rest.push(args[i]!);
  }
  if (next) {
    const running = rest.length > 0
      ? rest.map((r) => findJob(shell, r)).filter((j) => j !== undefined)
      : shell.jobs;
    if (running.length === 0) return 127;
    const [job, status] = await Promise.race(
      running.map(async (j) => [j, await j.done] as const),
    );
    shell.jobs = shell.jobs.filter((j) => j !== job);
    if (variable !== undefined) shell.set(variable, String(job.pid));
    return status;
  }
  if (rest.length === 0) {
    for (const job of shell.jobs) await job.done;
    shell.jobs = [];
    return 0;
  }
  let status = 0;
  for (const text of rest) {
    const job = findJob(shell, text);
    if (job === undefined) {
      shell.complain(
        text.startsWith("%")
          ? `wait: ${text}: no such job`
          : `wait: pid ${text} is not a child of this shell`,
      );
      status = 127;
      continue;
    }
    status = await job.done;
  }
  return status;
});

define("jobs", async (shell, args) => {
  for (const [i, job] of shell.jobs.entries()) {
    if (args.includes("-r") && job.status !== undefined) continue;
    if (args.includes("-p")) {
      await out(shell, `${job.pid}\n`);
      continue;
    }
    const mark = i === shell.jobs.length - 1
      ? "+"
      : i === shell.jobs.length - 2
      ? "-"
      : " ";
    const state = job.status === undefined
      ? "Running"
      : job.status === 0
      ? "Done"
      : `Exit ${job.status}`;
    await out(
      shell,
      `[${job.number}]${mark}  ${args.includes("-l") ? job.pid + " " : ""}${
        state.padEnd(24)
      }${job.text}${job.status === undefined ? " &" : ""}\n`,
    );
  }
  shell.jobs = shell.jobs.filter((j) => j.status === undefined);
  return 0;
});

define("kill", async (shell, args) => {
  let signal = 15, i = 0;
  if (args[0] === "-l" || args[0] === "-L") {
    if (args[1] !== undefined) {
      const n = Number(args[1]);
      return await out(
        shell,
        (Number.isNaN(n)
          ? String(signalNumber(args[1]))
          : SIGNALS[(n > 128 ? n - 128 : n) - 1]) + "\n",
      );
    }
    return await out(
      shell,
      SIGNALS.map((s, n) => `${n + 1}) SIG${s}`).join("\n") + "\n",
    );
  }
  if (args[0] === "-s" || args[0] === "-n") {
    signal = signalNumber(args[1] ?? "") ?? -1;
    i = 2;
  } else if (/^-./.test(args[0] ?? "") && args[0] !== "--") {
    signal = signalNumber(args[0]!.slice(1)) ?? -1;
    i = 1;
  }
  if (signal < 0) {
    return usage(
      shell,
      "kill",
      `${args[i - 1]}: invalid signal specification`,
      1,
    );
  }
  if (args[i] === "--") i++;
  if (i >= args.length) {
    return usage(
      shell,
      "kill",
      "usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]",
      2,
    );
  }
  let status = 0;
  for (const text of args.slice(i)) {
    const job = findJob(shell, text);
    if (job !== undefined) {
      if (job.status !== undefined) {
        shell.complain(`kill: (${text}) - No such process`);
        status = 1;
      } else if (signal !== 0) job.cancel.end(signal);
    } else if (Number(text) === shell.pid || Number(text) === shell.shellPid) {
      if (signal === 0) continue;
      const action = shell.traps.get(SIGNALS[signal - 1] ?? "");
      if (
        action === "" ||
        ["CHLD", "CONT", "URG", "WINCH"].includes(SIGNALS[signal - 1] ?? "")
      ) continue;
      if (action !== undefined) await shell.trapped(action);
      else throw new ExitShell(128 + signal);
    } else {
      shell.complain(
        text.startsWith("%")
          ? `kill: ${text}: no such job`
          : `kill: (${text}) - No such process`,
      );
      status = 1;
    }
  }
  return status;
});

define("alias", async (shell, args) => {
  let status = 0;
  if (args.length === 0 || args[0] === "-p") {
    return await out(
      shell,
      [...shell.aliases].sort().map(([n, v]) =>
        `alias ${n}=${quote(v, true)}\n`
      ).join(""),
    );
  }
  for (const arg of args) {
    const at = arg.indexOf("=");
    if (at > 0) shell.aliases.set(arg.slice(0, at), arg.slice(at + 1));
    else if (shell.aliases.has(arg)) {
      await out(
        shell,
        `alias ${arg}=${quote(shell.aliases.get(arg)!, true)}\n`,
      );
    } else status = usage(shell, "alias", `${arg}: not found`, 1);
  }
  return status;
});
define("unalias", (shell, args) => {
  if (args[0] === "-a") shell.aliases.clear();
  for (const arg of args) shell.aliases.delete(arg);
  return 0;
});

define("compgen", async (shell, args) => {
  const prefix = args.at(-1)?.startsWith("-") === false && args.length > 1
    ? args.at(-1)!
    : "";
  let names: string[] = [];
  if (args[0] === "-v") names = [...shell.variables.keys()];
  else if (args[0] === "-c") {
    names = [
      ...builtins.keys(),
      ...shell.functions.keys(),
      ...shell.world.programs.names(),
    ];
  } else if (args[0] === "-b") names = [...builtins.keys()];
  else if (args[0] === "-A" && args[1] === "function") {
    names = [...shell.functions.keys()];
  } else if (args[0] === "-W") {
    names = (args[1] ?? "").split(/\s+/).filter((w) => w !== "");
  }
  const wanted = args[0] === "-A" || args[0] === "-W" ? args[2] ?? "" : prefix;
  const found = [...new Set(names)].filter((n) => n.startsWith(wanted)).sort();
  await out(shell, found.map((n) => n + "\n").join(""));
  return found.length > 0 ? 0 : 1;
});

// test

define("test [", (shell, args, name) => {
  let words = args;
  if (name === "[") {
    if (words.at(-1) !== "]") return usage(shell, "[", "missing `]'");
    words = words.slice(0, -1);
  }
  try {
    return testWords(shell, words) ? 0 : 1;
  } catch (e) {
    if (!(e instanceof ShellError) || e.fatal) throw e;
    shell.complain(`${name}: ${e.message}`);
    return 2;
  }
});

const UNARY = /^-[abcdefghknoprstuvwxzGLNORS]$/;
const BINARY = /^(=|==|!=|<|>|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot|-ef)$/;

function testWords(shell: Shell, words: string[]): boolean {
  // With up to four words their number decides.
  switch (words.length) {
    case 0:
      return false;
    case 1:
      return words[0] !== "";
    case 2:
      if (words[0] === "!") return words[1] === "";
      if (UNARY.test(words[0]!)) return shell.unary(words[0]!, words[1]!);
      throw new ShellError(`${words[0]}: unary operator expected`, 2);
    case 3:
      if (BINARY.test(words[1]!)) {
        return shell.binary(words[1]!, words[0]!, words[2]!, false);
      }
      if (words[1] === "-a") return words[0] !== "" && words[2] !== "";
      if (words[1] === "-o") return words[0] !== "" || words[2] !== "";
      if (words[0] === "!") return !testWords(shell, words.slice(1));
      if (words[0] === "(" && words[2] === ")") return words[1] !== "";
      throw new ShellError(`${words[1]}: binary operator expected`, 2);
    case 4:
      if (words[0] === "!") return !testWords(shell, words.slice(1));
      if (words[0] === "(" && words[3] === ")") {
        return testWords(shell, words.slice(1, 3));
      }
  }
  let at = 0;
  const or = (): boolean => {
    let value = and();
    while (words[at] === "-o") {
      at++;
      const right = and();
      value = value || right;
    }
    return value;
  };
  const and = (): boolean => {
    let value = one();
    while (words[at] === "-a") {
      at++;
      const right = one();
      value = value && right;
    }
    return value;
  };
  const one = (): boolean => {
    const word = words[at];
    if (word === undefined) throw new ShellError("argument expected", 2);
    if (word === "!") {
      at++;
      return !one();
    }
    if (BINARY.test(words[at + 1] ?? "") && words[at + 2] !== undefined) {
      at += 3;
      return shell.binary(words[at - 2]!, word, words[at - 1]!, false);
    }
    if (word === "(") {
      at++;
      const value = or();
      if (words[at++] !== ")") throw new ShellError("`)' expected", 2);
      return value;
    }
    if (UNARY.test(word) && words[at + 1] !== undefined) {
      at += 2;
      return shell.unary(word, words[at - 1]!);
    }
    at++;
    return word !== "";
  };
  const value = or();
  if (at < words.length) throw new ShellError("too many arguments", 2);
  return value;
}
