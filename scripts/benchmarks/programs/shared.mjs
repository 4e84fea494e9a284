// One Pyodide that all calls share, as unsafe servers do it: a program a line
// comes in as JSON, what it printed goes out as JSON.
import { createInterface } from "node:readline";
import process from "node:process";

const [directory] = Deno.args;
const { loadPyodide } = await import(`file://${directory}/pyodide.mjs`);
const pyodide = await loadPyodide({ indexURL: `${directory}/` });
let printed = "";
pyodide.setStdout({ batched: (line) => printed += `${line}\n` });
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  printed = "";
  await pyodide.runPythonAsync(JSON.parse(line).code);
  console.log(JSON.stringify({ stdout: printed }));
}
