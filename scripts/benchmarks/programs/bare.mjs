// A bare Pyodide in a process of its own: loads it from the directory given,
// runs the program in the file given, and ends.
const [directory, file] = Deno.args;
const { loadPyodide } = await import(`file://${directory}/pyodide.mjs`);
const pyodide = await loadPyodide({ indexURL: `${directory}/` });
pyodide.runPython(Deno.readTextFileSync(file));
