/**
 * Cells by their names in the frames of errors, and what cells find beside what
 * Deno gives them.
 *
 * @module
 */

import Module from "node:module";

/** The line with what is put before each cell's code. */
const PRELUDE_LINES = 1;

interface CallSite {
  getFileName(): string | null;
  getScriptNameOrSourceURL(): string | null;
  getLineNumber(): number | null;
  getColumnNumber(): number | null;
}

interface SourceMap {
  findEntry(line: number, column: number): {
    originalLine?: number;
    originalColumn?: number;
  };
}

const { SourceMap } = Module as unknown as {
  SourceMap: new (payload: unknown) => SourceMap;
};
const parse = JSON.parse;
const text = String;

/**
 * Has errors tell in which cell a frame is, and where in its text: V8 knows the
 * cells' names, and leaves them out of the frames. `cells` gives each cell's source
 * map as JSON text, empty where its code is its text.
 */
export function nameFrames(cells: Map<string, string>): void {
  const maps = new Map<string, SourceMap>();
  const place = (site: CallSite): string => {
    const frame = text(site);
    const name = site.getScriptNameOrSourceURL();
    if (!name) return frame;
    if (!cells.has(name)) { // files are told by their paths here
      const file = site.getFileName();
      return file ? frame.replace(file, () => name) : frame;
    }
    let line = site.getLineNumber()! - PRELUDE_LINES;
    let column = site.getColumnNumber()!;
    const map = cells.get(name);
    if (map) {
      if (!maps.has(map)) maps.set(map, new SourceMap(parse(map)));
      const entry = maps.get(map)!.findEntry(line - 1, column - 1);
      line = (entry.originalLine ?? line - 1) + 1;
      column = (entry.originalColumn ?? column - 1) + 1;
    }
    return frame.replace(
      /[^\s(]*:\d+:\d+(\)?)$/,
      (_, end) => `${name}:${line}:${column}${end}`,
    );
  };
  Object.defineProperty(Error, "prepareStackTrace", {
    configurable: true,
    writable: true,
    value: (error: unknown, sites: CallSite[]) => {
      let lines: string;
      try {
        lines = text(error);
      } catch {
        lines = "Error";
      }
      for (let i = 0; i < sites.length; i++) { // also where for…of was changed
        lines += `\n    at ${place(sites[i]!)}`;
      }
      return lines;
    },
  });
}

/** Gives cells names that can be replaced and are not listed. */
export function hideHelpers(helpers: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(helpers)) {
    Object.defineProperty(globalThis, name, {
      configurable: true,
      writable: true,
      value,
    });
  }
}
