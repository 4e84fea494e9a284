/**
 * Paths of the tree of files, as a program writes them.
 *
 * @module
 */

import { FileError, type Files } from "./files.ts";
import { WORKSPACE } from "./language.ts";

/** A path from the root, of one that is relative to the workspace. */
export function fullPath(path: string): string {
  const parts: string[] = [];
  const whole = path.startsWith("/") ? path : `${WORKSPACE}/${path}`;
  for (const part of whole.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return "/" + parts.join("/");
}

/** The files whose paths match a pattern with `*`, `?`, `[a-z]` and `**`, sorted. */
export function glob(files: Files, pattern: string): string[] {
  let found = [""];
  const parts = fullPath(pattern).slice(1).split("/");
  parts.forEach((part, i) => {
    const last = i === parts.length - 1;
    if (part === "**") found = found.flatMap((path) => below(files, path));
    else if (!/[*?[]/.test(part)) {
      found = found.map((path) => `${path}/${part}`);
    } else {
      const matches = patternOf(part);
      found = found.flatMap((path) =>
        entries(files, path).filter(({ name, kind }) =>
          matches.test(name) && (last || kind === "directory")
        ).map(({ name }) => `${path}/${name}`)
      );
    }
  });
  return found.filter((path) => isFile(files, path)).sort();
}

function patternOf(part: string): RegExp {
  let source = "";
  for (const [text] of part.matchAll(/\*|\?|\[[^\]]+\]|[^]/gu)) {
    if (text === "*") source += "[^]*";
    else if (text === "?") source += "[^]";
    else if (text.length > 2) {
      source += text.replace(/^\[!/, "[^").replaceAll("\\", "\\\\");
    } else source += text.replace(/[\\^$.*+?()[\]{}|]/, "\\$&");
  }
  return new RegExp(`^${source}$`);
}

function entries(files: Files, path: string): ReturnType<Files["readDir"]> {
  try {
    return files.readDir(path || "/");
  } catch (error) {
    if (error instanceof FileError) return [];
    throw error;
  }
}

/** A directory and all in it. */
function below(files: Files, path: string): string[] {
  return [
    path,
    ...entries(files, path).filter(({ kind }) => kind === "directory")
      .flatMap(({ name }) => below(files, `${path}/${name}`)),
  ];
}

export function isFile(files: Files, path: string): boolean {
  try {
    return files.stat(path).kind === "file";
  } catch {
    return false;
  }
}
