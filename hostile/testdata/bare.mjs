/**
 * Runs a Python program in Pyodide as anybody would start it: the control of
 * attacks on what Rillbox itself takes away. Arguments: Pyodide's directory,
 * micropip's wheel, the program, its arguments.
 */

const [directory, micropip, program, ...args] = Deno.args;
const { loadPyodide } = await import(`file://${directory}/pyodide.mjs`);
const pyodide = await loadPyodide({ indexURL: `${directory}/` });
await pyodide.loadPackage(`file://${micropip}`, { messageCallback() {} });
pyodide.pyimport("sys").argv = pyodide.toPy(["main.py", ...args]);
await pyodide.runPythonAsync(await Deno.readTextFile(program));
Deno.exit();
