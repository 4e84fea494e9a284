"""The Python side of Rillbox's worker: it runs in Pyodide, and its own tests under CPython.

`runner` runs one program, `packages` finds and installs what it needs, and
`eventloop` makes asyncio end a program as it does elsewhere. All of it is
imported once, when the memory snapshot is made.
"""
