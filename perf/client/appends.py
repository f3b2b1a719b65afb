"""`python -m perf.client.appends`: the Java client and ours append to the same three bookies in turn.

E = W = 3, A = 2, a window of outstanding adds, one payload for all. Bookies are ours or Apache BookKeeper's, with
metadata in one ZooKeeper. Each client warms up; the order alternates from pair to pair. Prints one JSON object per
pair, then the medians. `sync` is our client called from another thread.
"""

import asyncio
import json
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

import bookie.client
from bookie.client import aio
from perf.side_by_side.card import ROOT
from perf.three_bookies import three_bookies
from tests.fixtures.java_peer import find_peer
from tests.fixtures.java_process import init_cluster
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.interop.driver import Driver

DATA = ROOT / "build/perf/appends"
Measure = Callable[[int], float]
"""Appends entries to a new ledger; returns the rate in entries per second."""


@contextmanager
def cluster(kind: str, directory: Path) -> Iterator[str]:
    """Run three bookies of one kind and ZooKeeper; yield the URI of their metadata."""
    peer = find_peer()
    zookeeper = ZooKeeperServer(peer, directory / "zookeeper")
    zookeeper.start()
    try:
        uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
        init_cluster(peer, directory / "init", uri)
        with three_bookies(kind, peer, directory, uri):
            yield uri
    finally:
        zookeeper.kill()


@contextmanager
def java_client(uri: str, directory: Path, size: int, outstanding: int, protocol: int) -> Iterator[Measure]:
    """Apache BookKeeper's client."""
    driver = Driver(find_peer(), directory / "driver.log")
    driver.start()
    try:
        driver.call("connect", uri=uri, v2=protocol == 2)

        def measure(count: int) -> float:
            handle = driver.call("create", e=3, w=3, a=2)["handle"]
            done = driver.call("add", handle=handle, n=count, size=size, window=outstanding, same=True)
            driver.call("close", handle=handle)
            return float(done["rate"])

        yield measure
    finally:
        driver.stop()


def aio_client(uri: str, size: int, outstanding: int, protocol: int) -> Measure:
    """Our client, on asyncio."""
    payload = bytes(size)

    async def run(count: int) -> float:
        async with aio.BookKeeper(uri, use_v2_wire_protocol=protocol == 2, outstanding_max=outstanding) as bk:
            ledger = await bk.create_ledger(
                ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, digest_type="CRC32C"
            )
            async with ledger:
                start = time.perf_counter()
                for _ in range(count):
                    ledger.append_async(payload)
                    await ledger.drain()
                await ledger.flush()
                return count / (time.perf_counter() - start)

    return lambda count: asyncio.run(run(count))


def sync_client(uri: str, size: int, outstanding: int, protocol: int) -> Measure:
    """Our client, called from the main thread."""
    payload = bytes(size)

    def run(count: int) -> float:
        with (
            bookie.client.BookKeeper(uri, use_v2_wire_protocol=protocol == 2, outstanding_max=outstanding) as bk,
            bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, digest_type="CRC32C") as ledger,
        ):
            start = time.perf_counter()
            for _ in range(count):
                ledger.append_async(payload)
            ledger.flush()
            return count / (time.perf_counter() - start)

    return run


@click.command()
@click.option("--pairs", default=5, show_default=True, help="Measurements of each client.")
@click.option("--entries", default=100_000, show_default=True, help="Of one measurement.")
@click.option("--warmup", default=400_000, show_default=True, help="Entries of the Java client before: it compiles.")
@click.option("--outstanding", default=1000, show_default=True, help="Adds without an answer.")
@click.option("--size", default=1024, show_default=True, help="Payload bytes of an entry.")
@click.option("--protocol", default=3, show_default=True, type=click.IntRange(2, 3), help="Of both clients.")
@click.option("--bookies", default="ours,java", show_default=True, help="Which bookies.")
@click.option("--clients", default="java,aio,sync", show_default=True, help="Which clients.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(pairs: int, entries: int, warmup: int, bookies: str, clients: str, directory: Path, **load: int) -> None:
    """Measure appends by both clients."""
    chosen = clients.split(",")
    for kind in bookies.split(","):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        rates: dict[str, list[float]] = {name: [] for name in chosen}
        with cluster(kind, directory) as uri, java_client(uri, directory, **load) as java:
            measures = {"java": java, "aio": aio_client(uri, **load), "sync": sync_client(uri, **load)}
            for name in chosen:
                measures[name](warmup if name == "java" else entries)
            for pair in range(pairs):
                for name in chosen if pair % 2 else chosen[::-1]:
                    rates[name].append(round(measures[name](entries)))
                print(json.dumps({"bookies": kind, **{name: rates[name][-1] for name in chosen}}), flush=True)
        medians = {name: statistics.median(rates[name]) for name in chosen}
        ratios = {
            name: round(statistics.median(a / b for a, b in zip(rates[name], rates["java"], strict=True)), 2)
            for name in chosen
            if "java" in chosen
        }
        print(json.dumps({"bookies": kind, **load, "entries_s": medians, "to_java": ratios}), flush=True)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
