/**
 * Compiles a Go program with Go's own compiler and linker: the request has its sources,
 * the module goes to descriptor 3, and what the compiler says to standard error. The
 * exit code is the compiler's.
 *
 * A program is the file that is run, the files of package main beside it which have no
 * main function, and the packages of its module (go.mod) that it imports.
 *
 * The argument is a Start as JSON. Its part `go` is what wasm/go-toolchain.sh makes.
 *
 * @module
 */

import { readRequest } from "../../../supervisor/wire/guest/wire.ts";
import { makeFiles } from "../files.ts";
import { Exit, WORKSPACE } from "../language.ts";
import { instantiate } from "../wasi.ts";
import { isBuilt, modulePath, readSource, type Source } from "./gosource.ts";

interface Request {
  code: string;
  /** The program's path: "/workspace/main.go". */
  file: string;
  /** The sources beside it, by their paths, in base64. */
  files?: Record<string, string>;
}

const encoder = new TextEncoder(), decoder = new TextDecoder();
const { fromBase64 } = Uint8Array as unknown as {
  fromBase64(text: string): Uint8Array;
};

/** Where the compiler is told that all compiled packages are. */
const IMPORTS = "/tmp/imports", PROGRAM = "/tmp/program.wasm";

const { parts } = JSON.parse(Deno.args[0]!) as {
  parts: Record<string, string>;
};
const toolchain = Deno.realPathSync(parts.go!);
const files = makeFiles({
  parts,
  workspace: "",
  readOnly: true,
  granted: [toolchain],
  session: false,
});

function say(bytes: Uint8Array): void {
  while (bytes.length > 0) bytes = bytes.subarray(Deno.stderr.writeSync(bytes));
}

function fail(message: string): never {
  say(encoder.encode(`error: ${message}\n`));
  throw new Exit(1);
}

/** Runs one of Go's tools over the files; its words go to standard error. */
async function tool(name: string, args: string[]): Promise<void> {
  const module = new WebAssembly.Module(
    Deno.readFileSync(`${toolchain}/${name}.wasm`),
  );
  const { start } = await instantiate(module, {
    argv: [name, ...args],
    env: { PWD: WORKSPACE, HOME: "/tmp", TMPDIR: "/tmp", GOMAXPROCS: "1" },
    host: { files, read: () => 0, stdout: say, stderr: say },
  });
  const code = start();
  if (code !== 0) throw new Exit(1);
}

class Build {
  readonly #texts = new Map<string, string>();
  readonly #sources = new Map<string, Source>();
  readonly #standard: Set<string>;
  #module: string | undefined;
  #imports = "";
  /** Packages that are compiled, and those on the way. */
  readonly #done = new Set<string>();
  readonly #begun: string[] = [];

  constructor(private readonly request: Request) {
    for (const [path, content] of Object.entries(request.files ?? {})) {
      this.#texts.set(path, decoder.decode(fromBase64(content)));
    }
    this.#texts.set(request.file, request.code);
    for (const [path, text] of this.#texts) {
      if (path === `${WORKSPACE}/go.mod`) this.#module = modulePath(text);
      if (!path.endsWith(".go")) continue;
      files.overlay(path, encoder.encode(text));
      if (path === request.file || isBuilt(path, text)) {
        this.#sources.set(path, readSource(path, text));
      }
    }
    const names = Deno.readTextFileSync(`${toolchain}/packages`).trim().split(
      "\n",
    );
    this.#standard = new Set(names);
    for (const name of names) {
      this.#imports += `packagefile ${name}=${toolchain}/std/${name}.a\n`;
    }
  }

  async run(): Promise<Uint8Array> {
    const main = this.#sources.get(this.request.file)!;
    if (main.package !== "main") {
      fail(
        `package ${main.package} is not a program: a program is package main`,
      );
    }
    const beside = this.#in(directoryOf(main.path)).filter((source) =>
      source !== main && source.package === "main" && !source.main
    );
    const object = await this.#compile("main", [main, ...beside]);
    await tool("link", [
      ...["-importcfg", IMPORTS, "-s", "-w", "-buildmode=exe"],
      ...["-o", PROGRAM, object],
    ]);
    return files.readFile(PROGRAM);
  }

  #in(directory: string): Source[] {
    return [...this.#sources.values()].filter((source) =>
      directoryOf(source.path) === directory
    );
  }

  /** The directory of a package of the program's own module. */
  #directory(path: string): string | undefined {
    if (this.#module === undefined) return undefined;
    if (path === this.#module) return WORKSPACE;
    return path.startsWith(`${this.#module}/`)
      ? WORKSPACE + path.slice(this.#module.length)
      : undefined;
  }

  /** Compiles a package after those of the module that it imports; gives its file. */
  async #compile(name: string, sources: Source[]): Promise<string> {
    if (this.#begun.includes(name)) {
      fail(
        `import cycle not allowed: ${[...this.#begun, name].join(" imports ")}`,
      );
    }
    this.#begun.push(name);
    for (const path of new Set(sources.flatMap((source) => source.imports))) {
      if (
        this.#done.has(path) || this.#standard.has(path) || path === "unsafe"
      ) continue;
      const directory = this.#directory(path);
      if (directory !== undefined) {
        const inside = this.#in(directory).filter((source) =>
          source.package !== "main"
        );
        if (inside.length === 0) {
          fail(`no Go files in ${directory}, which is package ${path}`);
        }
        const object = await this.#compile(path, inside);
        this.#imports += `packagefile ${path}=${object}\n`;
      } else if (path === "C") {
        fail("cgo is not there: Go programs here are WebAssembly");
      } else if (path.split("/")[0]!.includes(".")) {
        fail(
          `package ${path} can't be had: Go programs here have the standard library and the packages of their own module`,
        );
      }
    }
    files.writeFile(IMPORTS, encoder.encode(this.#imports));
    const object = `/tmp/package-${this.#done.size}.a`;
    await tool("compile", [
      ...[
        "-o",
        object,
        "-p",
        name,
        "-pack",
        "-complete",
        "-importcfg",
        IMPORTS,
      ],
      ...["-trimpath", `${WORKSPACE}=>`, "-D", "", "-c=1"],
      ...sources.map((source) => source.path.slice(WORKSPACE.length + 1)),
    ]);
    this.#begun.pop();
    this.#done.add(name);
    return object;
  }
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

const out = Deno.openSync("/dev/fd/3", { write: true });
try {
  let made = await new Build(readRequest() as Request).run();
  while (made.length > 0) made = made.subarray(out.writeSync(made));
} catch (thrown) {
  if (!(thrown instanceof Exit)) throw thrown;
  Deno.exit(thrown.code);
}
Deno.exit(0);
