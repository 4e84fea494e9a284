/**
 * Programs about processes, time and the network: `env`, `xargs`, `timeout`, `date`,
 * `curl` and their like.
 *
 * @module
 */

import {
  type Call,
  Cancel,
  OPTION_LETTERS,
  reason,
  resolve,
} from "../shell.ts";
import { readAll } from "../streams.ts";
import { fromBytes, toBytes } from "../syntax.ts";
import { parseOptions, type Program, Usage, warn, write } from "../program.ts";
import { parseDate, strftime } from "../time.ts";
import { signalNumber } from "../builtins.ts";

export const system: Record<string, Program> = {};

/** Runs a command as a process would: what it changes of the shell is lost. */
function child(
  call: Call,
  words: string[],
  change?: (shell: Call["shell"]) => void,
): Promise<number> {
  return call.shell.subshell((copy) => {
    copy.functions.clear();
    return copy.command(words);
  }, (copy) => {
    copy.replace(0, call.stdin.hold());
    copy.replace(1, call.stdout.hold());
    copy.replace(2, call.stderr.hold());
    copy.forgiving++;
    change?.(copy);
  });
}

system.env = async (call) => {
  const { options, rest, all } = parseOptions(call.args, "+iu:C:0S:v", {
    "ignore-environment": "i",
    unset: "u",
    chdir: "C",
    null: "0",
    "split-string": "S",
  });
  const words = options.has("S")
    ? [...options.get("S")!.split(/\s+/), ...rest]
    : rest;
  const sets: [string, string][] = [];
  while (words.length > 0 && /^[^=]+=/.test(words[0]!)) {
    const word = words.shift()!, at = word.indexOf("=");
    sets.push([word.slice(0, at), word.slice(at + 1)]);
  }
  if (words[0] === "-") words.shift();
  const environment = options.has("i") ? {} : call.shell.environment();
  for (const [option, name] of all) {
    if (option === "u") delete environment[name];
  }
  for (const [name, value] of sets) environment[name] = value;
  if (words.length === 0) {
    await write(
      call,
      Object.entries(environment).map(([n, v]) =>
        `${n}=${v}${options.has("0") ? "\0" : "\n"}`
      ).join(""),
    );
    return 0;
  }
  return await child(call, words, (shell) => {
    for (const [name, variable] of [...shell.variables]) {
      if (variable.exported) shell.variables.delete(name);
    }
    for (const [name, value] of Object.entries(environment)) {
      if (name !== "_") shell.variables.set(name, { value, exported: true });
    }
    if (options.has("C")) shell.cwd = resolve(shell.cwd, options.get("C")!);
  });
};

system.printenv = async (call) => {
  const environment = call.shell.environment();
  if (call.args.length === 0) return await system.env!(call);
  let status = 0;
  for (const name of call.args.filter((a) => a !== "-0")) {
    if (environment[name] === undefined) status = 1;
    else await write(call, environment[name] + "\n");
  }
  return status;
};

system.sh = async (call) => {
  const { args, shell } = call;
  const flags: string[] = [];
  let i = 0, command = false, stdin = false;
  for (; i < args.length && /^[-+]/.test(args[i]!) && args[i] !== "-"; i++) {
    const arg = args[i]!;
    if (arg === "--") {
      i++;
      break;
    }
    if (arg === "--version") {
      await write(
        call,
        "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n",
      );
      return 0;
    }
    if (arg.startsWith("--")) continue;
    if (arg.includes("c")) command = true;
    if (arg.includes("s")) stdin = true;
    if (arg.endsWith("o") || arg.endsWith("O")) flags.push("@" + args[++i]);
    flags.push("-" + arg.slice(1).replace(/[csliro]/g, ""));
  }
  const letters = flags.filter((f) => f.startsWith("-")).join("").replaceAll(
    "-",
    "",
  );
  let name = call.name, text: string, rest: string[];
  if (command) {
    if (args[i] === undefined) {
      warn(call, "-c: option requires an argument");
      return 2;
    }
    text = args[i]!;
    name = args[i + 1] ?? call.name;
    rest = args.slice(i + 2);
  } else if (stdin || args[i] === undefined || args[i] === "-") {
    text = fromBytes(await readAll(call.stdin));
    rest = args.slice(i + (args[i] === "-" ? 1 : 0));
  } else {
    name = args[i]!;
    rest = args.slice(i + 1);
    try {
      if (shell.kind(name) === "directory") {
        warn(call, `${name}: Is a directory`);
        return 126;
      }
      text = fromBytes(await readAll(shell.openFile(name, "<")));
    } catch (e) {
      warn(call, reason(e));
      return 127;
    }
  }
  return await shell.fresh(name, rest, (copy) => {
    for (const letter of letters) {
      const option = OPTION_LETTERS[letter];
      if (option !== undefined) copy.options.add(option);
    }
    for (const flag of flags) {
      if (flag.startsWith("@")) copy.options.add(flag.slice(1));
    }
    if (call.name === "sh" || call.name === "dash") copy.posix = true;
    return copy.script(text, 1, command ? "-c" : "");
  });
};
for (const name of ["bash", "dash", "zsh", "ksh", "ash"]) {
  system[name] = system.sh;
}

/** Seconds of a text like "1.5m". */
function seconds(text: string): number {
  if (text === "infinity" || text === "inf") return Infinity;
  const found = /^(\d+\.?\d*|\.\d+)(?:e(-?\d+))?([smhd]?)$/.exec(text);
  if (found === null) throw new Usage(`invalid time interval ‘${text}’`);
  return Number(found[1]) * 10 ** Number(found[2] ?? 0) *
    { "": 1, s: 1, m: 60, h: 3600, d: 86400 }[found[3] as "" | "s"]!;
}

system.sleep = async (call) => {
  if (call.args.length === 0) throw new Usage("missing operand");
  let total = 0;
  for (const arg of call.args) total += seconds(arg);
  await call.shell.cancel.sleep(total * 1000);
  return 0;
};
system.usleep = async (call) => {
  await call.shell.cancel.sleep(Number(call.args[0] ?? 0) / 1000);
  return 0;
};

system.timeout = async (call) => {
  const { options, rest } = parseOptions(call.args, "+s:k:v", {
    signal: "s",
    "kill-after": "k",
    "preserve-status": "p",
    foreground: "f",
    verbose: "v",
  });
  const [limit, ...words] = rest;
  if (limit === undefined || words.length === 0) {
    throw new Usage("missing operand");
  }
  const cancel = new Cancel(call.shell.cancel);
  const most = seconds(limit);
  const timer = most > 0 && most < 0x7fffffff / 1000
    ? setTimeout(
      () => cancel.end(signalNumber(options.get("s") ?? "TERM") ?? 15),
      most * 1000,
    )
    : undefined;
  const running = child(call, words, (shell) => shell.cancel = cancel);
  const status = await running.finally(() => clearTimeout(timer));
  return cancel.signal !== 0 && call.shell.cancel.signal === 0
    ? options.has("p") ? status : cancel.signal === 9 ? 137 : 124
    : status;
};

for (
  const name of [
    "nohup",
    "nice",
    "ionice",
    "stdbuf",
    "setsid",
    "unbuffer",
    "chrt",
    "taskset",
  ]
) {
  system[name] = async (call) => {
    const words = [...call.args];
    while (words[0]?.startsWith("-")) {
      const option = words.shift()!;
      if (/^-[nioec]$/.test(option)) words.shift();
    }
    return words.length === 0 ? 0 : await child(call, words);
  };
}

system.time = async (call) => {
  const begun = performance.now();
  const words = call.args[0] === "-p" || call.args[0] === "-v"
    ? call.args.slice(1)
    : call.args;
  const status = await child(call, words);
  const taken = ((performance.now() - begun) / 1000).toFixed(2);
  await call.stderr.write(toBytes(`real ${taken}\nuser ${taken}\nsys 0.00\n`));
  return status;
};

system.uname = async (call) => {
  const { options } = parseOptions(call.args, "asnrvmpio", {
    all: "a",
    "kernel-name": "s",
    nodename: "n",
    "kernel-release": "r",
    "kernel-version": "v",
    machine: "m",
    "operating-system": "o",
  });
  const all: [string, string][] = [
    ["s", "Linux"],
    ["n", "sandbox"],
    ["r", "6.1.0"],
    ["v", "#1 SMP"],
    ["m", "x86_64"],
    ["o", "GNU/Linux"],
  ];
  const wanted = options.size === 0
    ? ["s"]
    : options.has("a")
    ? all.map(([o]) => o)
    : [...options.keys()];
  await write(
    call,
    all.filter(([o]) => wanted.includes(o)).map(([, v]) => v).join(" ") + "\n",
  );
  return 0;
};
system.arch = async (call) => (await write(call, "x86_64\n"), 0);
system.hostname = async (call) => (await write(call, "sandbox\n"), 0);
system.whoami = async (
  call,
) => (await write(call, (call.shell.get("USER") ?? "user") + "\n"), 0);
system.logname = system.whoami;
system.users = system.whoami;
system.groups = system.whoami;
system.who = () => 0;
system.tty = async (call) => (await write(call, "not a tty\n"), 1);
system.nproc = async (call) => (await write(call, "1\n"), 0);
system.getconf = async (call) => {
  const known: Record<string, string> = {
    _NPROCESSORS_ONLN: "1",
    PAGESIZE: "4096",
    PAGE_SIZE: "4096",
    ARG_MAX: "2097152",
    LONG_BIT: "64",
  };
  const value = known[call.args[0] ?? ""];
  if (value === undefined) {
    return warn(call, `Unrecognized variable \`${call.args[0] ?? ""}'`);
  }
  await write(call, value + "\n");
  return 0;
};
system.id = async (call) => {
  const user = call.shell.get("USER") ?? "user";
  const { options } = parseOptions(call.args, "ugGnr", {
    user: "u",
    group: "g",
    groups: "G",
    name: "n",
  });
  await write(
    call,
    options.size === 0
      ? `uid=1000(${user}) gid=1000(${user}) groups=1000(${user})\n`
      : options.has("n")
      ? user + "\n"
      : "1000\n",
  );
  return 0;
};
system.ps = async (
  call,
) => (await write(
  call,
  `    PID TTY          TIME CMD\n${
    String(call.shell.shellPid).padStart(7)
  } ?        00:00:00 bash\n`,
),
  0);
system.clear = () => 0;
system.reset = () => 0;
system.tput = async (call) => {
  const known: Record<string, string> = {
    cols: "80\n",
    lines: "24\n",
    colors: "8\n",
  };
  await write(call, known[call.args[0] ?? ""] ?? "");
  return 0;
};
system.stty = async (
  call,
) => (await write(call, call.args[0] === "size" ? "24 80\n" : ""), 0);
system.free = (call) => warn(call, "what memory there is, is not known here");
system.uptime = async (call) => {
  const up = Math.floor((Date.now() - call.shell.world.began) / 1000);
  await write(
    call,
    ` ${strftime("%H:%M:%S", new Date())} up ${
      Math.floor(up / 60)
    } min,  1 user,  load average: 0.00, 0.00, 0.00\n`,
  );
  return 0;
};

system.which = async (call) => {
  let status = 0;
  for (const name of call.args.filter((a) => !a.startsWith("-"))) {
    const { shell } = call;
    const known = name.includes("/")
      ? shell.unary("-x", name) ? name : undefined
      : shell.world.programs.has(name) ||
          ["echo", "printf", "test", "[", "true", "false", "pwd", "kill"]
            .includes(name)
      ? `/usr/bin/${name}`
      : shell.search(name);
    if (known === undefined) status = 1;
    else await write(call, known + "\n");
  }
  return status;
};

system.date = async (call) => {
  let template: string | undefined,
    utc = false,
    given: string | undefined,
    iso: string | undefined,
    rfc = false,
    reference: string | undefined,
    file: string | undefined;
  const { args } = call;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg.startsWith("+")) template = arg.slice(1);
    else if (arg === "-u" || arg === "--utc" || arg === "--universal") {
      utc = true;
    } else if (arg === "-d" || arg === "--date") given = args[++i];
    else if (arg.startsWith("-d")) given = arg.slice(2);
    else if (arg.startsWith("--date=")) given = arg.slice(7);
    else if (arg.startsWith("-I")) iso = arg.slice(2) || "date";
    else if (arg.startsWith("--iso-8601")) iso = arg.split("=")[1] ?? "date";
    else if (arg === "-R" || arg === "--rfc-email") rfc = true;
    else if (arg.startsWith("--rfc-3339")) {
      iso = "3339" + (arg.split("=")[1] ?? "date");
    } else if (arg === "-r" || arg === "--reference") reference = args[++i];
    else if (arg.startsWith("--reference=")) reference = arg.slice(12);
    else if (arg === "-f") file = args[++i];
    else if (arg === "-ud") {
      utc = true;
      given = args[++i];
    } else if (arg === "-s" || arg.startsWith("--set")) {
      return warn(call, "cannot set date: Operation not permitted");
    } else if (arg.startsWith("-")) {
      throw new Usage(`invalid option -- '${arg.slice(1)}'`);
    } else return warn(call, `invalid date ‘${arg}’`);
  }
  const zone = utc ? "UTC" : call.shell.get("TZ") ?? "";
  const show = (when: Date): string => {
    if (rfc) return strftime("%a, %d %b %Y %H:%M:%S %z", when, zone);
    if (iso !== undefined) {
      const forms: Record<string, string> = {
        date: "%Y-%m-%d",
        hours: "%Y-%m-%dT%H%:z",
        minutes: "%Y-%m-%dT%H:%M%:z",
        seconds: "%Y-%m-%dT%H:%M:%S%:z",
        ns: "%Y-%m-%dT%H:%M:%S,%N%:z",
        "3339date": "%Y-%m-%d",
        "3339seconds": "%Y-%m-%d %H:%M:%S%:z",
        "3339ns": "%Y-%m-%d %H:%M:%S.%N%:z",
      };
      return strftime(forms[iso] ?? forms.date!, when, zone);
    }
    return strftime(template ?? "%a %b %e %H:%M:%S %Z %Y", when, zone);
  };
  if (file !== undefined) {
    for (
      const line of fromBytes(await readAll(call.shell.openFile(file, "<")))
        .split("\n").filter((l) => l !== "")
    ) {
      const when = parseDate(line, new Date(), zone);
      if (when === undefined) warn(call, `invalid date ‘${line}’`);
      else await write(call, show(when) + "\n");
    }
    return 0;
  }
  let when: Date | undefined = new Date();
  if (reference !== undefined) {
    try {
      when = new Date(
        call.shell.files.stat(resolve(call.shell.cwd, reference)).mtime,
      );
    } catch (e) {
      return warn(call, `${reference}: ${reason(e)}`);
    }
  } else if (given !== undefined) {
    when = given.trim() === ""
      ? parseDate("00:00", new Date(), zone)
      : parseDate(given, new Date(), zone);
    if (when === undefined) return warn(call, `invalid date ‘${given}’`);
  }
  await write(call, show(when!) + "\n");
  return 0;
};

system.cal = async (call) => {
  const now = new Date(),
    args = call.args.filter((a) => /^\d+$/.test(a)).map(Number);
  const year = args.at(-1) ?? now.getUTCFullYear();
  const months = args.length === 1
    ? Array.from({ length: 12 }, (_, i) => i)
    : [args.length === 2 ? args[0]! - 1 : now.getUTCMonth()];
  for (const month of months) {
    const first = new Date(Date.UTC(year, month, 1)),
      title = strftime("%B %Y", first);
    let text = " ".repeat(Math.floor((20 - title.length) / 2)) + title +
      "\nSu Mo Tu We Th Fr Sa\n" + "   ".repeat(first.getUTCDay());
    const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
    for (let day = 1; day <= last; day++) {
      text += String(day).padStart(2) +
        ((first.getUTCDay() + day) % 7 === 0 || day === last ? "\n" : " ");
    }
    await write(call, text + "\n");
  }
  return 0;
};

/** The words of `xargs`' input: blanks divide, quotes and backslashes hold together. */
function words(text: string): string[] {
  const found: string[] = [];
  let word: string | undefined;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (/\s/.test(c)) {
      if (word !== undefined) found.push(word);
      word = undefined;
    } else if (c === "'" || c === '"') {
      const end = text.indexOf(c, i + 1);
      if (end < 0 || text.slice(i, end).includes("\n")) {
        throw new Usage(
          `unmatched ${
            c === "'" ? "single" : "double"
          } quote; by default quotes are special to xargs unless you use the -0 option`,
        );
      }
      word = (word ?? "") + text.slice(i + 1, end);
      i = end;
    } else word = (word ?? "") + (c === "\\" ? text[++i] ?? "" : c);
  }
  if (word !== undefined) found.push(word);
  return found;
}

system.xargs = async (call) => {
  const { options, rest } = parseOptions(call.args, "+0n:I:P:L:d:rtpa:E:s:xi", {
    null: "0",
    "max-args": "n",
    replace: "I",
    "max-procs": "P",
    "max-lines": "L",
    delimiter: "d",
    "no-run-if-empty": "r",
    verbose: "t",
    "arg-file": "a",
  });
  const command = rest.length === 0 ? ["echo"] : rest;
  const text = fromBytes(
    await readAll(
      options.has("a")
        ? call.shell.openFile(options.get("a")!, "<")
        : call.stdin,
    ),
  );
  let items: string[];
  const { escapes } = await import("../syntax.ts");
  if (options.has("0") || options.has("d")) {
    const delimiter = options.has("0")
      ? "\0"
      : escapes(options.get("d")!, "$'");
    items = text.split(delimiter);
    if (items.at(-1) === "") items.pop();
  } else if (options.has("I")) {
    items = text.split("\n").map((l) => l.replace(/^[ \t]+/, "")).filter((l) =>
      l !== ""
    ).map((l) => l.replace(/\\(.)|["']/g, "$1"));
  } else if (options.has("L")) {
    items = text.split("\n").filter((l) => l.trim() !== "");
  } else items = words(text);
  const batches: string[][] = [];
  const mark = options.get("I");
  if (mark !== undefined) {
    for (const item of items) {
      batches.push(
        command.map((w, i) => i === 0 ? w : w.replaceAll(mark, item)),
      );
    }
  } else {
    const lines = options.has("L"),
      most = Number(options.get("n") ?? options.get("L") ?? 0) || Infinity;
    let batch: string[] = [], size = 0;
    for (const item of items) {
      if (batch.length >= most || size + item.length > 128 << 10) {
        batches.push([
          ...command,
          ...batch.flatMap((b) => lines ? words(b) : [b]),
        ]);
        [batch, size] = [[], 0];
      }
      batch.push(item);
      size += item.length + 1;
    }
    if (batch.length > 0 || items.length === 0 && !options.has("r")) {
      batches.push([
        ...command,
        ...batch.flatMap((b) => lines ? words(b) : [b]),
      ]);
    }
  }
  let status = 0;
  const run = async (batch: string[]) => {
    if (options.has("t")) {
      await call.stderr.write(toBytes(batch.join(" ") + "\n"));
    }
    const code = await call.shell.subshell((copy) => {
      copy.functions.clear();
      // Programs are meant, of which echo and printf are.
      return copy.command(batch);
    }, (copy) => {
      copy.forgiving++;
      copy.replace(0, copy.openFile("/dev/null", "<"));
      copy.replace(1, call.stdout.hold());
      copy.replace(2, call.stderr.hold());
    });
    if (code === 127) status = 127;
    else if (code === 126) status = 126;
    else if (code !== 0 && status < 123) status = code === 255 ? 124 : 123;
    return code;
  };
  const parallel = Math.max(1, Number(options.get("P") ?? 1) || 8);
  if (parallel === 1) {
    for (const batch of batches) {
      if (await run(batch) === 255 || status === 127) break;
    }
  } else {
    const queue = [...batches];
    await Promise.all(
      Array.from({ length: Math.min(parallel, queue.length) }, async () => {
        for (let batch; (batch = queue.shift()) !== undefined;) {
          await run(batch);
        }
      }),
    );
  }
  return status;
};

// The network.

async function fetchTo(
  call: Call,
  url: string,
  init: RequestInit,
): Promise<Response | string> {
  try {
    return await fetch(url, init);
  } catch (e) {
    const { host } = (() => {
      try {
        return new URL(url);
      } catch {
        return { host: url };
      }
    })();
    const error = e as Error;
    if (
      error.name === "NotCapable" ||
      /Requires net access|permission/i.test(error.message)
    ) {
      return `${host} may not be reached: the operator has to allow it (network access to ${host})`;
    }
    void call;
    return /resolve|dns|lookup/i.test(error.message)
      ? `Could not resolve host: ${host}`
      : error.message;
  }
}

system.curl = async (call) => {
  const { options, all, rest } = parseOptions(
    call.args,
    "sSLfkiIvo:OX:H:d:F:u:A:e:b:c:m:w:GT:#gx:r:C:0123456",
    {
      silent: "s",
      "show-error": "S",
      location: "L",
      fail: "f",
      insecure: "k",
      include: "i",
      head: "I",
      verbose: "v",
      output: "o",
      "remote-name": "O",
      request: "X",
      header: "H",
      data: "d",
      "data-raw": "d",
      "data-binary": "d",
      "data-urlencode": "d",
      json: "d",
      user: "u",
      "user-agent": "A",
      referer: "e",
      cookie: "b",
      "max-time": "m",
      "connect-timeout": "m",
      "write-out": "w",
      get: "G",
      retry: "m",
      compressed: "s",
      "no-progress-meter": "s",
      "fail-with-body": "f",
      form: "F",
      "upload-file": "T",
      url: "x",
      "http1.1": "s",
      globoff: "g",
    },
  );
  const urls = rest.length > 0
    ? rest
    : options.has("x")
    ? [options.get("x")!]
    : [];
  if (urls.length === 0) {
    await call.stderr.write(
      toBytes("curl: try 'curl --help' for more information\n"),
    );
    return 2;
  }
  const headers = new Headers();
  for (const [o, v] of all) {
    if (o === "H" && v.includes(":")) {
      headers.set(
        v.slice(0, v.indexOf(":")).trim(),
        v.slice(v.indexOf(":") + 1).trim(),
      );
    }
  }
  if (options.has("A")) headers.set("user-agent", options.get("A")!);
  else if (!headers.has("user-agent")) headers.set("user-agent", "curl/8.0");
  if (options.has("e")) headers.set("referer", options.get("e")!);
  if (options.has("b")) headers.set("cookie", options.get("b")!);
  if (options.has("u")) {
    headers.set("authorization", "Basic " + btoa(options.get("u")!));
  }
  let body: Uint8Array<ArrayBuffer> | FormData | undefined;
  const data = all.filter(([o]) => o === "d").map(([, v]) => v);
  const json = call.args.some((a) => a === "--json" || a.startsWith("--json=")),
    binary = call.args.includes("--data-binary");
  if (data.length > 0) {
    const pieces: string[] = [];
    for (const d of data) {
      if (d.startsWith("@") && !call.args.includes("--data-raw")) {
        const text = fromBytes(
          await readAll(
            d === "@-" ? call.stdin : call.shell.openFile(d.slice(1), "<"),
          ),
        );
        pieces.push(binary || json ? text : text.replace(/[\r\n]/g, ""));
      } else if (call.args.includes("--data-urlencode")) {
        pieces.push(
          d.includes("=")
            ? `${d.slice(0, d.indexOf("="))}=${
              encodeURIComponent(d.slice(d.indexOf("=") + 1))
            }`
            : encodeURIComponent(d),
        );
      } else pieces.push(d);
    }
    if (json) {
      headers.set("accept", headers.get("accept") ?? "application/json");
    }
    if (!headers.has("content-type")) {
      headers.set(
        "content-type",
        json ? "application/json" : "application/x-www-form-urlencoded",
      );
    }
    body = toBytes(pieces.join("&"));
  }
  if (options.has("F")) {
    body = new FormData();
    for (const [o, v] of all) {
      if (o !== "F") continue;
      const at = v.indexOf("="), name = v.slice(0, at), value = v.slice(at + 1);
      if (value.startsWith("@")) {
        body.append(
          name,
          new Blob([
            await readAll(
              call.shell.openFile(value.slice(1).split(";")[0]!, "<"),
            ),
          ]),
          value.slice(1).split(";")[0]!.replace(/.*\//, ""),
        );
      } else body.append(name, value);
    }
  }
  if (options.has("T")) {
    body = await readAll(call.shell.openFile(options.get("T")!, "<"));
  }
  let status = 0;
  for (let url of urls) {
    if (!/^[a-z]+:\/\//i.test(url)) url = "http://" + url;
    if (options.has("G") && body !== undefined) {
      url += (url.includes("?") ? "&" : "?") + fromBytes(body as Uint8Array);
    }
    const method = options.get("X") ??
      (options.has("I")
        ? "HEAD"
        : options.has("T")
        ? "PUT"
        : body !== undefined && !options.has("G")
        ? "POST"
        : "GET");
    const answer = await fetchTo(call, url, {
      method,
      headers,
      body: method === "GET" || method === "HEAD" || options.has("G")
        ? undefined
        : body,
      redirect: options.has("L") ? "follow" : "manual",
      signal: options.has("m") && Number(options.get("m")) > 0
        ? AbortSignal.timeout(Number(options.get("m")) * 1000)
        : undefined,
    });
    if (typeof answer === "string") {
      if (
        !options.has("s") || options.has("S") || answer.includes("operator")
      ) await call.stderr.write(toBytes(`curl: (7) ${answer}\n`));
      status = /resolve/.test(answer) ? 6 : 7;
      continue;
    }
    if (options.has("f") && answer.status >= 400) {
      if (!options.has("s") || options.has("S")) {
        await call.stderr.write(
          toBytes(
            `curl: (22) The requested URL returned error: ${answer.status}\n`,
          ),
        );
      }
      await answer.body?.cancel();
      status = 22;
      continue;
    }
    const file = options.get("o") ??
      (options.has("O")
        ? new URL(url).pathname.replace(/.*\//, "") || "index.html"
        : undefined);
    const to = file === undefined || file === "-"
      ? call.stdout.hold()
      : call.shell.openFile(file, ">");
    if (options.has("i") || options.has("I")) {
      let head = `HTTP/1.1 ${answer.status} ${answer.statusText}\r\n`;
      for (const [n, v] of answer.headers) head += `${n}: ${v}\r\n`;
      await to.write(toBytes(head + "\r\n"));
    }
    let size = 0;
    if (answer.body !== null) {
      for await (const piece of answer.body) {
        size += piece.length;
        await to.write(piece);
      }
    }
    to.release();
    const template = options.get("w");
    if (template !== undefined) {
      const { escapes } = await import("../syntax.ts");
      await write(
        call,
        escapes(template, "$'").replace(/%\{(\w+)\}/g, (all, name) =>
          ({
            http_code: String(answer.status),
            response_code: String(answer.status),
            size_download: String(size),
            url_effective: answer.url || url,
            content_type: answer.headers.get("content-type") ?? "",
            time_total: "0.0",
          } as Record<string, string>)[name] ?? all),
      );
    }
  }
  return status;
};

system.wget = async (call) => {
  const { options, rest } = parseOptions(call.args, "qO:ncP:S", {
    quiet: "q",
    "output-document": "O",
    "no-check-certificate": "n",
    "directory-prefix": "P",
    "no-verbose": "q",
    spider: "s",
    timeout: "t",
    tries: "t",
  });
  let status = 0;
  if (rest.length === 0) throw new Usage("missing URL");
  for (let url of rest) {
    if (!/^[a-z]+:\/\//i.test(url)) url = "http://" + url;
    const answer = await fetchTo(call, url, {});
    if (typeof answer === "string") {
      warn(call, answer);
      status = 4;
      continue;
    }
    if (!answer.ok) {
      warn(call, `${url}: ERROR ${answer.status}: ${answer.statusText}`);
      await answer.body?.cancel();
      status = 8;
      continue;
    }
    const name = options.get("O") ??
      (options.has("P") ? options.get("P") + "/" : "") +
        (new URL(url).pathname.replace(/.*\//, "") || "index.html");
    const to = name === "-"
      ? call.stdout.hold()
      : call.shell.openFile(name, ">");
    if (answer.body !== null) {
      for await (const piece of answer.body) await to.write(piece);
    }
    to.release();
    if (!options.has("q") && name !== "-") {
      await call.stderr.write(toBytes(`‘${name}’ saved\n`));
    }
  }
  return status;
};

for (const name of ["pgrep", "pkill", "killall"]) system[name] = () => 1;
