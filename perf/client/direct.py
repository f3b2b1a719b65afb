"""`python -m perf.client.direct`: adds and reads by the client for threads, with and without direct connections, and
by a C client, of one bookie, in turn.

Each row is one thread with a ledger of one replica: it adds entries one by one, each of them synced, or reads them from
the bookie's cache: one by one, in batches one after the other, and a range in batches. The C client is `bkload`, which
checks no digests and keeps nothing, over one connection with the same requests, on the same CPU; for the range it is
the better one of one and four batches outstanding. With `--tls`, our connections are encrypted, and the C client's are
not. Prints medians of paired runs, in entries per second and in CPU microseconds of the client per entry, as one JSON
line a row.
"""

import json
import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import click

from bookie.client import BookKeeper
from bookie.client.blocking.handles import ReadHandle
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import CLIENT_CPU, bkload, kept_apart, place
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.server.test_tls import keys_of

DATA = ROOT / "build/perf/client-direct"
CACHES = {"dbStorage_writeCacheMaxSizeMb": "1024", "dbStorage_readAheadCacheMaxSizeMb": "512", "logLevel": "info"}
BATCH = 100
WARMING = 200
"""Entries that are added before the clock starts."""
LONE_ADDS = "lone adds"
FREE_LEDGER = 1 << 40
"""The id of the first ledger of the C client's adds, which no client creates."""

Measured = tuple[float, float]
"""Entries per second, and CPU microseconds of the client per entry."""


def fill(uri: str, entries: int, size: int) -> int:
    """Write a ledger, and return its id."""
    payload = bytes(range(256)) * (size // 256 + 1)
    with BookKeeper(uri, useV2WireProtocol=True) as bk:
        with bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, digest_type="CRC32C") as ledger:
            for _ in range(entries):
                ledger.append_async(payload[:size])
        return ledger.id


def measured(read: Callable[[], int]) -> Measured:
    """Run a reader that returns the number of entries."""
    began, spent = time.perf_counter(), time.process_time()
    count = read()
    return count / (time.perf_counter() - began), (time.process_time() - spent) / count * 1e6


def lone(reader: ReadHandle, count: int) -> int:
    """Read entries one by one."""
    for entry in range(count):
        reader.read(entry)
    return count


def one_after_another(reader: ReadHandle, count: int) -> int:
    """Read batches one after the other."""
    at = 0
    while at < count:
        at = reader.batch_read(at, BATCH).last + 1
    return at


def ahead(reader: ReadHandle, count: int) -> int:
    """Read a range in batches."""
    with reader.batches(0, count - 1, max_count=BATCH) as batches:
        return sum(map(len, batches))


def added(bk: BookKeeper, count: int, size: int) -> Measured:
    """Add entries one by one, each after the one before is acknowledged, to a new ledger that is deleted again."""
    payload = bytes(range(256)) * (size // 256 + 1)
    payload = payload[:size]
    with bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, digest_type="CRC32C") as ledger:
        for _ in range(WARMING):
            ledger.append(payload)

        def add() -> int:
            for _ in range(count):
                ledger.append(payload)
            return count

        found = measured(add)
    bk.delete_ledger(ledger.id)
    return found


ROWS: dict[str, tuple[Callable[[ReadHandle, int], int], str, tuple[int, ...], int]] = {
    "lone reads": (lone, "read", (1,), 20),
    f"batch_read({BATCH})": (one_after_another, "batch", (1,), 1),
    f"batches by {BATCH}": (ahead, "batch", (1, 4), 1),
}
"""What our client does, what bkload does, with how many requests outstanding, and the share of the entries read."""


@click.command(help=__doc__)
@click.option("--pairs", default=5, show_default=True)
@click.option("--entries", default=400_000, show_default=True, help="Of the ledger that is read.")
@click.option("--adds", default=10_000, show_default=True, help="Of each run.")
@click.option("--only", default="", help="The rows whose name contains this.")
@click.option("--size", default=1024, show_default=True, help="Bytes of an entry's payload.")
@click.option("--protocol", default=2, show_default=True, type=click.IntRange(2, 3))
@click.option("--tls", is_flag=True, help="Encrypt our connections.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(
    pairs: int, entries: int, adds: int, only: str, size: int, protocol: int, directory: Path, *, tls: bool
) -> None:
    """Measure and print."""
    shutil.rmtree(directory, ignore_errors=True)
    settings: dict[str, object] = {"useV2WireProtocol": protocol == 2}
    keys = CACHES
    if tls:
        ca = Authority(directory / "ca")
        keys = CACHES | keys_of(ca)
        settings["clientTrustStore"] = str(ca.certificate)
    bookie = BookieProcess(directory / "bookie", f"lmdb://{directory}/metadata", keys)
    bookie.start()
    try:
        uri = f"grpc://{bookie.admin}"
        with (
            kept_apart(bookie.pid),
            BookKeeper(uri, **settings) as direct,
            BookKeeper(uri, **settings, maxDirectConnectionsPerBookie=0) as other,
        ):
            place(os.getpid(), {CLIENT_CPU})
            if only in LONE_ADDS:
                print(json.dumps(adds_row(direct, other, bookie.port, pairs, adds, size, protocol)), flush=True)
            if any(only in name for name in ROWS):
                reads(direct, other, bookie, pairs, entries, size, protocol, only)
    finally:
        bookie.kill()
        shutil.rmtree(directory, ignore_errors=True)


def adds_row(
    direct: BookKeeper, other: BookKeeper, port: int, pairs: int, count: int, size: int, protocol: int
) -> dict[str, object]:
    """Measure adds."""
    found: dict[str, list[Measured]] = {"direct": [], "event loop": []}
    bound: list[float] = []
    for pair in range(pairs):
        found["direct"].append(added(direct, count, size))
        done = bkload("add", port=port, size=size, first_ledger=FREE_LEDGER + pair, count=count, outstanding=1,
                      protocol=protocol)  # fmt: skip
        bound.append(float(done["entries_s"]))
        found["event loop"].append(added(other, count, size))
    return row(LONE_ADDS, bound, found)


def reads(
    direct: BookKeeper,
    other: BookKeeper,
    bookie: BookieProcess,
    pairs: int,
    entries: int,
    size: int,
    protocol: int,
    only: str,
) -> None:
    """Measure the rows of reads, and print them."""
    ledger = fill(f"grpc://{bookie.admin}", entries, size)
    with direct.open_ledger(ledger) as reader, other.open_ledger(ledger) as by_loop:
        for name, (read, mode, depths, share) in ROWS.items():
            if only not in name:
                continue
            count = entries // share // BATCH * BATCH
            found: dict[str, list[Measured]] = {"direct": [], "event loop": []}
            bound: list[float] = []
            for one in (reader, by_loop):
                read(one, count // 10)
            for _ in range(pairs):
                found["direct"].append(measured(lambda: read(reader, count)))  # noqa: B023
                bound.append(max(c_rate(bookie.port, ledger, mode, size, entries, count, protocol, k) for k in depths))
                found["event loop"].append(measured(lambda: read(by_loop, count)))  # noqa: B023
            print(json.dumps(row(name, bound, found)), flush=True)


def c_rate(
    port: int, ledger: int, mode: str, size: int, entries: int, count: int, protocol: int, outstanding: int
) -> float:
    """Return the entries per second of the C client."""
    requests = count // BATCH if mode == "batch" else count
    done = bkload(mode, port=port, size=size, first_ledger=ledger, entries=entries // BATCH * BATCH, batch=BATCH,
                  count=requests, outstanding=outstanding, protocol=protocol)  # fmt: skip
    return float(done["entries_s"])


def row(name: str, bound: list[float], found: dict[str, list[Measured]]) -> dict[str, object]:
    """Return the medians and the median ratios of a row."""
    direct, by_loop = found["direct"], found["event loop"]

    def middle(values: list[float], digits: int) -> float:
        return round(statistics.median(values), digits)

    return {
        "row": name,
        "c_s": middle(bound, 0),
        "direct_s": middle([rate for rate, _ in direct], 0),
        "loop_s": middle([rate for rate, _ in by_loop], 0),
        "by_c": middle([rate / other for (rate, _), other in zip(direct, bound, strict=True)], 2),
        "by_loop": middle([one / other for (one, _), (other, _) in zip(direct, by_loop, strict=True)], 2),
        "direct_cpu_us": middle([cpu for _, cpu in direct], 3),
        "loop_cpu_us": middle([cpu for _, cpu in by_loop], 3),
    }


if __name__ == "__main__":
    main()
