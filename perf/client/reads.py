"""`python -m perf.client.reads`: a ledger read by our client and by Apache BookKeeper's, from the same bookie, in
turn.

One bookie holds one ledger of one replica; both clients read all of it in V2, from the bookie's caches or the page
cache. Our client runs on asyncio in this process, Java's in a process of its own that has read the ledger once before.
The bound is a minimal C client that requests the same batches from the same bookie and discards the responses without
checking digests. Medians of paired runs. `memory` reads a large ledger and records memory; test_batch_table.py has
BP-62's own table.
"""

import asyncio
import contextlib
import json
import resource
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np

from bookie.client import Channel, Digest
from bookie.client.bookies import BookieClient, MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.placement.default import DefaultPlacement
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import bkload
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import LASTING, find_peer
from tests.fixtures.java_process import JavaBookie, init_cluster
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.interop.driver import Driver

DATA = ROOT / "build/perf/client-reads"
DIGEST = Digest.of()
MIB = 1 << 20
FILL_BYTES = 8 * MIB
SINGLES = 1000
CACHES = {
    "dbStorage_writeCacheMaxSizeMb": "512",
    "dbStorage_readAheadCacheMaxSizeMb": "512",
    "flushInterval": "3600000",  # what fits stays in the write cache
}
SAMPLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """A running bookie, its cluster, and a Java client."""

    uri: str
    bookie: str
    port: int
    java: Driver

    def fill(self, ledger: int, entries: int, size: int) -> None:
        """Return entries of random bytes, of which some MiB are reused."""
        piece = min(entries, max(1, FILL_BYTES // size))
        payloads = np.random.default_rng(1).integers(0, 256, piece * size, dtype=np.uint8)
        offsets = np.arange(piece + 1, dtype=np.int64) * size
        with (
            Channel.connect("127.0.0.1", self.port) as channel,
            channel.add_stream(ledger, 0, digest=DIGEST) as stream,
        ):
            for at in range(0, entries, piece):
                stream.append(payloads.data, offsets[: min(piece, entries - at) + 1])
        asyncio.run(self._create(ledger, entries, size))

    async def _create(self, ledger: int, entries: int, size: int) -> None:
        store = await MetadataStore.open(open_driver(self.uri))
        value = LedgerMetadata(
            ensemble_size=1,
            write_quorum=1,
            ack_quorum=1,
            segments=(Segment(0, (self.bookie,)),),
            state=LedgerState.CLOSED,
            last_entry=entries - 1,
            length=entries * size,
            digest_type=DigestType.CRC32C,
        )
        await store.create(ledger, value)
        await store.close()

    @contextlib.asynccontextmanager
    async def reader(self, ledger: int, **settings: Any) -> AsyncIterator[LedgerReader]:
        """Run our bookie."""
        config = ClientConfig.of({"use_v2_wire_protocol": True, **settings})
        store = await MetadataStore.open(open_driver(self.uri))
        try:
            async with BookieClient(config, store.info) as client:
                placement = DefaultPlacement(config, Random(1))
                versioned = await store.read(ledger)
                context = ClientContext(config, client, store, placement, Random(1))
                yield LedgerReader(ledger, versioned, DIGEST, context)
        finally:
            await store.close()


@contextlib.contextmanager
def place(directory: Path, kind: str) -> Iterator[Place]:
    """Run ZooKeeper, a bookie of this kind, and the Java client."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    peer = find_peer()
    zookeeper = ZooKeeperServer(peer, directory / "zookeeper")
    java = Driver(peer, directory / "driver.log", heap_mb=1024, direct_mb=1024)
    with contextlib.ExitStack() as ending:
        ending.callback(shutil.rmtree, directory, ignore_errors=True)
        zookeeper.start()
        ending.callback(zookeeper.kill)
        uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
        init_cluster(peer, directory / "init", uri)
        bookie: BookieProcess | JavaBookie
        if kind == "java":
            bookie = JavaBookie(
                peer, directory / "bookie", free_port(), uri, CACHES, heap_mb=1024, direct_mb=2048, options=LASTING
            )
        else:
            bookie = BookieProcess(directory / "bookie", uri, {**CACHES, "logLevel": "info"})
        bookie.start()
        ending.callback(bookie.kill)
        java.start()
        ending.callback(java.stop)
        java.call("connect", uri=uri, v2=True, client="main")
        yield Place(uri, bookie.id, bookie.port, java)


# --- our client -------------------------------------------------------------------------------------------------------

Read = Callable[[LedgerReader, int, int], Coroutine[Any, Any, int]]
"""Read entries 0 to last in batches; return their number."""


async def ahead(reader: LedgerReader, last: int, count: int) -> int:
    """Read with the range reader as the synchronous client does: all batches that are available at once."""
    got = 0
    batches = reader.batches(0, last, max_count=count)
    while ready := await batches.ready():
        got += sum(map(len, ready))
    return got


async def touched(reader: LedgerReader, last: int, count: int) -> int:
    """The same, and each entry is accessed from Python."""
    got = total = 0
    batches = reader.batches(0, last, max_count=count)
    while ready := await batches.ready():
        for batch in ready:
            for entry in batch:
                total += entry.data[0]
            got += len(batch)
    assert total
    return got


async def one_by_one(reader: LedgerReader, last: int, count: int) -> int:
    """One batch read after the other."""
    at = 0
    while at <= last:
        at = (await reader.batch_read(at, count)).last + 1
    return at


async def singles(reader: LedgerReader, last: int, count: int) -> int:
    """Ranges of single reads."""
    at = 0
    while at <= last:
        at = (await reader.read(at, min(last, at + count - 1))).last + 1
    return at


def ours(where: Place, ledger: int, last: int, count: int, read: Read, **settings: Any) -> float:
    """Return the rate in entries per second."""

    async def main() -> float:
        async with where.reader(ledger, **settings) as reader:
            await reader.batch_read(0, 1)
            began = time.perf_counter()
            got = await read(reader, last, count)
            took = time.perf_counter() - began
            assert got == last + 1
            return got / took

    return asyncio.run(main())


# --- the bound --------------------------------------------------------------------------------------------------------

BOUND_ROUNDS = 3


def bound(where: Place, ledger: int, entries: int, count: int, size: int, outstanding: int) -> float:
    """Return the entries per second that a C client receives, with a number of batches outstanding."""
    whole = entries - entries % count
    done = bkload("batch", port=where.port, size=size, first_ledger=ledger, entries=whole, batch=count,
                  count=whole // count * BOUND_ROUNDS, outstanding=outstanding)  # fmt: skip
    return float(done["entries_s"])


# --- Java's client ----------------------------------------------------------------------------------------------------


def javas(where: Place, handle: int, last: int, count: int, **options: Any) -> float:
    """Return the rate in entries per second."""
    answer = where.java.call("timed_read", handle=handle, last=last, count=count, **options)
    rate: float = answer["entries"] / answer["seconds"]
    return rate


# --- commands ---------------------------------------------------------------------------------------------------------


@click.group(help=__doc__)
@click.option("--bookie", "kind", default="ours", type=click.Choice(["ours", "java"]), show_default=True)
@click.option("--size", default=1024, show_default=True, help="Bytes of an entry's payload.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
@click.pass_context
def main(context: click.Context, kind: str, size: int, directory: Path) -> None:
    """Choose what to measure."""
    context.obj = (kind, size, directory)


@main.command()
@click.option("--pairs", default=3, show_default=True)
@click.option("--entries", default=300_000, show_default=True)
@click.pass_obj
def pairs(given: tuple[str, int, Path], pairs: int, entries: int) -> None:
    """Measure batch reads of 100 and 500 entries: medians of paired runs, and our rate relative to Java's. Prints one
    JSON line per row.
    """
    kind, size, directory = given
    with place(directory, kind) as where:
        where.fill(1, entries, size)
        last = entries - 1
        handle = where.java.call("open", ledger=1)["handle"]
        javas(where, handle, last, 500)
        for count in (100, 500):
            rows: dict[str, Callable[[], float]] = {
                "java": lambda count=count: javas(where, handle, last, count),  # type: ignore[misc]
                "java, touched": lambda count=count: javas(where, handle, last, count, touch=True),  # type: ignore[misc]
                "java, 16 ahead": lambda count=count: javas(where, handle, last, count, ahead=16),  # type: ignore[misc]
                "ours": lambda count=count: ours(where, 1, last, count, ahead),  # type: ignore[misc]
                "ours, touched": lambda count=count: ours(where, 1, last, count, touched),  # type: ignore[misc]
                "ours, one by one": lambda count=count: ours(where, 1, last, count, one_by_one),  # type: ignore[misc]
                "bound, one by one": lambda count=count: bound(where, 1, entries, count, size, 1),  # type: ignore[misc]
                "bound, 4 ahead": lambda count=count: bound(where, 1, entries, count, size, 4),  # type: ignore[misc]
            }
            rates: dict[str, list[float]] = {name: [] for name in rows}
            for _ in range(pairs):
                for name, measure in rows.items():
                    rates[name].append(measure())
            medians = {name: round(statistics.median(found)) for name, found in rates.items()}
            best = max(("bound, one by one", "bound, 4 ahead"), key=medians.__getitem__)
            line = {
                "bookie": kind,
                "size": size,
                "count": count,
                "entries_s": medians,
                "ours_by_java": ratio(rates["ours"], rates["java"]),
                "touched_by_java": ratio(rates["ours, touched"], rates["java, touched"]),
                "one_by_one_by_java": ratio(rates["ours, one by one"], rates["java"]),
                "ours_by_java_ahead": ratio(rates["ours"], rates["java, 16 ahead"]),
                "bound_by_java": ratio(rates[best], rates["java"]),
                "ours_by_bound": ratio(rates["ours"], rates[best]),
            }
            print(json.dumps(line), flush=True)


@main.command("singles")
@click.option("--pairs", default=3, show_default=True)
@click.option("--entries", default=200_000, show_default=True)
@click.option("--protocol", default=2, show_default=True, type=click.IntRange(2, 3), help="Of our client.")
@click.pass_obj
def single_reads(given: tuple[str, int, Path], pairs: int, entries: int, protocol: int) -> None:
    """Measure single reads: ranges of a thousand one after the other, and our readahead as for a striped ledger."""
    kind, size, directory = given
    settings = {"batch_read_enabled": False, "use_v2_wire_protocol": protocol == 2}
    with place(directory, kind) as where:
        where.fill(1, entries, size)
        last = entries - 1
        handle = where.java.call("open", ledger=1)["handle"]
        rows: dict[str, Callable[[], float]] = {
            "java": lambda: javas(where, handle, last, SINGLES, batch=False),
            "ours": lambda: ours(where, 1, last, SINGLES, singles, **settings),
            "ours, ahead": lambda: ours(where, 1, last, SINGLES, ahead, **settings),
        }
        rows["java"]()
        rates: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(pairs):
            for name, measure in rows.items():
                rates[name].append(measure())
        line = {
            "bookie": kind,
            "size": size,
            "entries_s": {name: round(statistics.median(found)) for name, found in rates.items()},
            "ours_by_java": ratio(rates["ours"], rates["java"]),
            "ahead_by_java": ratio(rates["ours, ahead"], rates["java"]),
        }
        print(json.dumps(line))


def ratio(ones: list[float], others: list[float]) -> float:
    """Return the median of the ratios of pairs."""
    return round(statistics.median(one / other for one, other in zip(ones, others, strict=True)), 2)


@main.command()
@click.option("--gib", default=1.0, show_default=True, help="How large the ledger is; the full measure is 10.")
@click.pass_obj
def memory(given: tuple[str, int, Path], gib: float) -> None:
    """Read a large ledger, access each batch, and print by how much memory grew."""
    kind, size, directory = given
    with place(directory, kind) as where:
        entries = int(gib * (1 << 30) / size)
        where.fill(1, entries, size)
        before = resident_mib()

        async def watched() -> tuple[float, float]:
            most = before
            async with where.reader(1) as reader:
                began = time.perf_counter()
                batches = reader.batches(0, entries - 1)
                sampled = 0.0
                while ready := await batches.ready():
                    now = time.perf_counter()
                    if now - sampled > SAMPLE_S:
                        most, sampled = max(most, resident_mib()), now
                    assert all(len(batch) for batch in ready)
                return most, time.perf_counter() - began

        most, took = asyncio.run(watched())
        line = {
            "bookie": kind,
            "gib": gib,
            "entries": entries,
            "mb_s": round(entries * size / took / 1e6),
            "before_mib": round(before, 1),
            "most_mib": round(most, 1),
            "peak_ever_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        }
        print(json.dumps(line))


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


if __name__ == "__main__":
    main()
