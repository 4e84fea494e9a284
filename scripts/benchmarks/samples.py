"""Samples of a figure, and how steady the machine was while they were taken."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field


def percentile(values: Iterable[float], percent: float) -> float:
    """The value that percent of all are no larger than, between neighbours by proportion."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass
class Sample:
    """One figure, measured several times."""

    unit: str
    values: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        self.values.append(value)

    def percentile(self, percent: float) -> float:
        return percentile(self.values, percent)

    @property
    def median(self) -> float:
        return self.percentile(50)

    def summary(self) -> dict[str, object]:
        """What the JSON file says of it."""
        if not self.values:
            return {"unit": self.unit, "count": 0}
        return {
            "unit": self.unit,
            "count": len(self.values),
            "min": min(self.values),
            "p10": self.percentile(10),
            "median": self.median,
            "p90": self.percentile(90),
            "p99": self.percentile(99),
            "max": max(self.values),
        }


class Stopwatch:
    """Milliseconds since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def ms(self) -> float:
        return (time.perf_counter() - self.start) * 1000


class Calibration:
    """The same work again and again: how its time varies is the machine's doing."""

    def __init__(self) -> None:
        self.sample = Sample("ms")

    def tick(self) -> None:
        watch = Stopwatch()
        total = 0
        for number in range(100_000):
            total += number * number
        self.sample.add(watch.ms())
