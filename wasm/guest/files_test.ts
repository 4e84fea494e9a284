import { FileError, type Files, makeFiles } from "./files.ts";

function assertEquals(actual: unknown, expected: unknown): void {
  const [a, b] = [Deno.inspect(actual), Deno.inspect(expected)];
  if (a !== b) throw new Error(`Expected ${b}, got ${a}`);
}

/** The code of the FileError that something throws. */
function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof FileError) return error.code;
    throw error;
  }
  return "nothing";
}

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const names = (files: Files, path: string) =>
  files.readDir(path).map(({ name }) => name).sort();

/** A tree whose workspace is a new directory, and one that is granted. */
function withFiles(
  test: (files: Files, workspace: string, granted: string) => void,
): void {
  const at = Deno.realPathSync(Deno.makeTempDirSync());
  const workspace = `${at}/w`, granted = `${at}/granted`;
  Deno.mkdirSync(workspace);
  Deno.mkdirSync(granted);
  const start = {
    parts: {},
    workspace,
    readOnly: false,
    granted: [granted, `${at}/not-there`],
    session: false,
  };
  try {
    test(makeFiles(start), workspace, granted);
  } finally {
    Deno.removeSync(at, { recursive: true });
  }
}

Deno.test("files of the workspace are those of the machine", () => {
  withFiles((files, workspace, granted) => {
    Deno.writeTextFileSync(`${workspace}/in.txt`, "in");
    assertEquals(decode(files.readFile("/workspace/in.txt")), "in");
    files.writeFile("/workspace/out é.txt", encode("out"));
    assertEquals(Deno.readTextFileSync(`${workspace}/out é.txt`), "out");
    files.mkdir("/workspace/d");
    files.writeFile("/workspace/./d/../d//x", encode("x"));
    assertEquals(names(files, "/workspace"), ["d", "in.txt", "out é.txt"]);
    files.writeFile(`${granted}/y`, encode("y"));
    assertEquals(Deno.readTextFileSync(`${granted}/y`), "y");
    assertEquals(files.hostPath("/workspace/d/x"), `${workspace}/d/x`);
    assertEquals(files.hostPath(`${granted}/y`), `${granted}/y`);
    assertEquals(files.hostPath("/tmp"), undefined);
    assertEquals(files.hostPath("/workspace/none"), undefined);
    files.rename("/workspace/d/x", `${granted}/x`);
    assertEquals(decode(files.readFile(`${granted}/x`)), "x");
    files.rmdir("/workspace/d");
    files.unlink("/workspace/in.txt");
    assertEquals(names(files, "/workspace"), ["out é.txt"]);
  });
});

Deno.test("files in memory do what files of the machine do", () => {
  withFiles((files) => {
    for (const at of ["/workspace/t", "/tmp/t"]) {
      files.mkdir(at);
      const told = [
        codeOf(() => files.mkdir(at)),
        codeOf(() => files.readFile(`${at}/none`)),
        codeOf(() => files.readFile(at)),
        codeOf(() => files.readDir(`${at}/none`)),
        codeOf(() => files.writeFile(`${at}/none/x`, encode(""))),
        codeOf(() => files.unlink(at)),
        codeOf(() => files.unlink(`${at}/none`)),
        codeOf(() => files.stat(`${at}/none`)),
        codeOf(() => files.rename(`${at}/none`, `${at}/x`)),
        codeOf(() => files.rename(at, `${at}/x`)),
        codeOf(() => files.readLink(at)),
        codeOf(() => files.stat("")),
        codeOf(() => files.stat(`${at}/${"n".repeat(256)}`)),
        codeOf(() => files.stat(`${at}/a\0b`)),
      ];
      assertEquals(
        told.join(" "),
        "EEXIST ENOENT EISDIR ENOENT ENOENT EISDIR ENOENT ENOENT ENOENT EINVAL EINVAL ENOENT ENAMETOOLONG EINVAL",
      );
      files.writeFile(`${at}/f`, encode("0123456789"));
      files.chmod(`${at}/f`, 0o600);
      files.setTimes(`${at}/f`, 5000, 7000);
      const { kind, size, mode, atime, mtime, nlink } = files.stat(`${at}/f`);
      assertEquals(
        { kind, size, mode, atime, mtime, nlink },
        {
          kind: "file",
          size: 10,
          mode: 0o600,
          atime: 5000,
          mtime: 7000,
          nlink: 1,
        },
      );
      assertEquals(
        [
          codeOf(() => files.stat(`${at}/f/`)),
          codeOf(() => files.stat(`${at}/f/x`)),
          codeOf(() => files.readDir(`${at}/f`)),
          codeOf(() => files.rmdir(`${at}/f`)),
          codeOf(() => files.rmdir(at)),
          codeOf(() => files.mkdir(`${at}/f`)),
          codeOf(() =>
            files.open(`${at}/f`, {
              write: true,
              create: true,
              exclusive: true,
            })
          ),
          codeOf(() => files.rename(`${at}/f`, at)),
          codeOf(() => files.rename(at, `${at}/f`)),
        ].join(" "),
        "ENOTDIR ENOTDIR ENOTDIR ENOTDIR ENOTEMPTY EEXIST EEXIST EISDIR EINVAL",
      );
      const file = files.open(`${at}/f`, { read: true, write: true });
      assertEquals(file.write(encode("ab"), 12), 2);
      const buffer = new Uint8Array(20);
      assertEquals(file.read(buffer, 0), 14);
      assertEquals(decode(buffer.subarray(0, 14)), "0123456789\0\0ab");
      file.truncate(3);
      file.truncate(5);
      assertEquals(file.read(buffer, 0), 5);
      assertEquals(decode(buffer.subarray(0, 5)), "012\0\0");
      assertEquals(file.read(buffer, 100), 0);
      files.unlink(`${at}/f`);
      assertEquals(file.stat().nlink, 0);
      assertEquals(file.read(buffer, 0), 5);
      file.close();
      files.writeFile(`${at}/a`, encode("a"));
      files.writeFile(`${at}/b`, encode("b"));
      files.rename(`${at}/a`, `${at}/b`);
      assertEquals(decode(files.readFile(`${at}/b`)), "a");
      files.unlink(`${at}/b`);
      files.rmdir(at);
      assertEquals(codeOf(() => files.stat(at)), "ENOENT");
    }
    assertEquals(codeOf(() => files.rmdir("/workspace")), "EBUSY");
    files.writeFile("/tmp/x", encode("x"));
    assertEquals(codeOf(() => files.rename("/tmp/x", "/workspace/x")), "EXDEV");
    assertEquals(names(files, "/").includes("workspace"), true);
  });
});

Deno.test("appending writes at the end that a file has by then", () => {
  withFiles((files) => {
    for (const at of ["/workspace/log", "/tmp/log"]) {
      files.writeFile(at, encode("1"));
      const a = files.open(at, { append: true });
      const b = files.open(at, { append: true, read: true });
      a.write(encode("2"), 0);
      b.write(encode("3"), 0);
      a.write(encode("4"), 0);
      assertEquals(decode(files.readFile(at)), "1234");
      assertEquals(b.read(new Uint8Array(9), 1), 3);
      a.close();
      b.close();
      files.open(at, { append: true, truncate: true }).close();
      assertEquals(files.stat(at).size, 0);
    }
  });
});

Deno.test("appending to a file in memory takes no longer the longer it is", () => {
  withFiles((files) => {
    const file = files.open("/tmp/long", { append: true, create: true });
    const piece = new Uint8Array(16);
    const begun = performance.now();
    for (let i = 0; i < 1 << 20; i++) file.write(piece, 0);
    assertEquals(files.stat("/tmp/long").size, 16 << 20);
    // Where each copies the file, this takes an hour.
    if (performance.now() - begun > 20_000) {
      throw new Error("Appending is slow");
    }
  });
});

Deno.test("a file in memory has a bound", () => {
  withFiles((files) => {
    const file = files.open("/tmp/large", { write: true, create: true });
    assertEquals(codeOf(() => file.truncate(2 ** 40)), "EFBIG");
    assertEquals(codeOf(() => file.write(encode("x"), 2 ** 52)), "EFBIG");
    assertEquals(file.stat().size, 0);
  });
});

Deno.test("files that are laid over the tree are found, not listed, not written, and give way", () => {
  withFiles((files, workspace) => {
    files.overlay("/workspace/main.rb", encode("laid"));
    files.overlay("/workspace/lib/a.rb", encode("a"));
    assertEquals(decode(files.readFile("/workspace/main.rb")), "laid");
    assertEquals(decode(files.readFile("/workspace/lib/../lib/a.rb")), "a");
    assertEquals(files.stat("/workspace/lib").kind, "directory");
    assertEquals(names(files, "/workspace"), []);
    assertEquals(names(files, "/workspace/lib"), []);
    assertEquals(
      [
        codeOf(() => files.open("/workspace/main.rb", { write: true })),
        codeOf(() => files.unlink("/workspace/main.rb")),
        codeOf(() => files.rename("/workspace/main.rb", "/workspace/b")),
      ].join(" "),
      "EROFS EROFS EROFS",
    );
    files.writeFile("/workspace/main.rb", encode("written"));
    assertEquals(Deno.readTextFileSync(`${workspace}/main.rb`), "written");
    assertEquals(decode(files.readFile("/workspace/main.rb")), "written");
    Deno.removeSync(`${workspace}/main.rb`);
    assertEquals(decode(files.readFile("/workspace/main.rb")), "laid");
  });
});

Deno.test("links are followed within the tree", () => {
  withFiles((files, workspace) => {
    const outside = `${workspace}/../secret`;
    Deno.writeTextFileSync(outside, "secret");
    Deno.mkdirSync(`${workspace}/d`);
    Deno.writeTextFileSync(`${workspace}/d/f`, "f");
    Deno.symlinkSync("../d/f", `${workspace}/d/relative`);
    Deno.symlinkSync("/workspace/d", `${workspace}/absolute`);
    Deno.symlinkSync(Deno.realPathSync(outside), `${workspace}/out`);
    Deno.symlinkSync("../secret", `${workspace}/up`);
    Deno.symlinkSync("/etc", `${workspace}/etc`);
    Deno.symlinkSync("loop", `${workspace}/loop`);
    const read = (path: string) => decode(files.readFile(path));
    assertEquals(read("/workspace/d/relative"), "f");
    assertEquals(read("/workspace/absolute/f"), "f");
    assertEquals(read("/workspace/absolute/../d/f"), "f");
    assertEquals(
      files.realPath("/workspace/absolute/relative"),
      "/workspace/d/f",
    );
    assertEquals(codeOf(() => read("/workspace/out")), "ENOENT");
    assertEquals(codeOf(() => read("/workspace/up")), "ENOENT");
    // It is a file in memory of that name that is written.
    files.writeFile("/workspace/out", encode("x"));
    assertEquals(read("/workspace/out"), "x");
    assertEquals(Deno.readTextFileSync(outside), "secret");
    assertEquals(read("/workspace/etc/passwd"), read("/etc/passwd"));
    assertEquals(codeOf(() => read("/workspace/loop")), "ELOOP");
    assertEquals(files.stat("/workspace/out", false).kind, "symlink");
    assertEquals(files.readLink("/workspace/up"), "../secret");
    assertEquals(
      codeOf(() =>
        files.open("/workspace/d/relative", { read: true, follow: false })
      ),
      "ELOOP",
    );
    files.unlink("/workspace/absolute");
    assertEquals(read("/workspace/d/f"), "f");
    // And links in memory.
    files.symlink("/workspace/d", "/tmp/to");
    assertEquals(read("/tmp/to/f"), "f");
    files.symlink("../../../../../..", "/tmp/root");
    assertEquals(names(files, "/tmp/root"), names(files, "/"));
  });
});

Deno.test("devices", () => {
  withFiles((files) => {
    const buffer = new Uint8Array(100_000).fill(7);
    const open = (name: string) =>
      files.open(`/dev/${name}`, { read: true, write: true });
    assertEquals(open("null").read(buffer, 0), 0);
    assertEquals(open("null").write(buffer, 0), 100_000);
    assertEquals(open("zero").read(buffer, 0), 100_000);
    assertEquals(buffer.every((byte) => byte === 0), true);
    assertEquals(open("urandom").read(buffer, 0), 100_000);
    assertEquals(buffer.subarray(70_000).some((byte) => byte !== 0), true);
    assertEquals(codeOf(() => open("full").write(buffer, 0)), "ENOSPC");
    assertEquals([open("stdin").standard, open("fd/2").standard], [0, 2]);
    assertEquals(files.stat("/dev/null").kind, "device");
  });
});
