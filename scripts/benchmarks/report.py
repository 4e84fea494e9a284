"""Rows of figures, as a table for people and as JSON for programs."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .samples import Sample


@dataclass
class Row:
    """One measure: what was to be reached, what was, and beside what."""

    name: str
    target: str  # in words; empty when there is none
    sample: Sample
    floor_name: str = ""
    floor: Sample | None = None
    # What reaching the target takes: "ratio ≤ 1.3" and whether it holds.
    checks: dict[str, bool] = field(default_factory=dict)
    # Where a percentile beside the median counts.
    shown: tuple[float, ...] = (50,)
    note: str = ""
    # Where it is in the plot: under which heading, and as what.
    plotted: tuple[str, str] | None = None

    @property
    def ratio(self) -> float | None:
        """Median over median."""
        return None if self.floor is None else self.sample.median / self.floor.median

    @property
    def reached(self) -> bool | None:
        return all(self.checks.values()) if self.checks else None

    def at_most(self, what: str, value: float, bound: float) -> None:
        self.checks[f"{what} {value:.4g} ≤ {bound:.4g}"] = value <= bound

    def at_least(self, what: str, value: float, bound: float) -> None:
        self.checks[f"{what} {value:.4g} ≥ {bound:.4g}"] = value >= bound

    def data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "target": self.target,
            "measured": self.sample.summary(),
            "floor_name": self.floor_name,
            "floor": self.floor.summary() if self.floor else None,
            "ratio": self.ratio,
            "checks": self.checks,
            "reached": self.reached,
            "note": self.note,
        }


def figure(value: float, unit: str) -> str:
    """A value with as many digits as mean something."""
    if unit == "ms" and value >= 1000:
        value, unit = value / 1000, "s"
    if value >= 100:
        return f"{value:,.0f} {unit}"
    return f"{value:.3g} {unit}" if value >= 1 else f"{value:.2f} {unit}"


def spread(sample: Sample) -> str:
    """The range in which eight of ten values lie; nothing for a value that stands alone."""
    if len(sample.values) < 3:
        return ""
    low, high = (
        figure(sample.percentile(10), sample.unit),
        figure(sample.percentile(90), sample.unit),
    )
    if low.split()[1] == high.split()[1]:
        low = low.split()[0]
    return f" ({low}–{high})"


def measured(row: Row) -> str:
    parts = []
    for percent in row.shown:
        name = "" if len(row.shown) == 1 else f"p{percent:g} "
        parts.append(name + figure(row.sample.percentile(percent), row.sample.unit))
    return ", ".join(parts) + spread(row.sample)


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    cells = [["measure", "to reach", "measured", "beside it", "ratio", "reached"]]
    for row in rows:
        floor = ratio = ""
        if row.floor is not None:
            floor = (
                f"{row.floor_name}: {figure(row.floor.median, row.floor.unit)}{spread(row.floor)}"
            )
            ratio = f"{row.ratio:.2f}"
        reached = {None: "", True: "yes", False: "no"}[row.reached]
        name = f"{row.name} ({row.note})" if row.note else row.name
        cells.append([name, row.target, measured(row), floor, ratio, reached])
    return markdown(cells)


def markdown(cells: list[list[str]]) -> str:
    """Cells as a Markdown table; the first row is its head."""
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    lines.insert(1, "|" + " --- |" * len(cells[0]))
    return "\n".join(lines)


def heading(about: dict[str, Any]) -> str:
    """Where, when, with what and how the figures came about."""
    machine, steady = about["machine"], about["calibration"]
    text = f"`{about['command']}`, {caption(about)}.\n"
    if steady["count"]:
        text += (
            f"One and the same loop, run between the measures, took {steady['min']:.1f} ms at "
            f"least, {steady['median']:.1f} ms at the median and {steady['max']:.1f} ms at most "
            f"(of {steady['count']} times); the machine's load was {machine['load_before']} before."
        )
    return text


def caption(about: dict[str, Any]) -> str:
    machine = about["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return (
        f"{about['date']}: {versions}; {machine['processors']} × {machine['processor']}, "
        f"{machine['memory_gib']:.0f} GiB, {machine['system']}"
    )


# Where the tables stand in a Markdown file.
BEGIN, END = "<!-- scripts/bench -->", "<!-- end -->"


def inserted(page: str, text: str) -> str:
    """A page with text in place of what stands between the marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def write(path: Path, about: dict[str, Any]) -> None:
    path.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n")
