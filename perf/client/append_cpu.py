"""`python -m perf.client.append_cpu`: what an `append_async` costs the client, in each way of using it, in turn.

One bookie, adds of 16 bytes, and a window of 1,000. On asyncio: `drain` after each call (drained), a `gather` of a
thousand calls (gathered), a thousand tasks that await their calls (awaited), and ten thousand calls that wait in line
for room (in line). In the client for threads: the call alone (threads). The bookie does not sync, since it is the
client that is measured. Prints medians: CPU microseconds of the client per add, and adds per second.
"""

import asyncio
import json
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from bookie.client import BookKeeper, aio
from perf.side_by_side.card import ROOT
from tests.fixtures.bookies import BookieProcess

DATA = ROOT / "build/perf/append-cpu"
SETTINGS = {"dbStorage_writeCacheMaxSizeMb": "512", "journalSyncData": "false", "logLevel": "warning"}
PATIENT = {"add_timeout_s": 60.0}
WINDOW = 1000
LINE = 10_000
PAYLOAD = bytes(16)

Cost = tuple[float, float]
"""CPU microseconds of the client per add, and adds per second."""


async def drained(ledger: aio.WriteHandle, count: int) -> None:
    """Add entries, and wait for room after each."""
    for _ in range(count):
        ledger.append_async(PAYLOAD)
        await ledger.drain()
    await ledger.flush()


async def gathered(ledger: aio.WriteHandle, count: int) -> None:
    """Add a thousand entries at a time, and wait for all."""
    for _ in range(count // WINDOW):
        await asyncio.gather(*(ledger.append_async(PAYLOAD) for _ in range(WINDOW)))


async def awaited(ledger: aio.WriteHandle, count: int) -> None:
    """Add entries from a thousand tasks."""

    async def some() -> None:
        for _ in range(count // WINDOW):
            await ledger.append_async(PAYLOAD)

    await asyncio.gather(*(some() for _ in range(WINDOW)))


async def in_line(ledger: aio.WriteHandle, count: int) -> None:
    """Add ten thousand entries at a time, most of which wait for room."""
    for _ in range(count // LINE):
        for _ in range(LINE):
            ledger.append_async(PAYLOAD)
        await ledger.flush()


WAYS: dict[str, Callable[[aio.WriteHandle, int], Awaitable[None]]] = {
    "drained": drained,
    "gathered": gathered,
    "awaited": awaited,
    "in line": in_line,
}


def on_asyncio(uri: str, count: int, way: str) -> Cost:
    """Add entries with the asyncio client."""

    async def run() -> Cost:
        async with (
            aio.BookKeeper(uri, outstanding_max=WINDOW, **PATIENT) as bk,
            bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger,
        ):
            began, spent = time.perf_counter(), time.process_time()
            await WAYS[way](ledger, count)
            return cost(count, began, spent)

    return asyncio.run(run())


def on_threads(uri: str, count: int) -> Cost:
    """Add entries with the client for threads."""
    with (
        BookKeeper(uri, outstanding_max=WINDOW, **PATIENT) as bk,
        bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger,
    ):
        began, spent = time.perf_counter(), time.process_time()
        for _ in range(count):
            ledger.append_async(PAYLOAD)
        ledger.flush()
        return cost(count, began, spent)


def cost(count: int, began: float, spent: float) -> Cost:
    """Return what the adds have cost since the two clocks were read."""
    return (time.process_time() - spent) / count * 1e6, count / (time.perf_counter() - began)


@click.command(help=__doc__)
@click.option("--rounds", default=5, show_default=True)
@click.option("--adds", default=50_000, show_default=True, help="Of one measurement.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(rounds: int, adds: int, directory: Path) -> None:
    """Measure and print."""
    shutil.rmtree(directory, ignore_errors=True)
    bookie = BookieProcess(directory / "bookie", f"lmdb://{directory}/metadata", SETTINGS)
    bookie.start()
    found: dict[str, list[Cost]] = {}
    try:
        uri = f"grpc://{bookie.admin}"
        for number in range(rounds + 1):
            for way in (*WAYS, "threads"):
                one = on_threads(uri, adds) if way == "threads" else on_asyncio(uri, adds, way)
                if number:  # the first round warms up
                    found.setdefault(way, []).append(one)
    finally:
        bookie.kill()
        shutil.rmtree(directory, ignore_errors=True)
    for at, name in enumerate(("cpu_us", "adds_s")):
        print(
            json.dumps({name: {way: round(statistics.median(c[at] for c in all_), 1) for way, all_ in found.items()}})
        )


if __name__ == "__main__":
    main()
