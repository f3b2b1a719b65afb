"""`python -m perf.thrash`: how often an entry is read from disk before it is served, by the size of the read cache.

Many consumers, each at its own position in one of many ledgers, read sequentially in turn, a few entries at a time,
until each entry was served once. Our bookie is measured by its own counters; Apache BookKeeper's by the bytes that its
process has read (/proc/PID/io), divided by what a single sequential reader of everything makes it read. The files are
in the system's page cache: the reads that the bookie requests are measured, not the disk. `measure` appends rows to a
file, one JSON object each; `draw` makes a table and a plot of them.
"""

import json
import shutil
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import bkload
from perf.side_by_side.java_bookie import JavaServer
from perf.side_by_side.sessions import io_bytes
from perf.thrash_plot import Row, plot, table
from tests.hostile.local import LocalBookie, local_bookie

MIB = 1 << 20
DATA = ROOT / "build/perf/thrash"
ROWS = ROOT / "perf/results/thrash.jsonl"
SIZE = 1024
ENTRY_BYTES = 36 + SIZE
ANSWER_BYTES = 28 + ENTRY_BYTES
LEDGERS = 50
POSITIONS = 4
"""Consumers per ledger, evenly spread over it."""
ENTRIES = 2000
TURN = 10
"""Entries that a consumer requests at once."""
READAHEAD = 200
CONSUMERS = [(ledger, at * ENTRIES // POSITIONS) for at in range(POSITIONS) for ledger in range(LEDGERS)]
SERVED = LEDGERS * ENTRIES


def requests(ledger: int, first: int, count: int) -> bytes:
    """Return consecutive V2 reads."""
    return b"".join(struct.pack(">IIqq", 20, 0x02020000, ledger, first + at) for at in range(count))


def answered(sock: socket.socket, count: int) -> None:
    """Receive responses.

    Raises:
        RuntimeError: one is not an entry of the expected size, or the connection was closed.
    """
    data = memoryview(bytearray(count * ANSWER_BYTES))
    got = 0
    while got < len(data):
        taken = sock.recv_into(data[got:])
        if taken == 0:
            raise RuntimeError("the bookie closed the connection")
        got += taken
    for at in range(0, len(data), ANSWER_BYTES):
        size, _, code = struct.unpack_from(">III", data, at)
        if (size, code) != (ANSWER_BYTES - 4, 0):
            raise RuntimeError(f"unexpected response of {size} bytes with code {code}")


def consume(port: int, consumers: Sequence[tuple[int, int]], each: int) -> float:
    """Let every consumer read `each` entries from its position on, in turn; return the seconds."""
    started = time.monotonic()
    with closing(socket.create_connection(("127.0.0.1", port), timeout=60)) as sock:
        for turn in range(0, each, TURN):
            for ledger, first in consumers:
                sock.sendall(requests(ledger, first + turn, TURN))
                answered(sock, TURN)
    return time.monotonic() - started


def fill(port: int) -> None:
    """Write all ledgers."""
    bkload("fill", port=port, size=SIZE, outstanding=1000, ledgers=LEDGERS, entries=ENTRIES)


@contextmanager
def ours(directory: Path, cache_mb: int = 64, *, adaptive: bool = False) -> Iterator[LocalBookie]:
    """Run our bookie in this process."""
    segment = max(cache_mb // 8, 1) * MIB
    with local_bookie(
        directory, write_cache_bytes=512 * MIB, read_cache_bytes=cache_mb * MIB, read_segment_bytes=segment,
        readahead_entries=READAHEAD, readahead_bytes=4 * MIB, adaptive_readahead=adaptive, log_bytes_max=1 << 30,
        flush_bytes=256 * MIB, throttle_ms_max=10_000, batch_bytes_max=MIB, frame_bytes_max=5 * MIB,
    ) as bookie:  # fmt: skip
        yield bookie


def measure_ours(directory: Path, sizes: Sequence[int], *, adaptive: bool) -> Iterator[Row]:
    """Measure our bookie by its counters; yield a row for each cache size."""
    with ours(directory) as bookie:
        fill(bookie.address[1])
    for cache_mb in sizes:
        with ours(directory, cache_mb, adaptive=adaptive) as bookie:
            seconds = consume(bookie.address[1], CONSUMERS, ENTRIES // POSITIONS)
            stats = bookie.storage.stats()
            entries, _ = bookie.storage.readahead()
        yield {
            "subject": "adaptive" if adaptive else "ours",
            "cache_mb": cache_mb,
            "reads_per_entry": stats["readahead_batch_count"] / SERVED,
            "seconds": seconds,
            "disk_reads": stats["disk_reads"],
            "rereads": stats["rereads"],
            "unused_share": stats["evicted_unused_bytes"] / max(stats["evicted_bytes"], 1),
            "hit_ratio": stats["read_cache_hits"] / SERVED,
            "readahead_bytes": entries,
        }


def measure_java(directory: Path, sizes: Sequence[int]) -> Iterator[Row]:
    """Measure Apache BookKeeper's bookie by the bytes that its process reads; one sequential reader of everything is
    the unit.
    """
    server = JavaServer(directory, {"dbStorage_readAheadCacheBatchSize": str(READAHEAD)})
    server.start()
    try:
        fill(server.port)
        whole = [(ledger, 0) for ledger in range(LEDGERS)]
        once = java_run(server, 256, lambda port: sum(consume(port, [one], ENTRIES) for one in whole))[0]
        for cache_mb in sizes:
            reads, seconds = java_run(server, cache_mb, lambda port: consume(port, CONSUMERS, ENTRIES // POSITIONS))
            yield {"subject": "java", "cache_mb": cache_mb, "reads_per_entry": reads / once, "seconds": seconds}
    finally:
        server.stop()


def java_run(server: JavaServer, cache_mb: int, load: Callable[[int], float]) -> tuple[int, float]:
    """Restart it with this read cache; return the bytes that it read, and the seconds of the load."""
    server.stop()
    server.configure({"dbStorage_readAheadCacheMaxSizeMb": str(cache_mb)})
    server.start()
    before = io_bytes(server.pid, "rchar")
    seconds = load(server.port)
    return io_bytes(server.pid, "rchar") - before, seconds


@click.group()
def main() -> None:
    """Measure, then draw."""


@main.command()
@click.option("--subject", type=click.Choice(["ours", "adaptive", "java"]), default="ours", show_default=True)
@click.option(
    "--rows", default=ROWS, show_default=True, type=click.Path(path_type=Path), help="File to append rows to."
)
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
@click.argument("sizes", nargs=-1, type=int)
def measure(subject: str, rows: Path, directory: Path, sizes: tuple[int, ...]) -> None:
    """Measure read caches of SIZES in MiB, one after the other."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    found = measure_java(directory, sizes) if subject == "java" else measure_ours(
        directory, sizes, adaptive=subject == "adaptive")  # fmt: skip
    try:
        with rows.open("a") as out:
            for row in found:
                print(json.dumps(row), file=out, flush=True)
                print(json.dumps(row))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@main.command()
@click.option("--rows", default=ROWS, show_default=True, type=click.Path(path_type=Path))
@click.option("--svg", default=ROOT / "docs/read-cache.svg", show_default=True, type=click.Path(path_type=Path))
def draw(rows: Path, svg: Path) -> None:
    """Write the plot and print the table."""
    read: list[dict[str, Any]] = [json.loads(line) for line in rows.read_text().splitlines()]
    svg.write_text(plot(read))
    print(table(read))


if __name__ == "__main__":
    main()
