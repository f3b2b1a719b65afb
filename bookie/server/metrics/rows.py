"""Tables that turn counters into families, with one row per metric. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bookie.metrics.family import Family, Kind, Labels, Sample

__all__ = ["counters", "families", "gauges", "MS", "Part", "Row"]

MS = 1e-6
"""Converts nanoseconds to milliseconds."""

Part = tuple[Labels, Mapping[str, float]]
"""The counters of one part of the bookie, with the labels that distinguish it from others of its kind."""


class Row(NamedTuple):
    """The counter `stat`, multiplied by `scale`, as the metric `name`."""

    stat: str
    name: str
    help: str
    kind: Kind
    scale: float = 1


def counters(*rows: tuple[str, str, str] | tuple[str, str, str, float]) -> tuple[Row, ...]:
    """Return rows of (stat, name, help[, scale]) that only grow, or that Apache BookKeeper declares as counters."""
    return tuple(_row(Kind.COUNTER, row) for row in rows)


def gauges(*rows: tuple[str, str, str] | tuple[str, str, str, float]) -> tuple[Row, ...]:
    """Return rows of values that go up and down."""
    return tuple(_row(Kind.GAUGE, row) for row in rows)


def _row(kind: Kind, row: tuple[str, str, str] | tuple[str, str, str, float]) -> Row:
    stat, name, text, *scale = row
    return Row(stat, name, text, kind, *scale)


def families(rows: Iterable[Row], parts: Iterable[Part]) -> Iterator[Family]:
    """Yield one family per row, with a sample for each part that has the counter."""
    parts = list(parts)
    for row in rows:
        samples = tuple(
            Sample(stats[row.stat] if row.scale == 1 else stats[row.stat] * row.scale, labels)
            for labels, stats in parts
            if row.stat in stats
        )
        if samples:
            yield Family(row.name, row.kind, row.help, samples)
