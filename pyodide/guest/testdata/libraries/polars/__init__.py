"""A stand-in for polars: what is used of it, under its names, and nothing else."""


class DataFrame:
    def __init__(self, columns):
        self.columns = columns

    def __repr__(self):
        rows = len(next(iter(self.columns.values())))
        return f"shape: ({rows}, {len(self.columns)})"

    def _repr_html_(self):
        return f"<table>{len(self.columns)}</table>"
