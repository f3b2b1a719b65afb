"""What became of a client's batch reads: their durations and sizes, and why entries were read one by one instead.

The event loop and the threads with direct connections count at the same time. Batches are noted in a queue and counted
many at a time.
"""

import threading
from collections import deque
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bookie.client.contracts import Fallback
from bookie.metrics.family import Family, Kind, Sample, histogram, merged

__all__ = ["BatchStats"]

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
ENTRIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
BYTES = (128, 512, 1024, 2048, 4096, 16384, 131072, 1048576)
"""The edges that BP-62 has for a bookie's responses."""
NAME = "bookie_client_batch_read"
NOTED_MAX = 4096
"""Batches that wait to be counted."""


class Distribution:
    """Counts by size; an edge belongs to the bucket below it."""

    def __init__(self, edges: Sequence[float]) -> None:
        self._edges = edges
        self._counts = np.zeros(len(edges) + 1, dtype=np.int64)
        self._sum = 0.0

    def count(self, values: NDArray[np.float64]) -> None:
        """Count these values."""
        self._counts += np.bincount(np.searchsorted(self._edges, values), minlength=len(self._counts))
        self._sum += float(values.sum())

    def family(self, name: str, text: str, labels: tuple[tuple[str, str], ...] = ()) -> Family:
        """Return the counts as a histogram."""
        counts = dict(zip((*self._edges, float("inf")), self._counts.tolist(), strict=True))
        return histogram(name, text, counts, self._sum, labels)


class BatchStats:
    """The counts of one client. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: deque[tuple[float, int, int]] = deque()
        self._seconds = {True: Distribution(SECONDS), False: Distribution(SECONDS)}
        self._entries = Distribution(ENTRIES)
        self._bytes = Distribution(BYTES)
        self._fallbacks = dict.fromkeys(Fallback, 0)

    def read(self, seconds: float, entries: int, nbytes: int) -> None:
        """Count a batch read that brought entries, with the bytes of their records."""
        self._noted.append((seconds, entries, nbytes))
        if len(self._noted) >= NOTED_MAX:
            with self._lock:
                self._count_noted()

    def failed(self, seconds: float) -> None:
        """Count a batch read that brought an error."""
        with self._lock:
            self._seconds[False].count(np.array([seconds]))

    def fell_back(self, reason: Fallback) -> None:
        """Count a call whose entries were read one by one."""
        with self._lock:
            self._fallbacks[reason] += 1

    def _count_noted(self) -> None:
        rows = [self._noted.popleft() for _ in range(len(self._noted))]
        values = np.fromiter(chain.from_iterable(rows), np.float64, 3 * len(rows)).reshape(-1, 3)
        for distribution, column in zip((self._seconds[True], self._entries, self._bytes), values.T, strict=True):
            distribution.count(column)

    def families(self) -> list[Family]:
        """Return the counts as metrics."""
        with self._lock:
            self._count_noted()
            outcomes = [
                self._seconds[good].family(
                    f"{NAME}_seconds", "Time of a batch read of one bookie.", (("success", str(good).lower()),)
                )
                for good in (False, True)
            ]
            fallbacks = tuple(Sample(count, (("reason", str(why)),)) for why, count in self._fallbacks.items())
            return [
                *merged(outcomes),
                self._entries.family(f"{NAME}_entries", "Entries in the response to a batch read."),
                self._bytes.family(f"{NAME}_bytes", "Bytes of entries in the response to a batch read."),
                Family(
                    f"{NAME}_fallbacks_total",
                    Kind.COUNTER,
                    "Calls for a batch whose entries were read one by one, by reason.",
                    fallbacks,
                ),
            ]
