/**
 * Lua 5.4. Of the package only the WebAssembly is used, which is Lua with its own
 * libraries and a C interface: what it imports is here, so that there is no JavaScript
 * for a program to reach.
 *
 * @module
 */

import {
  type Host,
  type Language,
  type Program,
  type Start,
} from "../language.ts";
import { compile } from "../emscripten.ts";
import { serve } from "../serve.ts";
import { loadLua, type Lua } from "./luacore.ts";

/** What calls of Lua's return: ERRSYNTAX and ERRMEM in lua.h. */
const SYNTAX = 3, NO_MEMORY = 4;
/** All that a function returns. */
const MULTIPLE = -1;
/** Types of values in lua.h. */
const BOOLEAN = 1, NUMBER = 3, STRING = 4, TABLE = 5;

/** Where modules are looked for: beside the program. */
const MODULES = "./?.lua;./?/init.lua";

const decoder = new TextDecoder();

let module: WebAssembly.Module;
let lua: Lua | undefined;

async function prepare(start: Start): Promise<void> {
  module = await compile(`${start.parts.wasmoon}/dist/glue.wasm`);
}

/** The function that adds a traceback to a message is at the bottom of the stack. */
const HANDLER = 1;

async function open(program: Program, host: Host): Promise<Lua> {
  const lua = await loadLua(module, host, program.env);
  const { L, api } = lua;
  api.luaL_openlibs(L);
  lua.getGlobal("debug");
  lua.getField(-1, "traceback");
  api.lua_rotate(L, -2, 1);
  api.lua_settop(L, HANDLER);
  lua.getGlobal("package");
  lua.push(MODULES);
  lua.setField(-2, "path");
  lua.push("./?.so");
  lua.setField(-2, "cpath");
  api.lua_settop(L, HANDLER);
  return lua;
}

async function run(program: Program, host: Host): Promise<number> {
  lua ??= await open(program, host);
  lua.connect(host);
  const now = lua;
  let ended = false;
  try {
    const code = program.echo
      ? cell(now, program, host)
      : whole(now, program, host);
    ended = true;
    return code;
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return report(now, host, "StackOverflow", "stack overflow", "");
  } finally {
    now.api.fflush(0);
    if (!ended) lua = undefined;
  }
}

/** Runs a program, as `lua FILE ARG…` does. */
function whole(lua: Lua, program: Program, host: Host): number {
  const { L, api } = lua;
  api.lua_createtable(L, program.args.length, 1);
  [program.file, ...program.args].forEach((arg, i) => {
    lua.push(arg);
    api.lua_rawseti(L, -2, BigInt(i));
  });
  lua.setGlobal("arg");
  let status = lua.load(withoutFirstComment(program.code), program.file);
  if (status === 0) {
    for (const arg of program.args) lua.push(arg);
    status = api.lua_pcallk(L, program.args.length, 0, HANDLER, 0, 0);
  }
  if (status !== 0) return failed(lua, status, host);
  api.lua_settop(L, HANDLER);
  return 0;
}

/** Runs a cell, and prints what its value is, if it is an expression. */
function cell(lua: Lua, program: Program, host: Host): number {
  const { L, api } = lua;
  let status = lua.load(`return ${program.code}`, program.file);
  if (status !== 0) {
    api.lua_settop(L, HANDLER);
    status = lua.load(withoutFirstComment(program.code), program.file);
  }
  if (status === 0) status = api.lua_pcallk(L, 0, MULTIPLE, HANDLER, 0, 0);
  if (status !== 0) return failed(lua, status, host);
  const count = api.lua_gettop(L) - HANDLER;
  if (count > 0) {
    if (count === 1) tellValue(lua, host);
    lua.getGlobal("print");
    api.lua_rotate(L, HANDLER + 1, 1);
    status = api.lua_pcallk(L, count, 0, HANDLER, 0, 0);
    if (status !== 0) return failed(lua, status, host);
  }
  api.lua_settop(L, HANDLER);
  return 0;
}

/** Tells the value on top of the stack, if JSON has it. */
function tellValue({ L, api, text }: Lua, host: Host): void {
  const type = api.lua_type(L, -1);
  if (type === BOOLEAN) host.value(api.lua_toboolean(L, -1) !== 0);
  if (type === STRING) host.value(decoder.decode(text(-1)));
  if (type === NUMBER) {
    const number = api.lua_tonumberx(L, -1, 0);
    if (Number.isFinite(number)) host.value(number);
  }
}

/** Reports the error on top of the stack as the command `lua` does. */
function failed(lua: Lua, status: number, host: Host): number {
  const { L, api } = lua;
  const type = api.lua_type(L, -1);
  let said: string;
  if (type === STRING || type === NUMBER) {
    said = decoder.decode(lua.text(-1));
  } else if (lua.metaToString()) {
    said = decoder.decode(lua.text(-1));
  } else {
    const name = lua.string(api.lua_typename(L, type));
    said = `(error object is a ${name} value)`;
  }
  api.lua_settop(L, HANDLER);
  const at = said.lastIndexOf("\nstack traceback:\n");
  const message = at < 0 ? said : said.slice(0, at);
  const name = status === SYNTAX
    ? "SyntaxError"
    : status === NO_MEMORY
    ? "OutOfMemory"
    : /: stack overflow/.test(message)
    ? "StackOverflow"
    : "Error";
  return report(lua, host, name, message, at < 0 ? "" : said.slice(at));
}

function report(
  lua: Lua,
  host: Host,
  name: string,
  message: string,
  traceback: string,
): number {
  lua.api.fflush(0);
  const all = `lua: ${message}${traceback}`;
  host.stderr(new TextEncoder().encode(`${all}\n`));
  host.fail({ name, message, traceback: all });
  return 1;
}

/** A first line that begins with # is for the shell; its number stays. */
function withoutFirstComment(code: string): string {
  return code.replace(/^\ufeff?(?:#[^\n]*)?/, "");
}

/** Whether a text is cut off in the middle of something. */
function unfinished(text: string): boolean {
  if (!lua) return false;
  const { L, api } = lua;
  const whether = [`return ${text}`, text].map((code) => {
    const status = lua!.load(code, "cell");
    const waits = status === SYNTAX &&
      decoder.decode(lua!.text(-1)).endsWith("<eof>");
    api.lua_settop(L, HANDLER);
    return { status, waits };
  });
  return whether.every(({ status }) => status !== 0) && whether[1]!.waits;
}

/** The names of globals, or of a table's fields, that begin so. */
function complete(text: string): string[] {
  const path = /[\w.:]*$/.exec(text)![0].split(/[.:]/);
  const begun = path.pop()!;
  if (!lua) return [];
  const { L, api } = lua;
  try {
    lua.getGlobal("_G");
    for (const name of path) {
      if (api.lua_type(L, -1) !== TABLE) return [];
      lua.push(name);
      api.lua_rawget(L, -2);
    }
    if (api.lua_type(L, -1) !== TABLE) return [];
    const names: string[] = [];
    lua.pushNil();
    while (api.lua_next(L, -2) !== 0) {
      if (api.lua_type(L, -2) === STRING) {
        const name = decoder.decode(lua.text(-2));
        if (name.startsWith(begun) && /^[a-zA-Z_]\w*$/.test(name)) {
          names.push(name);
        }
      }
      api.lua_settop(L, -2);
    }
    return names.sort();
  } finally {
    api.lua_settop(L, HANDLER);
  }
}

const language: Language = { prepare, run, unfinished, complete };
await serve(language);
