"""BP-62's own table (`make bench-batches`): a ledger read singly, in batches of 100 and of 500, beside the document's
figures.

Both bookies are read by both clients over V2, with entries of 100 bytes and of 1 KiB, from the write cache.
Each round is Java's client, then our asyncio client and our client for threads in the same way, of which the last is
what pytest-benchmark times, and then its reader of ranges. "One at a time" waits for each entry before it asks for the
next; "singly" asks for ranges of a thousand, for which all clients send a request per entry. The table has medians of
the rounds, and ratios within a round.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bookie.client import BookKeeper
from bookie.client.blocking.handles import ReadHandle
from bookie.client.ledgers.reader import LedgerReader
from perf.client.reads import DATA, Place, Read, javas, one_by_one, place, singles
from tests.fixtures.java_peer import JavaUnavailable, find_peer

ENTRIES, LONE_ENTRIES = 100_000, 2_000
ROUNDS = 3
SIZES = (100, 1024)
SINGLY = "singly"
JAVA, OURS, ASYNCIO, RANGES = "Java", "ours", "ours, asyncio", "ours, ranges"


@dataclass(frozen=True, slots=True)
class Row:
    """A way to read: entries per call, and what the document reports, in entries per second."""

    count: int
    read: Read
    document: float = 0.0

    @property
    def batch(self) -> bool:
        """Whether it uses batch reads."""
        return self.read is one_by_one

    @property
    def entries(self) -> int:
        """The number of entries to read."""
        return LONE_ENTRIES if self.count == 1 else ENTRIES


ROWS = {
    "one at a time": Row(1, singles),
    SINGLY: Row(1000, singles, 1_000_130 / 199.928),
    "batches of 100": Row(100, one_by_one, 1_000_100 / 8.904),
    "batches of 500": Row(500, one_by_one, 1_000_500 / 12.182),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The medians of a row, in entries per second; `by_java` are those of our rates by Java's in the same pair."""

    kind: str
    size: int
    name: str
    rates: dict[str, float]
    by_java: dict[str, float]


@dataclass(frozen=True, slots=True)
class Shelf:
    """A running bookie with a ledger of each size, and readers of both clients, by size."""

    where: Place
    kind: str
    handles: dict[int, int]
    readers: dict[int, LedgerReader]
    blocking: dict[int, ReadHandle]
    runner: asyncio.Runner

    def javas(self, size: int, row: Row) -> float:
        """Return the rate of Java's client."""
        return javas(self.where, self.handles[size], row.entries - 1, row.count, batch=row.batch)

    def asyncio(self, size: int, row: Row) -> float:
        """Return the rate of our asyncio client."""

        async def whole() -> int:
            return await row.read(self.readers[size], row.entries - 1, row.count)

        return rate_of(lambda: self.runner.run(whole()), row.entries)

    def ours(self, size: int, row: Row) -> float:
        """Return the rate of our client for threads."""
        return rate_of(lambda: in_turn(self.blocking[size], row), row.entries)

    def ranges(self, size: int, row: Row) -> float:
        """Return the rate of its reader of ranges."""

        def whole() -> int:
            with self.blocking[size].batches(0, row.entries - 1, max_count=row.count) as batches:
                return sum(map(len, batches))

        return rate_of(whole, row.entries)


def rate_of(read: Callable[[], int], entries: int) -> float:
    """Return the entries per second of a reader that must read so many."""
    began = time.perf_counter()
    assert read() == entries
    return entries / (time.perf_counter() - began)


def in_turn(reader: ReadHandle, row: Row) -> int:
    """Read a ledger with one call after another, and return the number of entries."""
    at = 0
    while at < row.entries:
        if row.batch:
            at = reader.batch_read(at, row.count).last + 1
        else:
            at = reader.read(at, min(row.entries, at + row.count) - 1).last + 1
    return at


@pytest.fixture(scope="module")
def measured(lines: list[str]) -> Iterator[list[Measured]]:
    """The results of this run, which become the table."""
    found: list[Measured] = []
    yield found
    lines += table(found)


@pytest.fixture(scope="module", params=["ours", "java"])
def shelf(request: pytest.FixtureRequest) -> Iterator[Shelf]:
    """One bookie after the other. Java's client has read each ledger before, so that its code is compiled."""
    try:
        find_peer()
    except JavaUnavailable as reason:
        pytest.skip(str(reason))
    with (
        place(DATA, request.param) as where,
        BookKeeper(where.uri, useV2WireProtocol=True) as threads,
        asyncio.Runner() as runner,
    ):
        ends = AsyncExitStack()
        handles, readers, blocking = {}, {}, {}
        for ledger, size in enumerate(SIZES, 1):
            where.fill(ledger, ENTRIES, size)
            readers[size] = runner.run(ends.enter_async_context(where.reader(ledger)))
            blocking[size] = threads.open_ledger(ledger)
            handles[size] = where.java.call("open", ledger=ledger)["handle"]
        one = Shelf(where, request.param, handles, readers, blocking, runner)
        for size in SIZES:
            for name in (SINGLY, "batches of 500"):
                one.javas(size, ROWS[name])
        yield one
        runner.run(ends.aclose())


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("size", SIZES)
def test_reads(benchmark: BenchmarkFixture, shelf: Shelf, measured: list[Measured], size: int, name: str) -> None:
    """Measure a row of the table on one bookie."""
    row = ROWS[name]
    rates: dict[str, list[float]] = {JAVA: [], OURS: [], ASYNCIO: [], RANGES: []}

    def others() -> None:
        rates[JAVA].append(shelf.javas(size, row))
        rates[ASYNCIO].append(shelf.asyncio(size, row))
        if row.batch:
            rates[RANGES].append(shelf.ranges(size, row))

    def ours() -> None:
        rates[OURS].append(shelf.ours(size, row))

    benchmark.pedantic(ours, setup=others, rounds=ROUNDS)  # type: ignore[no-untyped-call]
    medians = {client: statistics.median(found) for client, found in rates.items() if found}
    by_java = {
        client: statistics.median(one / other for one, other in zip(some, rates[JAVA], strict=True))
        for client, some in rates.items()
        if some and client != JAVA
    }
    benchmark.extra_info.update(entries=row.entries, entries_s=medians, document=row.document)
    measured.append(Measured(shelf.kind, size, name, medians, by_java))


def table(found: list[Measured]) -> list[str]:
    """Return the table as lines of Markdown. Batches have their multiple of the same client's single reads."""
    clients = (JAVA, OURS, ASYNCIO, RANGES)
    lines = [
        f"| bookie | bytes | | BP-62 | {' | '.join(clients)} | ours by Java's | asyncio by Java's | ranges by Java's |",
        "|---" * (len(clients) + 7) + "|",
    ]
    singly = {(one.kind, one.size): one.rates for one in found if one.name == SINGLY}
    for one in found:
        row = ROWS[one.name]
        base = singly.get((one.kind, one.size), {}) if row.batch else {}
        base = {**base, RANGES: base[OURS]} if base else {}
        cells = [one.kind, str(one.size), one.name, rate(row.document, ROWS[SINGLY].document if row.batch else 0)]
        cells += [rate(one.rates.get(client, 0), base.get(client, 0)) for client in clients]
        cells += [f"{one.by_java[client]:.1f}" if client in one.by_java else "" for client in clients[1:]]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def rate(entries_s: float, singly: float) -> str:
    """Return a rate, and how many times that of single reads it is."""
    if not entries_s:
        return ""
    return f"{entries_s:,.0f}" + (f" ({entries_s / singly:.1f}x)" if singly else "")
