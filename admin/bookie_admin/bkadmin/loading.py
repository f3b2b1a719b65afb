"""The load generator of `bkadmin bench`: adds, single reads and batch reads through the asyncio client.

Latency is measured for each request from the call to its completion as the application sees it, including the time it
waits in the client. Everything here runs on the event loop.
"""

import asyncio
import math
import os
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bookie.client.aio.reading import ReadHandle
from bookie.client.aio.writing import WriteHandle
from bookie.errors import BookKeeperError
from bookie.terminal.output import Count

__all__ = ["add", "batch", "Latencies", "read", "Run"]

BUCKETS_AN_OCTAVE = 32
BUCKETS = 40 * BUCKETS_AN_OCTAVE
MB = 1_000_000


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
    """One workload that runs for `duration_s` seconds and calls `progress(elapsed_s, duration_s)` four times a
    second.
    """

    def __init__(self, workload: str, duration_s: float, progress: Callable[[float, float], None]) -> None:
        self.workload = workload
        self.duration_s = duration_s
        self.progress = progress
        self.latencies = Latencies()
        self.entries = 0
        self.bytes = 0
        self.seconds = 0.0
        self.error = ""

    def done(self, begun: float, entries: int, size: int) -> None:
        """Record a completed request that began at `begun` (monotonic seconds) with its number of entries and its
        bytes.
        """
        self.latencies.note(time.monotonic() - begun)
        self.entries += entries
        self.bytes += size

    async def drive(self, workers: Sequence[Awaitable[None]]) -> None:
        """Run all `workers` concurrently until they end. The first BookKeeperError cancels the others and is kept in
        `error`.
        """
        begun = time.monotonic()
        ticking = asyncio.ensure_future(self._tick(begun))
        tasks = [asyncio.ensure_future(one) for one in workers]
        try:
            await asyncio.gather(*tasks)
        except BookKeeperError as error:
            self.error = str(error)
        finally:
            for task in (*tasks, ticking):
                task.cancel()
            await asyncio.gather(*tasks, ticking, return_exceptions=True)
            self.seconds = time.monotonic() - begun

    async def _tick(self, begun: float) -> None:
        while True:
            self.progress(min(time.monotonic() - begun, self.duration_s), self.duration_s)
            await asyncio.sleep(0.25)

    def row(self) -> dict[str, Any]:
        """Return the results as a row for the output; it has `error` only if the workload failed."""
        found = {f"p{name}_ms": self.latencies.quantile_ms(share) for name, share in QUANTILES.items()}
        row = {
            "workload": self.workload,
            "requests": Count(self.latencies.count),
            "entries": Count(self.entries),
            "seconds": round(self.seconds, 3),
            "entries_per_s": Count(round(self.entries / self.seconds) if self.seconds else 0),
            "mb_per_s": round(self.bytes / self.seconds / MB, 3) if self.seconds else 0.0,
            **found,
            "max_ms": self.latencies.max_s * 1e3,
        }
        return {**row, "error": self.error} if self.error else row


QUANTILES = {"50": 0.5, "95": 0.95, "99": 0.99, "99_9": 0.999}


async def add(run: Run, ledgers: Sequence[WriteHandle], *, size: int, outstanding: int) -> None:
    """Append entries of `size` bytes, with at most `outstanding` unacknowledged ones over all ledgers."""
    window = max(1, outstanding // len(ledgers))
    await run.drive([_adding(run, one, os.urandom(size), window) for one in ledgers])


async def _adding(run: Run, ledger: WriteHandle, payload: bytes, window: int) -> None:
    end = time.monotonic() + run.duration_s
    pending: deque[tuple[float, asyncio.Future[int]]] = deque()
    while True:
        now = time.monotonic()
        going = now < end
        if going and len(pending) < window:
            pending.append((now, ledger.append_async(payload)))
            continue
        if not pending:
            return
        await pending[0][1]
        while pending and pending[0][1].done():
            run.done(pending.popleft()[0], 1, len(payload))


async def read(run: Run, ledgers: Sequence[ReadHandle], *, outstanding: int) -> None:
    """Read single entries at random positions, `outstanding` at a time."""
    await run.drive([_reading(run, ledgers, random.Random(k)) for k in range(outstanding)])


async def _reading(run: Run, ledgers: Sequence[ReadHandle], randomness: random.Random) -> None:
    end = time.monotonic() + run.duration_s
    while (begun := time.monotonic()) < end:
        ledger = randomness.choice(ledgers)
        got = await ledger.read(randomness.randint(0, ledger.last_add_confirmed))
        run.done(begun, 1, got.nbytes)


async def batch(run: Run, ledgers: Sequence[ReadHandle], *, outstanding: int, count: int) -> None:
    """Read the ledgers sequentially, again and again, `count` entries a request, with `outstanding` concurrent
    readers.
    """
    await run.drive([_batches(run, ledgers[k % len(ledgers)], k, count) for k in range(outstanding)])


async def _batches(run: Run, ledger: ReadHandle, reader: int, count: int) -> None:
    end = time.monotonic() + run.duration_s
    last = ledger.last_add_confirmed
    entry = reader * count % (last + 1)
    while (begun := time.monotonic()) < end:
        got = await ledger.batch_read(entry, count)
        run.done(begun, len(got), got.nbytes)
        entry = got.last + 1 if got.last < last else 0
