/**
 * What of a Go source is needed to build it: its package, what it imports, and whether
 * it is part of a build for WASI. The compiler reads the rest.
 *
 * @module
 */

export interface Source {
  path: string;
  package: string;
  imports: string[];
  /** It has a function `main` of its own. */
  main: boolean;
}

/** Names of systems and processors, by which a file's name says where it belongs. */
const ELSEWHERE =
  /_(aix|android|darwin|dragonfly|freebsd|illumos|ios|js|linux|netbsd|openbsd|plan9|solaris|windows|386|amd64|arm|arm64|loong64|mips|mips64|ppc64|ppc64le|riscv64|s390x)$/;

/** Whether a file belongs to a build by its name and its //go:build line. */
export function isBuilt(path: string, text: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/\.go$/, "");
  if (name.endsWith("_test") || /^[._]/.test(name) || ELSEWHERE.test(name)) {
    return false;
  }
  const line = /^\/\/go:build (.*)$/m.exec(text.split(/^package /m)[0]!);
  return line === null || holds(line[1]!);
}

/** Whether a condition of a //go:build line holds for WASI. */
function holds(condition: string): boolean {
  const tokens = condition.match(/\|\||&&|[!()]|[\w.]+/g) ?? [];
  let at = 0;
  const unary = (): boolean => {
    const token = tokens[at++];
    if (token === "!") return !unary();
    if (token === "(") {
      const value = or();
      at++;
      return value;
    }
    return token !== undefined && (/^(wasip1|wasm|gc)$/.test(token) ||
      /^go1\.\d+$/.test(token));
  };
  const and = (): boolean => {
    let value = unary();
    while (tokens[at] === "&&") {
      at++;
      value = unary() && value;
    }
    return value;
  };
  const or = (): boolean => {
    let value = and();
    while (tokens[at] === "||") {
      at++;
      value = and() || value;
    }
    return value;
  };
  return or();
}

/** Reads a source as far as it is needed; the compiler tells of errors in it. */
export function readSource(path: string, text: string): Source {
  const bare = withoutComments(text);
  const imports: string[] = [];
  for (
    const [, group, one] of bare.matchAll(
      /^import\s*(?:\(([^)]*)\)|(?:[\w.]+\s+)?("[^"]*"|`[^`]*`))/gm,
    )
  ) {
    for (const [name] of (group ?? one!).matchAll(/"[^"\n]*"|`[^`\n]*`/g)) {
      imports.push(name.slice(1, -1));
    }
  }
  return {
    path,
    package: /^\s*package\s+(\w+)/m.exec(bare)?.[1] ?? "main",
    imports,
    main: /^func\s+main\s*\(\s*\)/m.test(bare),
  };
}

/** A source without its comments; texts in it stay. */
function withoutComments(text: string): string {
  return text.replace(
    /"(?:\\.|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])*'|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (part) =>
      part.startsWith("//")
        ? ""
        : part.startsWith("/*")
        ? part.replace(/[^\n]/g, "") || " "
        : part,
  );
}

/** The path of the module that a go.mod declares. */
export function modulePath(goMod: string): string | undefined {
  return /^\s*module\s+"?([^\s"]+)"?/m.exec(goMod)?.[1];
}
