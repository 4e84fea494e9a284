"""A stand-in for matplotlib: what is used of it, under its names, and nothing else."""

import os

rcParams = {"backend": os.environ.get("MPLBACKEND", "agg")}
