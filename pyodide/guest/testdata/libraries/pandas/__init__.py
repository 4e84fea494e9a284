"""A stand-in for pandas: what is used of it, under its names, and nothing else."""


class DataFrame:
    def __init__(self, columns):
        self.columns = columns

    @property
    def shape(self):
        return len(next(iter(self.columns.values()))), len(self.columns)

    def to_string(self, *, max_rows, max_cols, max_colwidth, line_width, show_dimensions):
        assert show_dimensions and max_colwidth and line_width and max_cols
        rows = list(zip(*self.columns.values(), strict=True))
        if len(rows) > max_rows:
            rows = [*rows[: max_rows // 2], [".."], *rows[-max_rows // 2 :]]
        lines = [" ".join(map(str, row)) for row in [list(self.columns), *rows]]
        return "\n".join(lines) + "\n\n[{} rows x {} columns]".format(*self.shape)

    def _repr_html_(self):
        return f"<table>{len(self.columns)}</table>"


class Series:
    def __init__(self, values):
        self.values = list(values)

    def to_string(self, *, max_rows, length, dtype, name):
        assert length and dtype and name
        return "\n".join(map(str, self.values[:max_rows])) + f"\nLength: {len(self.values)}"
