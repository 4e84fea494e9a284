/**
 * Builds C++'s standard library for WebAssembly, with exceptions: libc++, libc++abi and
 * libunwind become one archive, by the very clang that programs are compiled with.
 *
 * Arguments: the directory of @yowasp/clang, that of ziglang's `lib`, the directory
 * for the archives, and, if it is wanted alone, the name of one.
 *
 * @module
 */

import { cc1, type Flags } from "../../wasm/guest/compile/commands.ts";
import { indexTar } from "../../wasm/guest/compile/tar.ts";
import { runTool, Tree } from "../../wasm/guest/compile/tool.ts";

/** Of libc++'s sources those that are for other systems, or for a library of its own. */
const LEFT_OUT = /^(support|experimental|pstl)\/|int128_builtins/;
const ABI =
  "abort_message cxa_aux_runtime cxa_default_handlers cxa_demangle cxa_exception " +
  "cxa_exception_storage cxa_guard cxa_handlers cxa_personality cxa_thread_atexit cxa_vector " +
  "cxa_virtual fallback_malloc private_typeinfo stdlib_exception stdlib_new_delete " +
  "stdlib_stdexcept stdlib_typeinfo";

const [clang, zig, output, only] = Deno.args as [
  string,
  string,
  string,
  string?,
];
const wide =
  "-D_LIBCPP_BUILDING_LIBRARY -D_LIBCPP_REMOVE_TRANSITIVE_INCLUDES " +
  "-DLIBCXX_BUILDING_LIBCXXABI -DLIBC_NAMESPACE=__llvm_libc_common_utils " +
  "-D_LIBCXXABI_BUILDING_LIBRARY -DNDEBUG -D_GNU_SOURCE " +
  "-D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_MMAN " +
  "-I/src/libcxx/src -I/src/libcxx/libc -I/src/libcxxabi/include -I/src/libcxxabi/src " +
  "-I/src/libunwind/include -ffunction-sections -fdata-sections -fdeclspec -w " +
  "-D_LIBUNWIND_HIDE_SYMBOLS -D_LIBUNWIND_IS_NATIVE_ONLY -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_FAST";
const flags: Flags = {
  standard: "c++26",
  optimize: "-O2",
  lines: false,
  checks: "",
  unwinding: "exceptions",
  other: wide.split(" "),
};

const archive = Deno.readFileSync(`${clang}/gen/llvm-resources.tar`);
const sysroot = indexTar(
  archive.length,
  (at, n) => archive.subarray(at, at + n),
);
const tree = new Tree();
for (const [path, [at, length]] of Object.entries(sysroot)) {
  tree.set(`/usr/${path}`, archive.subarray(at, at + length));
}
const sources: string[] = [];
function add(from: string, to: string) {
  for (const entry of Deno.readDirSync(from)) {
    const path = `${to}/${entry.name}`;
    if (entry.isDirectory) add(`${from}/${entry.name}`, path);
    else tree.set(path, Deno.readFileSync(`${from}/${entry.name}`));
    const name = path.replace("/src/libcxx/src/", "");
    if (path !== name && name.endsWith(".cpp") && !LEFT_OUT.test(name)) {
      sources.push(path);
    }
  }
}
for (const library of ["libcxx/src", "libcxx/libc", "libcxxabi", "libunwind"]) {
  add(`${zig}/${library}`, `/src/${library}`);
}
sources.push(...ABI.split(" ").map((name) => `/src/libcxxabi/src/${name}.cpp`));
sources.push("/src/libunwind/src/Unwind-wasm.c");
sources.sort();
// WASI has no copy_file_range; libc++ then copies by streams.
tree.set(
  "/src/wasi.h",
  new TextEncoder().encode(`
#include <errno.h>
static inline long copy_file_range(int, long long *, int, long long *, unsigned long, unsigned) {
  errno = EINVAL;
  return -1;
}
`),
);
for (const name of ["start.c", "checks.c", "uncaught.cpp"]) {
  tree.set(`/src/${name}`, Deno.readFileSync(new URL(name, import.meta.url)));
}

const llvm = await WebAssembly.compile(
  Deno.readFileSync(`${clang}/gen/llvm.core.wasm`),
);
const say = (bytes: Uint8Array) => void Deno.stderr.writeSync(bytes);
function run(args: string[]) {
  const code = runTool(llvm, args, tree, say);
  if (code !== 0) throw new Error(`${args.join(" ")}: exit code ${code}`);
}
/** Compiles a source, and gives the object's path. */
function compile(source: string): string {
  const object = "/obj/" +
    source.replace(/^\/src\/|src\/|\.\w+$/g, "").replaceAll("/", "-") + ".o";
  const cxx = source.endsWith(".cpp");
  const args = cc1(
    cxx ? "c++" : "c",
    cxx ? flags : {
      ...flags,
      standard: "c17",
      unwinding: source.includes("unwind") ? "exceptions" : "none",
    },
    source,
    object,
  );
  if (source.endsWith("/operations.cpp")) args.push("-include", "/src/wasi.h");
  run(args);
  return object;
}
function archiveOf(name: string, sources: string[]) {
  const objects = sources.map(compile);
  tree.delete("/out.a");
  run(["llvm", "ar", "rcsD", "/out.a", ...objects]);
  Deno.writeFileSync(`${output}/${name}`, tree.get("/out.a")!);
}
if (only !== "libcxx.a") {
  archiveOf("librillbox.a", ["/src/start.c", "/src/checks.c"]);
}
if (only !== "librillbox.a") {
  archiveOf("libcxx.a", [...sources, "/src/uncaught.cpp"]);
}
