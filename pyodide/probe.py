# What no program may do without a grant, tried: Python reaches all of the
# JavaScript around it, so the attempts go that way. The value says of each
# attempt whether it was refused, and by which error.

import os
import sys

from js import Deno, Object
from pyodide.code import run_js
from pyodide.ffi import to_js

file, new_file, port, variable = sys.argv[1:]


def options(**fields):
    return to_js(fields, dict_converter=Object.fromEntries)


def variables():
    return {**os.environ, **Deno.env.toObject().to_py()}


import_text = run_js("(url) => import(url, { with: { type: 'text' } })")
shell = options(args=["-c", f"echo >{new_file}"])
attempts = {
    "read a file": lambda: Deno.readTextFile(file),
    "import a file": lambda: import_text(f"file://{file}"),
    "write a file": lambda: Deno.writeTextFile(new_file, "probe"),
    "connect to the network": lambda: Deno.connect(options(hostname="127.0.0.1", port=int(port))),
    "see the environment": lambda: variables()[variable],
    "start a program": lambda: Deno.Command.new("/bin/sh", shell).output(),
}

outcome = {}
for name, attempt in attempts.items():
    try:
        made = attempt()
        if hasattr(made, "then"):
            await made
        outcome[name] = ""
    except Exception as error:
        outcome[name] = getattr(error, "name", type(error).__name__)
outcome
