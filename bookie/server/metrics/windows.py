"""Summaries: count and sum since the start, quantiles of the last window.

A window ends with the first scrape at least `rollover_s` after its beginning, so that a slow scraper sees everything
since its last scrape. Until the first window has ended, quantiles are NaN. One thread at a time.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bookie._fast.base.op_stats import OpView, edges
from bookie.metrics.family import Family, Kind, Labels, Sample

__all__ = ["QUANTILES", "Series", "totals", "Windows"]

QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999, 0.9999, 1.0)
UNKNOWN = (math.nan,) * len(QUANTILES)
EDGES = np.array(edges(), np.float64)
MIDDLES = np.where(EDGES[1:] - EDGES[:-1] > 1, (EDGES[1:] + EDGES[:-1]) / 2, EDGES[:-1])


class Series(NamedTuple):
    """The measurements of one operation; those of several threads are added up."""

    failed: Sequence[OpView]
    well: Sequence[OpView]
    labels: Labels = ()


class Windows:
    """The beginning of the present window and the quantiles of the previous one, for each series.

    Call `turn` before the families of a scrape.
    """

    def __init__(self, rollover_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rollover_s = rollover_s
        self._clock = clock
        self._begun = clock()
        self._over = False
        self._before: dict[tuple[str, Labels], np.ndarray] = {}
        self._quantiles: dict[tuple[str, Labels], list[Sample]] = {}
        self._labels: dict[Labels, list[Labels]] = {}

    def turn(self) -> None:
        """Determine whether the window is over."""
        now = self._clock()
        self._over = now - self._begun >= self._rollover_s
        if self._over:
            self._begun = now

    def family(self, name: str, text: str, series: Iterable[Series], scale: float = 1) -> Family:
        """Return both outcomes of each series; `scale` converts the counted unit to the one shown."""
        samples: list[Sample] = []
        for one in series:
            samples += self._samples(name, (("success", "false"), *one.labels), one.failed, scale)
            samples += self._samples(name, (("success", "true"), *one.labels), one.well, scale)
        return Family(name, Kind.SUMMARY, text, tuple(samples))

    def _samples(self, name: str, labels: Labels, parts: Sequence[OpView], scale: float) -> list[Sample]:
        key = name, labels
        if self._over:
            self._quantiles[key] = self._quantiled(labels, [value * scale for value in self._roll(key, parts)])
        elif key not in self._quantiles:
            self._quantiles[key] = self._quantiled(labels, UNKNOWN)
        return [
            *self._quantiles[key],
            Sample(sum([part.times for part in parts]), labels, "_count"),
            Sample(sum([part.total for part in parts]) * scale, labels, "_sum"),
        ]

    def _quantiled(self, labels: Labels, values: Sequence[float]) -> list[Sample]:
        """Return the quantile samples, which are most of a page, and are kept until the next window is over."""
        named = self._labels.get(labels)
        if named is None:
            outcome, *rest = labels
            named = self._labels[labels] = [(outcome, ("quantile", str(quantile)), *rest) for quantile in QUANTILES]
        return list(map(Sample, values, named))

    def _roll(self, key: tuple[str, Labels], parts: Sequence[OpView]) -> tuple[float, ...]:
        now = sum((np.frombuffer(part.buckets, np.int64) for part in parts), np.zeros(len(MIDDLES), np.int64))
        seen = np.cumsum(now - self._before.get(key, 0))
        self._before[key] = now
        if seen[-1] <= 0:
            return UNKNOWN
        ranks = np.ceil(np.array(QUANTILES) * seen[-1])
        return tuple(MIDDLES[np.searchsorted(seen, ranks)].tolist())


def totals(name: str, text: str, parts: Iterable[tuple[Labels, int, float]]) -> Family:
    """Return a summary of which only count and sum are known."""
    samples: list[Sample] = []
    for labels, count, total in parts:
        good = (("success", "true"), *labels)
        samples += [Sample(count, good, "_count"), Sample(total, good, "_sum")]
    return Family(name, Kind.SUMMARY, text, tuple(samples))
