import { type EmscriptenFS, mountHost } from "./hostfs.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

// deno-lint-ignore no-explicit-any
type Any = any;

class ErrnoError extends Error {
  constructor(readonly errno: number) {
    super(String(errno));
  }
}

const ENOENT = 44, EACCES = 2;

/** What Emscripten does with what is mounted, as far as files are read by it. */
function mounted(directory: string, memory: Record<string, string>) {
  let root: Any, id = 0;
  const asked: [string, boolean][] = [];
  const fs = {
    ErrnoError,
    isDir: (mode: number) => (mode & 0o170000) === 0o040000,
    isFile: (mode: number) => (mode & 0o170000) === 0o100000,
    createNode: (parent: Any, name: string, mode: number) => ({
      id: ++id,
      parent,
      name,
      mode,
    }),
    hashRemoveNode() {},
    mkdirTree() {},
    chdir() {},
    mount(type: Any, opts: Any) {
      root = type.mount({ opts });
    },
  };
  mountHost(fs as unknown as EmscriptenFS, directory, [], (path, there) => {
    asked.push([path, there]);
    const text = memory[path];
    return text !== undefined && (!there || path === "/workspace/own.txt")
      ? new TextEncoder().encode(text)
      : undefined;
  });
  const find = (name: string) => root.node_ops.lookup(root, name);
  return {
    asked,
    names: () => root.node_ops.readdir(root).sort(),
    stat: (name: string) => root.node_ops.getattr(find(name)),
    read(name: string, flags = 0, at = 0): string {
      const node = find(name);
      const stream = { node, flags, position: 0, shared: {} as Any };
      node.stream_ops.open(stream);
      const buffer = new Uint8Array(100);
      const size = node.stream_ops.getattr(stream).size;
      assertEquals(node.stream_ops.llseek(stream, 0, 2), size);
      const n = node.stream_ops.read(stream, buffer, 0, 100, at);
      node.stream_ops.close(stream);
      return new TextDecoder().decode(buffer.subarray(0, n));
    },
  };
}

function errnoOf(call: () => unknown): number | undefined {
  try {
    call();
  } catch (error) {
    return (error as ErrnoError).errno;
  }
}

Deno.test("files in memory are found where the machine has none, and are not listed", () => {
  const directory = Deno.makeTempDirSync();
  try {
    Deno.writeTextFileSync(`${directory}/both.txt`, "the machine's");
    Deno.writeTextFileSync(`${directory}/own.txt`, "another");
    const fs = mounted(directory, {
      "/workspace/only.txt": "in memory",
      "/workspace/both.txt": "in memory too",
      "/workspace/own.txt": "the program",
    });
    assertEquals(fs.names(), [".", "..", "both.txt", "own.txt"]);
    assertEquals(fs.read("only.txt"), "in memory");
    assertEquals(fs.read("only.txt", 0, 3), "memory");
    assertEquals(fs.read("only.txt", 0, 1000), "");
    assertEquals(fs.stat("only.txt").size, 9);
    assertEquals(fs.read("both.txt"), "the machine's");
    assertEquals(fs.read("own.txt"), "the program");
    assertEquals(errnoOf(() => fs.read("none.txt")), ENOENT);
    assertEquals(errnoOf(() => fs.read("only.txt", 2)), EACCES);
    assertEquals(fs.asked[0], ["/workspace/only.txt", false]);
    Deno.writeTextFileSync(`${directory}/only.txt`, "now there");
    assertEquals(fs.read("only.txt"), "now there");
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
});
