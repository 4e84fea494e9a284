/**
 * What a language is to the child that runs it: the module of a language implements
 * `Language`, and calls `serve` (serve.ts) with it.
 *
 * @module
 */

import type { WireError } from "../../supervisor/wire/guest/wire.ts";
import type { Files } from "./files.ts";

/** Where programs have their workspace. */
export const WORKSPACE = "/workspace";

/** What a child is started with, before its program is known. */
export interface Start {
  /** The directories of the language's packages, by the packages' names. */
  parts: Record<string, string>;
  /** The machine's directory that is `/workspace`, by the name that it has for the child. */
  workspace: string;
  readOnly: boolean;
  /** Files and directories of the machine's that the operator granted, which programs have at the same paths. */
  granted: string[];
  /** The child takes cell after cell, in place of one program. */
  session: boolean;
}

/** One program, or one cell. */
export interface Program {
  code: string;
  /**
   * The path of the program's file, "/workspace/main.rb". It can be read (`Files` has
   * it) though the machine's workspace may not hold it.
   */
  file: string;
  args: string[];
  env: Record<string, string>;
  /** The module that a compiler made of the program. */
  compiled?: Uint8Array;
  /** A cell's value is to be shown as the language's own REPL prints it. */
  echo: boolean;
  /** No other cell comes after it. */
  last: boolean;
}

/** What a program, by its language, does to its process. */
export interface Host {
  files: Files;
  /** Reads standard input: how many bytes were read, 0 at its end. */
  read(buffer: Uint8Array): number;
  /** Writes; it is with the supervisor when this returns. */
  stdout(bytes: Uint8Array): void;
  stderr(bytes: Uint8Array): void;
  /** Shows something: MIME type → text, or base64 where the type is binary. */
  display(data: Record<string, string>): void;
  /** The program's value, which has a form in JSON. */
  value(value: unknown): void;
  /** The error by which the program ends; the traceback has the guest's frames. */
  fail(error: WireError): void;
  /** Runs a program in another language; there only for languages that may. */
  call?(call: Call): Called;
}

/** A program in another language. */
export interface Call {
  language: string;
  code: string;
  /** Its file, by its path from the workspace; absent if it has none. */
  path?: string;
  args?: string[];
  stdin?: Uint8Array;
  /** Packages to be fetched, in place of a program. */
  packages?: string[];
}

/** How it ended. */
export interface Called {
  code: number;
  stdout: Uint8Array;
  stderr: Uint8Array;
}

export interface Language {
  /** Loads all that each program needs. */
  prepare(start: Start): void | Promise<void>;
  /**
   * Runs a program, and gives its exit code. Of a language that keeps its state a
   * session calls it again and again in the same process. What is thrown is told as
   * the language's own failure, with exit code 134.
   */
  run(program: Program, host: Host): number | Promise<number>;
  /** The names that may stand in place of the last word of a text. */
  complete?(text: string): string[] | Promise<string[]>;
  /** Whether a text, as it is typed, waits for another line. */
  unfinished?(text: string): boolean | Promise<boolean>;
}

/** A program's exit, thrown through a language's own code. */
export class Exit extends Error {
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}
