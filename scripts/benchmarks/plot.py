"""Latency as horizontal bars on a logarithmic scale, in SVG.

It stands alone: colours follow the reader's light or dark mode, the font is the
system's, and a rectangle of its own is behind it, so that it can be read on any
page.
"""

import math
from dataclasses import dataclass
from html import escape

from .report import Row, figure
from .samples import Sample

OURS, BESIDE, PEER = "ours", "beside", "peer"
START = "Server start"  # the heading of what is no call

LABELS = 290  # pixels left of the axis
PLOT = 470
FIGURES = 100  # and right of it
BAR = 20
GAP = 7
HEADING = 32
TOP = 62

STYLE = """
  .page { fill: #ffffff } .figure { stroke: #ffffff }
  text { fill: #1f2328 } .small { fill: #59636e }
  .grid { stroke: #d1d9e0 } .range { stroke: #1f2328 }
  .ours { fill: #0969da } .beside { fill: #9198a1 } .peer { fill: #bf8700 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .figure { stroke: #0d1117 }
    text { fill: #f0f6fc } .small { fill: #9198a1 }
    .grid { stroke: #3d444d } .range { stroke: #f0f6fc }
    .ours { fill: #4493f8 } .beside { fill: #656c76 } .peer { fill: #d29922 }
  }
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
  .heading { font-weight: 600 } .title { font-size: 16px; font-weight: 600 }
  .figure { paint-order: stroke; stroke-width: 4; stroke-linejoin: round }
  .small { font-size: 11px } .grid { stroke-width: 1 } .range { stroke-width: 1.5 }
"""


@dataclass
class Bar:
    group: str
    label: str
    sample: Sample
    kind: str  # OURS, BESIDE or PEER


def bars(rows: list[Row], peers: list[Bar]) -> list[Bar]:
    """The bars of the rows and of the peers, group by group, each group from fast to slow."""
    found: dict[tuple[str, str], Bar] = {}
    for row in rows:
        if row.plotted is None:
            continue
        group, label = row.plotted
        found[group, label] = Bar(group, label, row.sample, OURS)
        if row.floor is not None:
            name = row.floor_name.replace("`", "")
            found.setdefault((group, name), Bar(group, name, row.floor, BESIDE))
    for bar in peers:
        found[bar.group, bar.label] = bar
    groups = list(dict.fromkeys(group for group, _ in found))
    return sorted(found.values(), key=lambda bar: (groups.index(bar.group), bar.sample.median))


def draw(all_bars: list[Bar], caption: str) -> str:
    """The plot of bars that hold milliseconds, as an SVG document."""
    if not all_bars:
        raise ValueError("there is nothing to plot: none of the measures is of a latency")
    low = 10 ** math.floor(math.log10(min(bar.sample.percentile(10) for bar in all_bars)))
    high = 10 ** math.ceil(math.log10(max(bar.sample.percentile(90) for bar in all_bars)))
    if high == low:
        high = low * 10

    def x(value: float) -> float:
        share = math.log10(max(value, low) / low) / math.log10(high / low)
        return LABELS + share * PLOT

    body, y, group = [], TOP, ""
    for bar in all_bars:
        if bar.group != group:
            group = bar.group
            y += HEADING
            body.append(f'<text class="heading" x="16" y="{y - 10}">{escape(group)}</text>')
        body += _bar(bar, x, y)
        y += BAR + GAP
    bottom = y + 4
    grid = []
    value = low
    while value <= high:
        name = f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s"
        grid.append(
            f'<line class="grid" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{bottom}"/>'
            f'<text class="small" x="{x(value):.1f}" y="{bottom + 16}" '
            f'text-anchor="middle">{name}</text>'
        )
        value *= 10
    width, height = LABELS + PLOT + FIGURES, bottom + 48
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="Latency">',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
            '<text class="title" x="16" y="30">From request to answer</text>',
            '<text class="small" x="16" y="50">median, with the range of eight in ten; '
            "logarithmic scale, shorter is better</text>",
            *grid,
            *body,
            f'<text class="small" x="16" y="{bottom + 38}">{escape(caption)}</text>',
            "</svg>",
            "",
        ]
    )


def _bar(bar: Bar, x, y: float) -> list[str]:
    median, left = x(bar.sample.median), x(0)
    low, high = x(bar.sample.percentile(10)), x(bar.sample.percentile(90))
    middle = y + BAR / 2
    text = figure(bar.sample.median, bar.sample.unit)
    parts = [
        f'<text x="{LABELS - 10}" y="{middle + 4.5}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect class="{bar.kind}" x="{left}" y="{y}" width="{max(median - left, 1):.1f}" '
        f'height="{BAR}" rx="2"/>',
    ]
    if high - low >= 2:
        parts.append(
            f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
        )
    end = max(median, high) + 8
    parts.append(f'<text class="figure" x="{end:.1f}" y="{middle + 4.5}">{text}</text>')
    return parts
