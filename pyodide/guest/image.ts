/**
 * Makes the image of one wheel (see wheel.ts): unpacks it into a Python of its
 * own and compiles its modules. Neither the wheel's code nor any guest's runs
 * here.
 *
 * Arguments: Pyodide's directory, the snapshot, the wheel, its file name, where
 * it belongs ("site" or "dynlib"). The image goes to fd 3.
 *
 * @module
 */

import { write } from "./memory.ts";
import { loadSaved } from "./pyodide.ts";

const [directory, snapshot, wheel, name, target] = Deno.args;
using memory = Deno.openSync(snapshot!);
using output = Deno.openSync("/dev/fd/3", { write: true });
const pyodide = await loadSaved(directory!, memory);
const content = Deno.readFileSync(wheel!);
const writePart = (part: Uint8Array) => write(output, part);
pyodide.pyimport("rillbox.boot").pack!(content, name, target, writePart);
