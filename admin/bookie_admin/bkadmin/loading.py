"""The load generator of `bkadmin bench`, on the client for threads: each workload first at full speed, through the
calls that handle many entries at once, and then by calls that are awaited one after the other.

The latency of an awaited call is measured as the application sees it. Everything here runs on the caller's thread.
"""

import itertools
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bookie.client import ReadHandle, WriteHandle
from bookie.errors import BookKeeperError
from bookie.terminal.output import Count

__all__ = ["add", "batch", "Latencies", "read", "Run"]

BUCKETS_AN_OCTAVE = 32
BUCKETS = 40 * BUCKETS_AN_OCTAVE
MB = 1_000_000
CHUNK_BYTES = 4 << 20
"""The most bytes that one call adds, or reads by single reads."""
CHUNK_ENTRIES = 1000
TICK_S = 0.25
QUANTILES = {"50": 0.5, "95": 0.95, "99": 0.99, "99_9": 0.999}


class Latencies:
    """A histogram of latencies with buckets 2 % apart, so that its size does not depend on the number of samples."""

    def __init__(self) -> None:
        self._counts = [0] * BUCKETS
        self.count = 0
        self.max_s = 0.0

    def note(self, seconds: float) -> None:
        """Count one latency, in seconds."""
        bucket = int(math.log2(max(seconds * 1e6, 1.0)) * BUCKETS_AN_OCTAVE)
        self._counts[min(bucket, BUCKETS - 1)] += 1
        self.count += 1
        self.max_s = max(self.max_s, seconds)

    def quantile_ms(self, share: float) -> float | None:
        """Return the upper bound, in milliseconds, of the bucket that holds the quantile `share` (0 to 1), or None
        without samples.
        """
        wanted, seen = share * self.count, 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return float(min(2 ** ((bucket + 1) / BUCKETS_AN_OCTAVE) / 1e3, self.max_s * 1e3))
        return None


class Run:
    """One workload, which runs for `duration_s` seconds at full speed and as long by awaited calls. It calls
    `progress(elapsed_s, total_s)` four times a second.
    """

    def __init__(self, workload: str, duration_s: float, progress: Callable[[float, float], None]) -> None:
        self.workload = workload
        self.duration_s = duration_s
        self.progress = progress
        self.latencies = Latencies()
        self.entries = 0
        self.bytes = 0
        self.seconds = 0.0
        self.awaited_entries = 0
        self.awaited_s = 0.0
        self.error = ""
        self._before_s = 0.0
        self._told = 0.0

    def measure(self, at_full_speed: Callable[[], None], awaited: Callable[[], None]) -> None:
        """Run both parts. The first BookKeeperError ends them and is kept in `error`."""
        begun = now = time.monotonic()
        try:
            at_full_speed()
            now = time.monotonic()
            self._before_s = self.duration_s
            awaited()
        except BookKeeperError as error:
            self.error = str(error)
        if now == begun:  # the first part failed
            self.seconds = time.monotonic() - begun
        else:
            self.seconds, self.awaited_s = now - begun, time.monotonic() - now

    def turns(self) -> Iterator[None]:
        """Yield until `duration_s` seconds are over, at least once."""
        begun = now = time.monotonic()
        while True:
            yield
            now = time.monotonic()
            if now - begun >= self.duration_s:
                return
            if now - self._told >= TICK_S:
                self._told = now
                self.progress(self._before_s + now - begun, 2 * self.duration_s)

    def done(self, entries: int, size: int) -> None:
        """Count entries and their bytes of the part at full speed."""
        self.entries += entries
        self.bytes += size

    def awaited(self, begun: float, entries: int) -> None:
        """Count an awaited call that began at `begun`, in monotonic seconds, and its entries."""
        self.latencies.note(time.monotonic() - begun)
        self.awaited_entries += entries

    def row(self) -> dict[str, Any]:
        """Return the results as a row for the output; it has `error` only if the workload failed."""
        row = {
            "workload": self.workload,
            "entries": Count(self.entries),
            "seconds": round(self.seconds, 3),
            "entries_per_s": Count(round(self.entries / self.seconds) if self.seconds else 0),
            "mb_per_s": round(self.bytes / self.seconds / MB, 3) if self.seconds else 0.0,
            "awaited_per_s": Count(round(self.awaited_entries / self.awaited_s) if self.awaited_s else 0),
            **{f"p{name}_ms": self.latencies.quantile_ms(share) for name, share in QUANTILES.items()},
            "max_ms": self.latencies.max_s * 1e3,
        }
        return {**row, "error": self.error} if self.error else row


def add(run: Run, ledgers: Sequence[WriteHandle], *, size: int, window: int) -> None:
    """Append entries of `size` bytes to the ledgers in turn: many a call while each has room for `window`
    unacknowledged entries, and then one a call.
    """
    chunk = min(max(1, window // 2), _chunk(size))
    payload = os.urandom(size)
    payloads = payload * chunk
    offsets = np.arange(chunk + 1, dtype=np.int64) * size

    def at_full_speed() -> None:
        for _, ledger in zip(run.turns(), itertools.cycle(ledgers), strict=False):
            ledger.append_all(payloads, offsets)
            run.done(chunk, len(payloads))
        for ledger in ledgers:
            ledger.flush()

    def awaited() -> None:
        for _, ledger in zip(run.turns(), itertools.cycle(ledgers), strict=False):
            begun = time.monotonic()
            ledger.append(payload)
            run.awaited(begun, 1)

    run.measure(at_full_speed, awaited)


def read(run: Run, ledgers: Sequence[ReadHandle]) -> None:
    """Read by single reads: ranges, for which the client has many reads in flight, and then one entry a call, each at
    a random place.
    """
    draw = random.Random(1)

    def at_full_speed() -> None:
        for _ in run.turns():
            ledger = draw.choice(ledgers)
            last = ledger.last_add_confirmed
            first = draw.randint(0, last)
            got = ledger.read(first, min(last, first + _chunk(ledger.length // (last + 1)) - 1))
            run.done(len(got), got.nbytes)

    def awaited() -> None:
        for _ in run.turns():
            ledger = draw.choice(ledgers)
            entry = draw.randint(0, ledger.last_add_confirmed)
            begun = time.monotonic()
            ledger.read(entry)
            run.awaited(begun, 1)

    run.measure(at_full_speed, awaited)


def batch(run: Run, ledgers: Sequence[ReadHandle], *, count: int) -> None:
    """Read the ledgers in order, again and again, in batches of `count` entries: reading ahead, and then one batch a
    call.
    """

    def at_full_speed() -> None:
        turns = run.turns()
        for ledger in itertools.cycle(ledgers):
            with ledger.batches(max_count=count) as batches:
                for got in batches:
                    run.done(len(got), got.nbytes)
                    if next(turns, turns) is turns:
                        return

    def awaited() -> None:
        turns = run.turns()
        for ledger in itertools.cycle(ledgers):
            entry, last = 0, ledger.last_add_confirmed
            while entry <= last:
                begun = time.monotonic()
                got = ledger.batch_read(entry, count)
                run.awaited(begun, len(got))
                entry = got.last + 1
                if next(turns, turns) is turns:
                    return

    run.measure(at_full_speed, awaited)


def _chunk(size: int) -> int:
    """Return how many entries of `size` bytes one call handles."""
    return max(1, min(CHUNK_ENTRIES, CHUNK_BYTES // max(size, 1)))
