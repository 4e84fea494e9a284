/**
 * What a program that was cut off did: V8's error, with its frames in WebAssembly,
 * becomes the error that the supervisor shows and an exit code.
 *
 * @module
 */

import type { WireError } from "../../../supervisor/wire/guest/wire.ts";
import { Lines } from "./lines.ts";

export interface End {
  error: WireError;
  /** 128 and the number that the signal has on Linux. */
  code: number;
}

interface Frame {
  name: string;
  offset: number;
}

const ABORTED = 134,
  BAD_INSTRUCTION = 132,
  BAD_ARITHMETIC = 136,
  BAD_ADDRESS = 139;
/** How many frames a traceback has. */
const MOST_FRAMES = 30;
/** The C library's functions by which programs end themselves, as they are in frames. */
const ENDS =
  /^(abort|__abort_message|abort_message|std::__\w+::__libcpp_verbose_abort.*|std::__terminate.*|std::terminate\(\)|__assert_fail|raise|core_handler|terminate_handler|__cxa_\w+|__clang_call_terminate|__ubsan_.*|end|demangling_terminate_handler\(\)|undefined_weak:.*)$/;

/**
 * Describes the end of a program; undefined if what was thrown is no trap. The last of
 * what it wrote to standard error has the C and C++ libraries' words about it.
 */
export function describe(
  thrown: unknown,
  module: Uint8Array,
  words: string,
): End | undefined {
  let [name, message, code] = ["", "", 0];
  if (isUncaught(thrown)) {
    return {
      error: {
        name: "Abort",
        message: "an exception was not caught",
        traceback: "",
      },
      code: ABORTED,
    };
  }
  if (!(thrown instanceof Error)) return undefined;
  const frames = framesOf(thrown.stack ?? "");
  if (thrown instanceof RangeError && /call stack/.test(thrown.message)) {
    [name, message, code] = [
      "StackOverflow",
      "the calls are nested too deeply",
      BAD_ADDRESS,
    ];
  } else if (!(thrown instanceof WebAssembly.RuntimeError)) {
    return undefined;
  } else if (
    /out of bounds/.test(thrown.message) && /memory/.test(thrown.message)
  ) {
    [name, message, code] = recursive(frames)
      ? ["StackOverflow", "the calls are nested too deeply", BAD_ADDRESS]
      : ["SegmentationFault", "memory access out of bounds", BAD_ADDRESS];
  } else if (/function|table/.test(thrown.message)) {
    [name, message, code] = [
      "SegmentationFault",
      "a call through a pointer that is no function of this type",
      BAD_ADDRESS,
    ];
  } else if (/divide|remainder|zero/.test(thrown.message)) {
    [name, message, code] = [
      "FloatingPointException",
      thrown.message,
      BAD_ARITHMETIC,
    ];
  } else if (frames.some(({ name }) => name.startsWith("__ubsan_handle_"))) {
    [name, message, code] = checked(frames, words);
  } else if (frames.some((frame) => ENDS.test(frame.name))) {
    [name, message, code] = [...why(frames, words), ABORTED];
  } else {
    [name, message, code] = [
      "IllegalInstruction",
      "a place was reached that the compiler took for unreachable: a check of the C++ library that failed, as of an index, a function that does not return its value, or __builtin_trap()",
      BAD_INSTRUCTION,
    ];
  }
  const lines = new Lines(module);
  const shown: string[] = [];
  for (const { name, offset } of frames) {
    const line = lines.at(offset);
    if (!line && (shown.length === 0 || /^(_start|__\w*main\w*)$/.test(name))) {
      continue;
    }
    shown.push(line ? `${line.file}:${line.line} in ${name}` : `in ${name}`);
  }
  const first = shown.find((line) => line.startsWith("/"));
  const place = /^(.*:\d+) in /.exec(first ?? "")?.[1];
  if (place) message += `, at ${place}`;
  if (shown.length > MOST_FRAMES) {
    shown.splice(MOST_FRAMES - 5, shown.length - MOST_FRAMES, "…");
  }
  return { error: { name, message, traceback: shown.join("\n") }, code };
}

function isUncaught(thrown: unknown): boolean {
  const { Exception } = WebAssembly as unknown as {
    Exception?: new () => unknown;
  };
  return Exception !== undefined && thrown instanceof Exception;
}

/** V8's frames: "    at name (wasm://wasm/12ab:wasm-function[3]:0x1f)". */
function framesOf(stack: string): Frame[] {
  const frames: Frame[] = [];
  const line =
    /^\s+at (?:(.*) \()?wasm:\/\/[^)]*wasm-function\[(\d+)\]:0x([0-9a-f]+)\)?$/gm;
  for (const [, name, index, offset] of stack.matchAll(line)) {
    frames.push({
      name: (name ?? `function ${index}`).replace(/^\w+\.wasm\./, "").replace(
        /^__(original_main|main_argc_argv)$/,
        "main",
      ),
      offset: parseInt(offset!, 16),
    });
  }
  return frames;
}

/** Whether the innermost frames are calls of one another. */
function recursive(frames: Frame[]): boolean {
  const count = new Map<string, number>();
  for (const { name } of frames) count.set(name, (count.get(name) ?? 0) + 1);
  return Math.max(0, ...count.values()) > frames.length / 4 &&
    frames.length > 40;
}

/** The checks' handlers, whose names are the compiler's → how the program ends. */
const CHECKS: [RegExp, string, string, number][] = [
  [
    /divrem/,
    "FloatingPointException",
    "division by zero, or one that overflows",
    BAD_ARITHMETIC,
  ],
  [
    /type_mismatch/,
    "SegmentationFault",
    "a null pointer or a misaligned one",
    BAD_ADDRESS,
  ],
  [/out_of_bounds/, "OutOfBounds", "an index is outside of its array", ABORTED],
  [
    /missing_return/,
    "MissingReturn",
    "a function ended without returning a value",
    ABORTED,
  ],
  [
    /unreachable/,
    "Unreachable",
    "a place was reached that must not be",
    ABORTED,
  ],
  [
    /(add|sub|mul|negate)_overflow/,
    "Overflow",
    "signed integer overflow",
    ABORTED,
  ],
];

function checked(frames: Frame[], words: string): [string, string, number] {
  const handler =
    frames.find(({ name }) => name.startsWith("__ubsan_handle_"))!.name;
  const said = /: runtime error: (.*)$/m.exec(words)?.[1];
  for (const [pattern, name, message, code] of CHECKS) {
    if (pattern.test(handler)) return [name, said ?? message, code];
  }
  return ["UndefinedBehavior", said ?? "a check of -fsanitize failed", ABORTED];
}

/** The name and the message of an end by abort(). */
function why(frames: Frame[], words: string): [string, string] {
  const exception =
    /^libc\+\+abi: terminating due to uncaught exception of type ([^\n]*?)(?:: (.*))?$/ms
      .exec(words);
  if (exception) {
    return [exception[1]!, exception[2]?.trimEnd() ?? "it was not caught"];
  }
  const has = (name: RegExp) => frames.some((frame) => name.test(frame.name));
  const said =
    /^(?:.*Assertion failed:|.*libc\+\+ Hardening assertion|.*runtime error:).*$/m
      .exec(words)?.[0];
  if (has(/assert|verbose_abort|hardening/) && said) return ["Abort", said];
  if (has(/terminate/)) {
    return ["Abort", "std::terminate() was called"];
  }
  if (has(/^(raise|core_handler|terminate_handler)$/)) {
    return ["Abort", "the program raised a signal"];
  }
  return ["Abort", "abort() was called"];
}
