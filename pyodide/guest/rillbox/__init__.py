"""The Python side of Rillbox's worker: it runs in Pyodide, and its own tests under CPython.

`runner` runs one program, `packages` finds and installs what it needs, `eventloop`
makes asyncio end a program as it does elsewhere, and `network` and `tls` make Python's
sockets and TLS those of its process. All of it is imported once, when the memory
snapshot is made.
"""
