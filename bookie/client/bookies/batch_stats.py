"""What became of a client's batch reads: their durations and sizes, and why entries were read one by one instead.

The event loop and the threads with direct connections count at the same time, each under a lock.
"""

import threading
from bisect import bisect_left
from collections.abc import Sequence

from bookie.client.contracts import Fallback
from bookie.metrics.family import Family, Kind, Sample, histogram, merged

__all__ = ["BatchStats"]

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0)
ENTRIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
BYTES = (128, 512, 1024, 2048, 4096, 16384, 131072, 1048576)
"""The edges that BP-62 has for a bookie's responses."""
NAME = "bookie_client_batch_read"


class Distribution:
    """Counts by size; an edge belongs to the bucket below it."""

    def __init__(self, edges: Sequence[float]) -> None:
        self._edges = edges
        self._counts = [0] * (len(edges) + 1)
        self._sum = 0.0

    def note(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._edges, value)] += 1
        self._sum += value

    def family(self, name: str, text: str, labels: tuple[tuple[str, str], ...] = ()) -> Family:
        """Return the counts as a histogram."""
        counts = dict(zip((*self._edges, float("inf")), self._counts, strict=True))
        return histogram(name, text, counts, self._sum, labels)


class BatchStats:
    """The counts of one client. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = {True: Distribution(SECONDS), False: Distribution(SECONDS)}
        self._entries = Distribution(ENTRIES)
        self._bytes = Distribution(BYTES)
        self._fallbacks = dict.fromkeys(Fallback, 0)

    def read(self, seconds: float, entries: int, nbytes: int) -> None:
        """Count a batch read that brought entries, with the bytes of their records."""
        with self._lock:
            self._seconds[True].note(seconds)
            self._entries.note(entries)
            self._bytes.note(nbytes)

    def failed(self, seconds: float) -> None:
        """Count a batch read that brought an error."""
        with self._lock:
            self._seconds[False].note(seconds)

    def fell_back(self, reason: Fallback) -> None:
        """Count a call whose entries were read one by one."""
        with self._lock:
            self._fallbacks[reason] += 1

    def families(self) -> list[Family]:
        """Return the counts as metrics."""
        with self._lock:
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
