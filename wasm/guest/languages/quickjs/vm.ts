/**
 * QuickJS's own functions, as they come out of its WebAssembly module, become a few
 * that take and give the host's values. Nothing of the host is visible to a guest but
 * the one function that `native` makes, whose arguments and results are texts,
 * numbers, booleans and bytes.
 *
 * @module
 */

/** What crosses from one JavaScript to the other. */
export type Plain = string | number | boolean | undefined | Uint8Array;

/** A value of the guest's: the address of it. */
export type Handle = number;

/** QuickJS's flags for evaluating (quickjs.h). */
export const MODULE = 1, COMPILE_ONLY = 32, ASYNC = 128;

/** How deep the guest's calls may nest, in bytes of the module's stack, of which there are 5 MiB; V8's own takes about three times that, which --stack-size has to allow. */
const STACK = 1 << 20;

/** The guest threw; the handle is what it threw. */
export class Thrown extends Error {
  constructor(readonly handle: Handle) {
    super("the guest threw");
  }
}

/** What the module exports: numbers in, numbers out. */
// deno-lint-ignore no-explicit-any
type Module = any;

export interface Callbacks {
  native(...args: Plain[]): Plain;
  /** The name of a module that another one names. */
  resolve(from: string, name: string): string;
  load(name: string): string;
}

export class VM {
  #m: Module;
  #runtime: number;
  #context: number;
  #callbacks: Callbacks;
  #encode = new TextEncoder();
  #decode = new TextDecoder();
  /** What a callback threw that must end the program, and not be caught by it. */
  #host: { thrown: unknown } | undefined;

  constructor(
    module: Module,
    callbacks: Callbacks,
    isFatal: (e: unknown) => boolean,
  ) {
    this.#m = module;
    this.#callbacks = callbacks;
    module.callbacks = {
      callFunction: (
        _: unknown,
        _c: number,
        _t: number,
        n: number,
        argv: number,
      ) =>
        this.#guard(isFatal, () => {
          const args: Plain[] = [];
          for (let i = 0; i < n; i++) {
            args.push(
              this.plain(module._QTS_ArgvGetJSValueConstPointer(argv, i)),
            );
          }
          return this.handle(this.#callbacks.native(...args));
        }),
      normalizeModule: (
        _: unknown,
        _r: number,
        _c: number,
        from: string,
        name: string,
      ) =>
        this.#guard(
          isFatal,
          () => this.#text(this.#callbacks.resolve(from, name))[0],
          0,
        ),
      loadModuleSource: (_: unknown, _r: number, _c: number, name: string) =>
        this.#guard(
          isFatal,
          () => this.#text(this.#callbacks.load(name))[0],
          0,
        ),
      shouldInterrupt: () => 0,
      freeHostRef() {},
    };
    this.#runtime = module._QTS_NewRuntime();
    this.#context = module._QTS_NewContext(this.#runtime, 0);
    module._QTS_RuntimeSetMaxStackSize(this.#runtime, STACK);
    module._QTS_RuntimeEnableModuleLoader(this.#runtime, 1);
  }

  /** The function of the guest's that calls back. */
  native(): Handle {
    const [name] = this.#text("native");
    const made = this.#m._QTS_NewFunction(this.#context, name, 0, 0, 1);
    this.#m._free(name);
    return made;
  }

  /** Evaluates a text; throws `Thrown`. */
  eval(code: string, file: string, flags: number): Handle {
    const [text, size] = this.#text(code);
    const [name] = this.#text(file);
    try {
      return this.#result(
        this.#m._QTS_Eval(this.#context, text, size, name, 0, flags),
      );
    } finally {
      this.#m._free(text);
      this.#m._free(name);
    }
  }

  /** Calls a function of the guest's; throws `Thrown`. */
  call(fn: Handle, ...args: Handle[]): Handle {
    const argv = this.#m._malloc(4 * args.length + 4);
    new Uint32Array(this.#m.HEAPU8.buffer, argv, args.length).set(args);
    const self = this.#m._QTS_GetUndefined();
    try {
      return this.#result(
        this.#m._QTS_Call(this.#context, fn, self, args.length, argv),
      );
    } finally {
      this.#m._free(argv);
    }
  }

  /** Runs what is queued of promises; throws `Thrown`. */
  runJobs(): void {
    const out = this.#m._malloc(4);
    try {
      while (this.#m._QTS_IsJobPending(this.#runtime)) {
        this.free(
          this.#result(this.#m._QTS_ExecutePendingJob(this.#runtime, -1, out)),
        );
      }
    } finally {
      this.#m._free(out);
    }
  }

  /** A promise's state, or undefined of what is none. */
  promise(handle: Handle): "pending" | "fulfilled" | "rejected" | undefined {
    const state = this.#m._QTS_PromiseState(this.#context, handle);
    return (["pending", "fulfilled", "rejected"] as const)[state];
  }

  /** What a promise was settled with. */
  settled(promise: Handle): Handle {
    return this.#m._QTS_PromiseResult(this.#context, promise);
  }

  property(object: Handle, name: string): Handle {
    const key = this.handle(name);
    const value = this.#m._QTS_GetProp(this.#context, object, key);
    this.free(key);
    return this.#result(value);
  }

  free(handle: Handle): void {
    this.#m._QTS_FreeValuePointer(this.#context, handle);
  }

  /** The guest's value for one of the host's. */
  handle(value: Plain): Handle {
    const m = this.#m;
    switch (typeof value) {
      case "number":
        return m._QTS_NewFloat64(this.#context, value);
      case "boolean":
        return m._QTS_DupValuePointer(
          this.#context,
          value ? m._QTS_GetTrue() : m._QTS_GetFalse(),
        );
      case "string": {
        const [text] = this.#text(value);
        const made = m._QTS_NewString(this.#context, text);
        m._free(text);
        return made;
      }
      case "undefined":
        return m._QTS_DupValuePointer(this.#context, m._QTS_GetUndefined());
    }
    const bytes = m._malloc(value.length + 1); // QuickJS frees it
    m.HEAPU8.set(value, bytes);
    return m._QTS_NewArrayBuffer(this.#context, bytes, value.length);
  }

  /** The host's value for one of the guest's. */
  plain(handle: Handle): Plain {
    const m = this.#m;
    const kind = m._QTS_Typeof(this.#context, handle);
    const type = this.#string(kind);
    m._free(kind);
    switch (type) {
      case "number":
      case "boolean": {
        const number = m._QTS_GetFloat64(this.#context, handle);
        return type === "boolean" ? number !== 0 : number;
      }
      case "string": {
        const text = m._QTS_GetString(this.#context, handle);
        const string = this.#string(text);
        m._QTS_FreeCString(this.#context, text);
        return string;
      }
      case "object": {
        const length = m._QTS_GetArrayBufferLength(this.#context, handle);
        if (length < 0) return undefined;
        const bytes = m._QTS_GetArrayBuffer(this.#context, handle);
        const copy = m.HEAPU8.slice(bytes, bytes + length);
        m._free(bytes); // of which QuickJS made a copy
        return copy;
      }
    }
    return undefined;
  }

  #result(handle: Handle): Handle {
    if (this.#host !== undefined) {
      const { thrown } = this.#host;
      this.#host = undefined;
      throw thrown;
    }
    const error = this.#m._QTS_ResolveException(this.#context, handle);
    if (error === 0) return handle;
    this.free(handle);
    throw new Thrown(error);
  }

  /** Calls the host; what it throws becomes the guest's error. */
  #guard(
    isFatal: (e: unknown) => boolean,
    call: () => number,
    failed?: number,
  ): number {
    try {
      return call();
    } catch (thrown) {
      if (isFatal(thrown)) throw thrown; // it unwinds the guest
      const error = this.#m._QTS_NewError(this.#context);
      const { message, code } = thrown as { message?: string; code?: string };
      this.#set(error, "message", String(message));
      if (code !== undefined) this.#set(error, "code", code);
      const exception = this.#m._QTS_Throw(this.#context, error);
      this.free(error);
      return failed ?? exception;
    }
  }

  #set(object: Handle, name: string, value: string): void {
    const [key, text] = [this.handle(name), this.handle(value)];
    this.#m._QTS_SetProp(this.#context, object, key, text);
    this.free(key);
    this.free(text);
  }

  /** Copies a text into the module's memory, with a NUL behind it. */
  #text(text: string): [at: number, size: number] {
    const bytes = this.#encode.encode(text);
    const at = this.#m._malloc(bytes.length + 1);
    if (at === 0) throw new RangeError("out of memory");
    this.#m.HEAPU8.set(bytes, at);
    this.#m.HEAPU8[at + bytes.length] = 0;
    return [at, bytes.length];
  }

  #string(at: number): string {
    const memory: Uint8Array = this.#m.HEAPU8;
    return this.#decode.decode(memory.subarray(at, memory.indexOf(0, at)));
  }
}
