/**
 * Programs in other languages: `python3`, `node`, `ruby` and others ask the supervisor,
 * which runs them beside the shell with its workspace, and judges them as any call.
 *
 * @module
 */

import type { Called } from "../../language.ts";
import { type Call, reason, resolve } from "../shell.ts";
import { readAll, readAllNow } from "../streams.ts";
import { concat, fromBytes } from "../syntax.ts";
import { type Program, warn, write } from "../program.ts";

/** How a language is called from a shell. */
interface Form {
  language: string;
  /** The option before a program's text. */
  code?: string[];
  /** Options that take a value, and those that take none. */
  values?: string[];
  /** What `--version` says. */
  version: string;
  /** The file is not optional: what comes first is one whatever it looks like. */
  compiled?: boolean;
}

const FORMS: Record<string, Form> = {
  python3: {
    language: "python",
    code: ["-c"],
    values: ["-W", "-X"],
    version: "Python 3",
  },
  node: {
    language: "javascript",
    code: ["-e", "--eval", "-p", "--print"],
    values: ["-r", "--require"],
    version: "node (run by Deno)",
  },
  deno: { language: "typescript", code: [], version: "deno" },
  tsx: { language: "typescript", code: ["-e"], version: "tsx (run by Deno)" },
  ruby: {
    language: "ruby",
    code: ["-e"],
    values: ["-I", "-r"],
    version: "ruby",
  },
  php: { language: "php", code: ["-r"], values: ["-d"], version: "PHP" },
  lua: { language: "lua", code: ["-e"], values: ["-l"], version: "Lua" },
  perl: {
    language: "perl",
    code: ["-e", "-E"],
    values: ["-I"],
    version: "perl",
  },
  Rscript: { language: "r", code: ["-e"], version: "Rscript" },
  qjs: { language: "quickjs", code: ["-e", "--eval"], version: "QuickJS" },
  swipl: {
    language: "prolog",
    code: [],
    values: ["-g", "-t"],
    version: "SWI-Prolog",
  },
};
const ALIASES: Record<string, string> = {
  python: "python3",
  nodejs: "node",
  bun: "node",
  "ts-node": "tsx",
  lua5: "lua",
  "lua5.4": "lua",
  R: "Rscript",
  quickjs: "qjs",
};

export const languages: Record<string, Program> = {};

/** Asks the supervisor, and passes on what came. */
async function ask(
  call: Call,
  request: {
    language: string;
    code: string;
    path?: string;
    args?: string[];
    packages?: string[];
  },
  stdin?: Uint8Array,
): Promise<number> {
  const { host } = call.shell.world;
  if (host.call === undefined) {
    warn(
      call,
      `this shell may not run ${request.language}: only a shell that was started with leave to call other languages does`,
    );
    return 127;
  }
  let called: Called;
  try {
    called = host.call({ ...request, stdin });
  } catch (e) {
    warn(call, reason(e));
    return 126;
  }
  await call.stderr.write(called.stderr);
  await call.stdout.write(called.stdout);
  return called.code;
}

/** The path from the workspace, for messages; undefined elsewhere. */
function fromWorkspace(path: string): string | undefined {
  return path.startsWith("/workspace/")
    ? path.slice("/workspace/".length)
    : undefined;
}

/** Words in a program that tell that it reads standard input. */
const READS =
  /stdin|\binput\s*\(|\bgets\b|readline|readLines|\bread\s*\(|\$<|<>|fileinput|php:\/\/|io\.(read|lines)|ARGF|scan\s*\(|prompt\s*\(/i;

/**
 * Standard input for another program, which gets it whole before it starts. What was
 * not made for this command, such as the file of a loop around it, is left to
 * others, unless the program seems to read.
 */
async function input(
  call: Call,
  code: string,
): Promise<Uint8Array | undefined> {
  if (!call.stdin.own && !READS.test(code)) return undefined;
  const bytes = readAllNow(call.stdin) ?? await readAll(call.stdin);
  return bytes.length === 0 ? undefined : bytes;
}

/**
 * The program that `perl` is given as options (`-lane CODE`), and its arguments; undefined
 * if it is none. Perl takes switches of its first line as those of its command line.
 */
export function perlProgram(
  args: string[],
): { code: string; args: string[] } | undefined {
  const pieces: string[] = [], uses: string[] = [];
  let switches = "", i = 0;
  for (; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === "--") {
      i++;
      break;
    }
    if (!/^-[^-]/.test(arg)) break;
    for (let rest = arg.slice(1); rest !== "";) {
      const letter = rest[0]!;
      rest = rest.slice(1);
      if (letter === "e" || letter === "E") {
        if (letter === "E") uses.push("use feature ':all';");
        const text = rest || args[++i];
        if (text === undefined) return undefined;
        pieces.push(text);
        rest = "";
      } else if (letter === "M" || letter === "m") {
        const [name, names] = (rest || args[++i] || "").split("=");
        uses.push(
          `use ${name}${
            names === undefined ? "" : ` split(/,/, q\0${names}\0)`
          };`,
        );
        rest = "";
      } else if (letter === "I") {
        if (rest === "") i++;
        rest = "";
      } else if (letter === "F" || letter === "i") {
        switches += ` -${letter}${rest}`;
        rest = "";
      } else if (letter === "0" || letter === "l") {
        const digits = /^(x?[0-9a-f]*)/i.exec(letter === "0" ? rest : "")![0];
        switches += ` -${letter}${digits}`;
        rest = rest.slice(digits.length);
      } else if ("npaws".includes(letter)) switches += ` -${letter}`;
      else return undefined;
    }
  }
  if (pieces.length === 0) return undefined;
  const code = `#!/usr/bin/perl${switches}\n${uses.join(" ")}\n#line 1 "-e"\n${
    pieces.join("\n")
  }\n`;
  return { code, args: args.slice(i) };
}

async function start(call: Call, form: Form): Promise<number> {
  const { args, shell } = call;
  const perl = call.name === "perl" ? perlProgram(args) : undefined;
  if (perl !== undefined) {
    // A program around each line reads what it is given.
    const reads = /^#!.* -[npa]/.test(perl.code) && perl.args.length === 0;
    return await ask(
      call,
      { language: form.language, ...perl },
      await input(call, reads ? "<>" : perl.code),
    );
  }
  const pieces: string[] = [];
  let i = 0, print = false;
  if (call.name === "deno") {
    if (args[0] === "eval") {
      return await ask(call, {
        language: form.language,
        code: args[1] ?? "",
        args: args.slice(2),
      }, await input(call, args[1] ?? ""));
    }
    if (args[0] === "run") i = 1;
    else if (args[0] !== "--version") {
      warn(call, `only \`deno run\` and \`deno eval\` are here`);
      return 1;
    }
  }
  for (; i < args.length; i++) {
    const arg = args[i]!;
    if (
      arg === "--version" || arg === "-V" && call.name.startsWith("python") ||
      arg === "-v" && call.name === "node"
    ) {
      await write(call, form.version + "\n");
      return 0;
    }
    if (form.code?.includes(arg)) {
      print ||= arg === "-p" || arg === "--print";
      if (args[i + 1] === undefined) {
        warn(call, `${arg}: an argument is expected`);
        return 2;
      }
      pieces.push(args[++i]!);
      // Python's program is over with its text.
      if (call.name.startsWith("python")) {
        i++;
        break;
      }
      continue;
    }
    if (arg === "-m" && form.language === "python") {
      return await module(call, args.slice(i + 1));
    }
    if (form.values?.includes(arg)) {
      i++;
      continue;
    }
    if (arg === "--") {
      i++;
      break;
    }
    if (!arg.startsWith("-") || arg === "-") break;
  }
  if (pieces.length > 0) {
    const text = print
      ? `console.log(${pieces.join("\n")})`
      : pieces.join("\n");
    return await ask(call, {
      language: form.language,
      code: form.language === "php" ? `<?php ${text}` : text,
      args: args.slice(i),
    }, await input(call, text));
  }
  const file = args[i];
  if (file === undefined || file === "-") {
    const text = fromBytes(await readAll(call.stdin));
    return await ask(call, {
      language: form.language,
      code: text,
      args: args.slice(i + 1),
    });
  }
  const path = resolve(shell.cwd, file);
  let code: string;
  try {
    const stream = file.startsWith("/dev/")
      ? shell.openFile(file, "<")
      : undefined;
    code = fromBytes(
      stream === undefined ? shell.files.readFile(path) : await readAll(stream),
    );
  } catch (e) {
    warn(
      call,
      form.language === "python"
        ? `can't open file '${path}': [Errno 2] ${reason(e)}`
        : `${file}: ${reason(e)}`,
    );
    return 2;
  }
  const language = form.language === "javascript" && /\.[mc]?tsx?$/.test(file)
    ? "typescript"
    : form.language;
  return await ask(call, {
    language,
    code,
    path: fromWorkspace(path),
    args: args.slice(i + 1),
  }, await input(call, code));
}

/** `python -m`: pip here, other modules by Python's own means. */
async function module(call: Call, [name, ...args]: string[]): Promise<number> {
  if (name === undefined) return warn(call, "-m: a module's name is expected");
  if (name === "pip") return await pip(call, args);
  const code = `import runpy, sys\nsys.argv[0] = ${
    JSON.stringify(name)
  }\nrunpy.run_module(${
    JSON.stringify(name)
  }, run_name="__main__", alter_sys=True)\n`;
  return await ask(
    call,
    { language: "python", code, args },
    await input(call, "stdin"),
  );
}

async function pip(call: Call, [verb, ...args]: string[]): Promise<number> {
  if (verb !== "install") {
    return warn(call, `only \`${call.name} install\` is here`);
  }
  const packages: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === "-r" || arg === "--requirement") {
      try {
        packages.push(
          ...fromBytes(
            call.shell.files.readFile(resolve(call.shell.cwd, args[++i] ?? "")),
          )
            .split("\n").map((l) => l.replace(/(^|\s)#.*/, "").trim()).filter((
              l,
            ) => l !== "" && !l.startsWith("-")),
        );
      } catch (e) {
        return warn(call, `${args[i]}: ${reason(e)}`);
      }
    } else if (!arg.startsWith("-")) packages.push(arg);
  }
  if (packages.length === 0) return warn(call, "what is to be installed?");
  return await ask(call, { language: "python", code: "", packages });
}

async function npm(call: Call): Promise<number> {
  const [verb, ...args] = call.args;
  if (verb === undefined || !/^(install|i|add|ci)$/.test(verb)) {
    return warn(call, `only \`${call.name} install\` is here`);
  }
  let packages = args.filter((a) => !a.startsWith("-"));
  if (packages.length === 0) {
    try {
      const found = JSON.parse(
        fromBytes(
          call.shell.files.readFile(resolve(call.shell.cwd, "package.json")),
        ),
      ) as Record<string, Record<string, string>>;
      packages = Object.entries({
        ...found.dependencies,
        ...found.devDependencies,
      }).map(([n, v]) => `${n}@${v}`);
    } catch (e) {
      return warn(call, `package.json: ${reason(e)}`);
    }
  }
  if (packages.length === 0) return 0;
  return await ask(call, { language: "javascript", code: "", packages });
}

for (const [name, form] of Object.entries(FORMS)) {
  languages[name] = (call) => start(call, form);
}
for (const [alias, name] of Object.entries(ALIASES)) {
  languages[alias] = (call) => start(call, FORMS[name]!);
}
for (const name of ["pip", "pip3", "uv"]) {
  languages[name] = (call) =>
    pip(
      call,
      name === "uv"
        ? call.args.filter((a, i) => i > 0 || a !== "pip")
        : call.args,
    );
}
for (const name of ["npm", "pnpm", "yarn"]) languages[name] = npm;

const SQLITE_MODES =
  /^(csv|json|column|box|markdown|line|list|table|html|tabs|ascii|quote)$/;

/**
 * What a call of `sqlite3` asks of its shell: commands that options stand for, and what is
 * no option, the database's file and SQL. Without SQL, `input` is read.
 */
export async function sqliteScript(
  args: string[],
  input: () => Promise<string>,
): Promise<{ file: string; script: string } | { unknown: string }> {
  let mode = "list", headers: boolean | undefined;
  const settings: string[] = [], commands: string[] = [], rest: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!, name = arg.replace(/^--?/, "");
    if (!arg.startsWith("-") || arg === "-") rest.push(arg);
    else if (SQLITE_MODES.test(name)) mode = name;
    else if (name === "header" || name === "noheader") {
      headers = name === "header";
    } else if (name === "separator" || name === "nullvalue") {
      settings.push(`.${name} ${JSON.stringify(args[++i] ?? "")}`);
    } else if (name === "cmd") commands.push(args[++i] ?? "");
    else if (name === "echo" || name === "bail") settings.push(`.${name} on`);
    else if (!/^(batch|interactive|safe)$/.test(name)) return { unknown: arg };
  }
  const [file = ":memory:", ...sql] = rest;
  commands.push(...(sql.length > 0 ? sql : [await input()]));
  const script = commands.map((text) =>
    /^\s*\.|;\s*$/.test(text) ? text + "\n" : text + ";\n"
  ).join("");
  // Columns are named where a mode draws them, else only if that is asked for.
  const drawn = /^(\s*\.mode\s+)?(col|box|mark|table)/m;
  if (!drawn.test(`${mode}\n${script}`)) headers ??= false;
  if (headers !== undefined) {
    settings.push(`.headers ${headers ? "on" : "off"}`);
  }
  return { file, script: [`.mode ${mode}`, ...settings, script].join("\n") };
}

/** `sqlite3 [OPTION…] [FILE [SQL…]]` */
languages.sqlite3 = async (call) => {
  if (call.args.some((arg) => /^--?version$/.test(arg))) {
    await write(call, "SQLite 3\n");
    return 0;
  }
  const asked = await sqliteScript(
    call.args,
    async () => fromBytes(await readAll(call.stdin)),
  );
  if ("unknown" in asked) {
    warn(call, `unknown option: ${asked.unknown}`);
    return 1;
  }
  const { file, script } = asked;
  const open = file === ":memory:"
    ? ""
    : `.open ${JSON.stringify(resolve(call.shell.cwd, file))}\n`;
  return await ask(call, { language: "sql", code: open + script });
};
languages.duckdb = async (call) =>
  await ask(call, {
    language: "duckdb",
    code: call.args.at(-1) ?? fromBytes(concat([await readAll(call.stdin)])),
  });

for (
  const name of [
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "go",
    "rustc",
    "cargo",
    "javac",
    "java",
    "tsc",
    "ghc",
    "swift",
    "dotnet",
  ]
) {
  languages[name] = (call) => {
    const c = /^(g\+\+|c\+\+|clang\+\+)$/.test(name)
      ? "cpp"
      : /^(gcc|cc|clang)$/.test(name)
      ? "c"
      : name === "go"
      ? "go"
      : undefined;
    warn(
      call,
      c === undefined
        ? "it is not here"
        : `programs can't be compiled from the shell; run their source as the language ${c}`,
    );
    return 127;
  };
}
