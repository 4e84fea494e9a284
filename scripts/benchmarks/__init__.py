"""What scripts/bench measures, and how it tells of it.

A measure (measures.py, growth.py, setup.py, peers.py) drives servers over MCP
(mcp.py) and, in turn with them, what they are compared to (bare.py), on a
machine that machine.py describes. Its figures are samples (samples.py), which
become a table and a JSON file (report.py) and a plot (plot.py).

It is not hyperfine, which times commands: most figures here are calls of one
server that goes on, by turns with what they stand beside. Steps in Go have Go's
own benchmarks, which benchstat compares.
"""
