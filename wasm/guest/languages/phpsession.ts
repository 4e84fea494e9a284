/**
 * PHP by the functions of its own C interface for programs that embed it: what takes
 * long is done before the script is known, and a session's scripts run one after
 * another in one request, where what one defines is there for the next.
 *
 * @module
 */

/** Where fields of C's structures are, in bytes: sapi_module_struct in main/SAPI.h. */
const SAPI_NAME = 0, SAPI_INI = 80;
/** More than a zend_file_handle has. */
const HANDLE = 256;
/** Where in the globals the exit status is looked for. */
const GLOBALS = 8192;
/** Exit codes that nothing else in the globals is. */
const PROBES = [0x5bd1e995, 0x1b873593];

/** What the command line program has, and a program that embeds PHP does not. */
const PRELUDE = `
define('STDIN', fopen('php://stdin', 'r'));
define('STDOUT', fopen('php://stdout', 'w'));
define('STDERR', fopen('php://stderr', 'w'));
function readline(?string $prompt = null): string|false {
    fwrite(STDOUT, $prompt ?? '');
    $line = fgets(STDIN);
    return $line === false ? false : rtrim($line, "\\r\\n");
}
function readline_add_history(string $prompt): bool { return true; }
`;

/** A script that is read and compiled ahead. It defines nothing that has a name. */
export const WARM = `<?php
$each = function (int $most, array $list = [1, 'k' => 2]) use (&$argv): ?string {
    foreach ($list as $key => $value) {
        if ($value > $most && !isset($argv[$key])) return "$key {$value}" . count($list);
    }
    while ($most++ < 3) $all[] = fn($x) => $x * 2;
    return null;
};
try {
    echo $each(1) ?? 'none', "\\n";
} catch (Exception $error) {
    printf('%s', $error->getMessage());
}
`;

const promising = (WebAssembly as unknown as {
  promising(f: unknown): (...args: number[]) => Promise<number>;
}).promising;

const encoder = new TextEncoder();

export class Session {
  #exports: WebAssembly.Exports;
  /** Where the exit status is in the memory. */
  #status = 0;

  private constructor(exports: WebAssembly.Exports) {
    this.#exports = exports;
  }

  /** Begins a request, with the settings of a file; another file has WARM. */
  static async begin(
    exports: WebAssembly.Exports,
    ini: string,
    warm: string,
  ): Promise<Session> {
    const session = new Session(exports);
    const sapi = session.#address("php_embed_module");
    // PHP writes errors to standard error only for the command line.
    session.#set(sapi + SAPI_NAME, session.#text("cli"));
    session.#set(sapi + SAPI_INI, session.#text(ini));
    if (await session.#call("php_embed_init", 0, 0) !== 0) {
      throw new Error("PHP does not begin");
    }
    await session.#evaluate(PRELUDE);
    await session.#findStatus();
    await session.#compile(warm);
    return session;
  }

  /** Has V8 compile what each script needs: PHP reads and compiles one. */
  async #compile(path: string): Promise<void> {
    await this.#withFile(path, (file) => this.#call("php_lint_script", file));
  }

  /** Tells scripts of their file and arguments, as the command line program does. */
  async setArguments(file: string, args: string[]): Promise<void> {
    const list = [file, ...args].map(quoted).join(",");
    const names = [
      "PHP_SELF",
      "SCRIPT_NAME",
      "SCRIPT_FILENAME",
      "PATH_TRANSLATED",
    ]
      .map((name) => `$_SERVER['${name}'] = ${quoted(file)};`).join("");
    await this.#evaluate(
      `$argv = [${list}]; $argc = count($argv); ${names}
       $_SERVER['argv'] = $argv; $_SERVER['argc'] = $argc;`,
    );
  }

  /** Runs the script at a path in the request, and gives its exit code. */
  async run(path: string): Promise<number> {
    this.#set(this.#status, 0);
    await this.#withFile(
      path,
      (file) => this.#call("php_execute_script", file),
    );
    return this.#get(this.#status);
  }

  /** Sends what scripts wrote to buffers of theirs. */
  async flush(): Promise<void> {
    await this.#call("php_output_end_all");
  }

  /** Ends the request: what is to run at the end does, and gives the exit code. */
  async end(): Promise<number> {
    await this.#call("php_request_shutdown", 0);
    return this.#get(this.#status);
  }

  /** Has PHP write, as JSON to a file, which names there are that begin so. */
  async writeNames(begun: string, path: string): Promise<void> {
    await this.#evaluate(
      `(function ($begun, $path, $variables) {
         $names = array_merge(
           array_map(fn($name) => "\\$$name", $variables),
           ...array_values(get_defined_functions()),
         );
         array_push($names, ...get_declared_classes());
         $names = array_filter($names, fn($name) => str_starts_with($name, $begun));
         sort($names);
         file_put_contents($path, json_encode(array_slice($names, 0, 500)));
       })(${quoted(begun)}, ${quoted(path)}, array_keys(get_defined_vars()));`,
    );
  }

  async #withFile(
    path: string,
    use: (file: number) => Promise<unknown>,
  ): Promise<void> {
    const file = this.#malloc(HANDLE), name = this.#text(path);
    await this.#call("zend_stream_init_filename", file, name);
    await use(file);
    await this.#call("zend_destroy_file_handle", file);
    await this.#call("free", file);
    await this.#call("free", name);
  }

  async #evaluate(code: string): Promise<void> {
    const text = this.#text(code), length = encoder.encode(code).length;
    const name = this.#text("prelude");
    await this.#call("zend_eval_stringl_ex", text, length, 0, name, 1);
    await this.#call("free", text);
    await this.#call("free", name);
  }

  /**
   * Finds where the exit status is, which C has no function for: exits with two codes
   * are seen at one place.
   */
  async #findStatus(): Promise<void> {
    const globals = this.#address("executor_globals");
    let places: number[] | undefined;
    for (const probe of PROBES) {
      await this.#evaluate(`exit(${probe});`);
      const seen: number[] = [];
      for (let at = globals; at < globals + GLOBALS; at += 4) {
        if (this.#get(at) === probe) seen.push(at);
      }
      places = places?.filter((at) => seen.includes(at)) ?? seen;
    }
    if (places!.length === 0) throw new Error("PHP's exit status is not found");
    this.#status = places![0]!;
  }

  #view(): DataView {
    return new DataView((this.#exports.memory as WebAssembly.Memory).buffer);
  }

  #get(at: number): number {
    return this.#view().getInt32(at, true);
  }

  #set(at: number, value: number): void {
    this.#view().setInt32(at, value, true);
  }

  #address(name: string): number {
    return (this.#exports[name] as WebAssembly.Global).value;
  }

  /** Calls a function of C's, which may wait. */
  #call(name: string, ...args: number[]): Promise<number> {
    return promising(this.#exports[name])(...args);
  }

  #malloc(size: number): number {
    return (this.#exports.malloc as (size: number) => number)(size);
  }

  #text(content: string): number {
    const bytes = encoder.encode(`${content}\0`);
    const at = this.#malloc(bytes.length);
    new Uint8Array((this.#exports.memory as WebAssembly.Memory).buffer).set(
      bytes,
      at,
    );
    return at;
  }
}

/** A text as PHP writes one. */
function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
