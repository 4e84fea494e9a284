/**
 * The shell. Its interpreter is our own (../shell/); many of its programs are those of
 * the package just-bash.
 *
 * @module
 */

import type { Host, Language, Program, Start } from "../language.ts";
import { serve } from "../serve.ts";
import { builtins } from "../shell/builtins.ts";
import { programs } from "../shell/programs.ts";
import { reason, Shell, type World } from "../shell/shell.ts";
import { Input, Output } from "../shell/streams.ts";
import { Parser, ShellSyntaxError } from "../shell/syntax.ts";

let parts: Start["parts"] = {};
let session = false;
/** The shell whose state the next cell finds. */
let kept: Shell | undefined;

function prepare(start: Start): void {
  ({ parts, session } = start);
}

async function run(program: Program, host: Host): Promise<number> {
  const name = program.file.replace(/.*\//, "");
  let shell = kept;
  if (shell === undefined) {
    const world: World = {
      files: host.files,
      host,
      builtins,
      programs: programs(parts["just-bash"] ?? ""),
      began: Date.now(),
      nextPid: 1000,
      live: 0,
    };
    shell = new Shell(world);
    shell.start0(name, program.args, program.env);
    if (session) kept = shell;
  } else {
    shell.world.host = host;
    shell.name = name;
    if (program.args.length > 0) shell.arguments = program.args;
  }
  shell.replace(0, new Input(host.read));
  shell.replace(1, new Output(host.stdout));
  shell.replace(2, new Output(host.stderr));
  shell.world.failure = undefined;
  const { code } = program;
  const running = shell;
  const status =
    await (program.last
      ? running.whole(() => running.script(code))
      : cell(running, code));
  const { failure } = shell.world;
  if (failure !== undefined && status !== 0) host.fail(failure);
  return status;
}

/** Runs a cell, whose end is not the shell's, save by `exit`. */
async function cell(shell: Shell, code: string): Promise<number> {
  let status: number;
  try {
    status = await shell.script(code);
  } catch (e) {
    status = shell.ended(e);
    // What was under way is over.
    shell.calls.length = shell.scopes.length = 0;
    shell.level =
      shell.loops =
      shell.sourced =
      shell.forgiving =
        0;
  }
  shell.status = status;
  return status;
}

function unfinished(text: string): boolean {
  const parser = new Parser(text);
  try {
    while (parser.next() !== undefined);
  } catch (e) {
    return e instanceof ShellSyntaxError && e.unfinished;
  }
  return parser.hereUnfinished !== undefined ||
    /(^|[^\\])(\\\\)*\\$/.test(text);
}

function complete(text: string): string[] {
  const word = /[^\s;&|<>()"']*$/.exec(text)![0];
  if (word.startsWith("$")) {
    const brace = word.startsWith("${") ? "${" : "$";
    return [...kept?.variables.keys() ?? []].filter((n) =>
      n.startsWith(word.slice(brace.length))
    ).sort().map((n) => brace + n);
  }
  const names = new Set<string>();
  const shell = kept;
  if (
    /(^|[;&|(]|\b(then|do|else|if|while|until|!)\s)\s*$/.test(
      text.slice(0, text.length - word.length),
    )
  ) {
    for (const name of builtins.keys()) names.add(name);
    for (const name of programs("").names()) names.add(name);
    for (const name of shell?.functions.keys() ?? []) names.add(name);
  }
  if (shell !== undefined) {
    const slash = word.lastIndexOf("/") + 1, directory = word.slice(0, slash);
    try {
      for (
        const { name, kind } of shell.files.readDir(
          directory.startsWith("/")
            ? directory
            : `${shell.cwd}/${directory}`.replace(/\/$/, ""),
        )
      ) {
        names.add(directory + name + (kind === "directory" ? "/" : ""));
      }
    } catch (e) {
      reason(e);
    }
  }
  return [...names].filter((n) => n.startsWith(word)).sort();
}

const language: Language = { prepare, run, unfinished, complete };
await serve(language);
