/**
 * Makes the memory snapshot that workers start from: Python with much of its
 * standard library, micropip and our own modules imported.
 *
 * Arguments: Pyodide's directory, micropip's wheel. Our package `rillbox` is beside
 * this module. The snapshot goes to fd 3. No guest's code runs here.
 */

import { loadFresh } from "./pyodide.ts";

const [directory, wheel] = Deno.args;
const modules = `${import.meta.dirname}/rillbox`;
const { pyodide, save } = await loadFresh(directory!);
const { FS } = pyodide;
FS.mkdirTree("/rillbox/rillbox");
for (const entry of Deno.readDirSync(modules!)) {
  const file = Deno.readFileSync(`${modules}/${entry.name}`);
  FS.writeFile(`/rillbox/rillbox/${entry.name}`, file);
}
FS.writeFile("/rillbox/micropip.zip", Deno.readFileSync(wheel!));
pyodide.runPython(`
def boot():
    import sys
    sys.path += ["/rillbox", "/rillbox/micropip.zip"]
    import rillbox.boot
    sys.path[-2:] = []
    sys.path_importer_cache.clear()
boot()
del boot
`);
using output = Deno.openSync("/dev/fd/3", { write: true });
save(output);
