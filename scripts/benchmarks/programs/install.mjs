// A bare Pyodide that installs packages with micropip, nothing being cached.
// Arguments: Pyodide's directory, micropip's wheel, the program, the packages.
// Prints the program's output and then how many milliseconds the installation
// and the program took, without the loading of Pyodide and micropip.
const [directory, wheel, file, ...packages] = Deno.args;
const { loadPyodide } = await import(`file://${directory}/pyodide.mjs`);
// Without a list of packages that only Pyodide's CDN has, all come from the index.
const lock = JSON.parse(
  Deno.readTextFileSync(`${directory}/pyodide-lock.json`),
);
const pyodide = await loadPyodide({
  indexURL: `${directory}/`,
  lockFileContents: JSON.stringify({ ...lock, packages: {} }),
});
pyodide.FS.writeFile("/tmp/micropip.whl", Deno.readFileSync(wheel));
pyodide.runPython(`
import importlib, site, zipfile
zipfile.ZipFile("/tmp/micropip.whl").extractall(site.getsitepackages()[0])
importlib.invalidate_caches()
import micropip
`);
const start = performance.now();
await pyodide.pyimport("micropip").install(packages);
await pyodide.runPythonAsync(Deno.readTextFileSync(file));
console.log(performance.now() - start);
