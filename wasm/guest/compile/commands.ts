/**
 * The command lines of LLVM's tools: `cc1`, the compiler proper, and `wasm-ld`, as
 * clang's own driver writes them. The driver itself is not run: it costs a start of
 * the whole module.
 *
 * @module
 */

export type Language = "c" | "c++";

/** What of a compilation a person decides. */
export interface Flags {
  /** "c17", "gnu++23". */
  standard: string;
  /** "-O0" to "-O3", "-Os", "-Oz". */
  optimize: string;
  /** The module says which lines its code comes from. */
  lines: boolean;
  /** The checks of -fsanitize, whose handlers end the program. */
  checks: string;
  /** -D, -U, -I, -W…, -f…, as they go to cc1, in their order. */
  other: string[];
  /** Exceptions of C++, or setjmp: what throws and catches in WebAssembly. */
  unwinding: "exceptions" | "setjmp" | "none";
}

const TRIPLE = "wasm32-unknown-wasip1";

/** The compiler's command line. The output is an object, or with `header` a precompiled header. */
export function cc1(
  language: Language,
  flags: Flags,
  input: string,
  output: string,
  header?: "make" | string,
): string[] {
  const cxx = language === "c++";
  const name = input.slice(input.lastIndexOf("/") + 1);
  const args = [
    "clang",
    "-cc1",
    ...["-triple", TRIPLE],
    header === "make" ? "-emit-pch" : "-emit-obj",
    flags.optimize,
    "-disable-free",
    "-clear-ast-before-backend",
    "-disable-llvm-verifier",
    ...["-main-file-name", name],
    ...["-mrelocation-model", "static"],
    "-mframe-pointer=none",
    "-ffp-contract=on",
    "-fno-rounding-math",
    "-mconstructor-aliases",
    ...["-target-cpu", "generic"],
    "-fvisibility=hidden",
    "-fdebug-compilation-dir=/workspace",
    "-fmacro-prefix-map=/workspace/=",
    ...["-resource-dir", "/usr"],
    ...["-isysroot", "/usr"],
    `-std=${flags.standard}`,
    ...["-ferror-limit", "19"],
    "-fgnuc-version=4.2.1",
    "-fskip-odr-check-in-gmf",
  ];
  if (flags.optimize !== "-O0" && flags.optimize !== "-Oz") {
    args.push("-vectorize-slp");
    if (/[23]$/.test(flags.optimize)) args.push("-vectorize-loops");
  }
  // Of lines the runner tells where a program was cut off (native/lines.ts).
  if (flags.lines) {
    args.push("-debug-info-kind=line-tables-only", "-dwarf-version=4");
  }
  if (flags.checks !== "") args.push(`-fsanitize=${flags.checks}`);
  if (cxx) args.push("-fdeprecated-macro", "-fno-implicit-modules");
  if (flags.unwinding !== "none") {
    args.push(
      ...["-target-feature", "+exception-handling"],
      ...["-target-feature", "+multivalue"],
      ...["-target-feature", "+reference-types"],
      ...["-mllvm", "-wasm-use-legacy-eh=false"],
      ...["-mllvm", "-wasm-enable-sjlj"],
      "-exception-model=wasm",
    );
  }
  if (flags.unwinding === "exceptions") {
    args.push(
      ...["-mllvm", "-wasm-enable-eh"],
      "-fcxx-exceptions",
      "-fexceptions",
    );
  }
  args.push(...flags.other);
  const include = (path: string) => args.push("-internal-isystem", path);
  if (cxx) {
    include("/usr/include/wasm32-wasip1/c++/v1");
    include("/usr/include/c++/v1");
  }
  include("/usr/include");
  include("/usr/include/wasm32-wasip1");
  if (header === "make") args.push("-fpch-instantiate-templates");
  else if (header !== undefined) {
    args.push("-include-pch", header);
  }
  args.push(
    "-o",
    output,
    "-x",
    header === "make" ? "c++-header" : language,
    input,
  );
  return args;
}

/** The linker's command line. */
export function link(
  language: Language,
  objects: string[],
  output: string,
  options: { strip: boolean },
): string[] {
  const args = [
    "wasm-ld",
    ...["-m", "wasm32"],
    `-L/usr/lib/${TRIPLE}`,
    "-L/usr/lib/wasm32-wasip1",
    "/usr/lib/wasm32-wasip1/crt1-command.o",
    ...objects,
    ...["-u", "__rillbox_start"],
    "/runtime/librillbox.a",
    // A stack as Linux gives it, below the data, so that its end is a trap.
    "--stack-first",
    ...["-z", `stack-size=${8 << 20}`],
    // The C library has a pthread_create that fails; here it is an error of the linker's.
    "--wrap=pthread_create",
    "--wrap=thrd_create",
  ];
  if (options.strip) args.push("--strip-all");
  if (language === "c++") args.push("--wrap=__main_void", "/runtime/libcxx.a");
  for (const emulated of ["signal", "process-clocks", "mman", "getpid"]) {
    args.push(`-lwasi-emulated-${emulated}`);
  }
  args.push(
    "-lsetjmp",
    "-lc-printscan-long-double",
    "-lc",
    `/usr/lib/${TRIPLE}/libclang_rt.builtins.a`,
  );
  args.push("-o", output);
  return args;
}

/** Macros of every program: the parts of the C library that WASI gives only on request. */
export const EVERYDAY = ["SIGNAL", "PROCESS_CLOCKS", "MMAN", "GETPID"]
  .map((name) => `-D_WASI_EMULATED_${name}`);
