/**
 * The tree of files that a program sees: `/workspace`, which are files of the machine's,
 * the program's own file and modules beside it, what the operator granted, and a few
 * directories in memory (`/tmp`, `/home/user`, `/dev`, `/etc`). Deno decides what of the
 * machine may be read and written.
 *
 * @module
 */

import type { Start } from "./language.ts";

/** An error with the name that the C library has for it: "ENOENT". */
export class FileError extends Error {
  constructor(readonly code: string, path = "") {
    super(path ? `${code}: ${path}` : code);
  }
}

export type Kind = "file" | "directory" | "symlink" | "device";

export interface Stat {
  kind: Kind;
  /** Bytes. */
  size: number;
  /** Milliseconds since 1970. */
  mtime: number;
  atime: number;
  /** Permission bits. */
  mode: number;
  ino: number;
  nlink: number;
}

export interface OpenOptions {
  read?: boolean;
  write?: boolean;
  append?: boolean;
  create?: boolean;
  /** It must not be there. */
  exclusive?: boolean;
  truncate?: boolean;
}

/** An open file. Its methods throw FileError. */
export interface OpenFile {
  /** Reads at a place; how many bytes were read, 0 at the end. */
  read(buffer: Uint8Array, at: number): number;
  /** Writes at a place; a file that is opened to append is written at its end. */
  write(bytes: Uint8Array, at: number): number;
  stat(): Stat;
  truncate(size: number): void;
  setTimes(atime: number, mtime: number): void;
  sync(): void;
  close(): void;
}

/** All methods take absolute paths, normalised here, and throw FileError. */
export interface Files {
  open(path: string, options: OpenOptions): OpenFile;
  /** What is at a path; links are followed unless `follow` is false. */
  stat(path: string, follow?: boolean): Stat;
  readDir(path: string): { name: string; kind: Kind }[];
  mkdir(path: string): void;
  rmdir(path: string): void;
  unlink(path: string): void;
  rename(from: string, to: string): void;
  symlink(target: string, path: string): void;
  readLink(path: string): string;
  setTimes(path: string, atime: number, mtime: number): void;
  chmod(path: string, mode: number): void;
  /** A whole file. */
  readFile(path: string): Uint8Array;
  writeFile(path: string, bytes: Uint8Array): void;
  /** Lays a read-only file over the tree. It can be opened, and is not listed. */
  overlay(path: string, content: Uint8Array): void;
  /** The path on the machine, as the child names it, of what is there in the workspace or was granted; undefined elsewhere. */
  hostPath(path: string): string | undefined;
}

export function makeFiles(_start: Start): Files {
  throw new Error("not yet");
}
