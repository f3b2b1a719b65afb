"""`python -m perf.client_pipeline`: the asyncio client compared with the blocking channel, on one bookie, in turn.

Batch reads from cache with several outstanding, and adds of 1 KiB with 1,000 outstanding, over one connection each.
The client runs on the last CPU, the bookie on the others. Prints one JSON object: medians in entries per second.
"""

import asyncio
import itertools
import json
import os
import shutil
import statistics
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bookie.client import Channel, ChannelV3, Digest, Extensions
from bookie.client.bookies import BookieClient
from bookie.client.config import ClientConfig
from bookie.errors import BookKeeperError
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import CLIENT_CPU, kept_apart
from perf.side_by_side.servers import OurBookie

DATA = ROOT / "build/perf/client-pipeline"
DIGEST = Digest.of()
SIZE = 1024
ENTRIES = 100_000
MANY = 5 << 20
WINDOW = 1000
CHUNK = 100


def sealed(ledger: int, first: int, count: int) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
    """Return sealed entries as records, with their offsets and ids."""
    payload = bytes(SIZE)
    entries = [DIGEST.seal(ledger, entry, payload, lac=entry - 1, length=0) for entry in range(first, first + count)]
    run = b"".join(len(entry).to_bytes(4, "big") + entry for entry in entries)
    step = len(entries[0]) + 4
    return run, np.arange(0, step * count + 1, step, dtype=np.int64), np.arange(first, first + count, dtype=np.int64)


class Blocking:
    """The blocking channel."""

    def __init__(self, port: int, *, v3: bool) -> None:
        self._connect: Callable[[], Channel | ChannelV3] = lambda: (ChannelV3 if v3 else Channel).connect(
            "127.0.0.1", port
        )

    def read(self, batch: int, outstanding: int, seconds: float) -> float:
        """Return the rate in entries per second."""
        with self._connect() as channel:
            if isinstance(channel, ChannelV3):
                channel.extensions = Extensions(["batchRead"])
            starts = itertools.cycle(range(0, ENTRIES - batch, batch))
            waiting = deque(channel.batch_read_async(1, next(starts), batch, MANY) for _ in range(outstanding))
            read, began = 0, time.perf_counter()
            while time.perf_counter() - began < seconds:
                read += len(waiting.popleft().result())
                waiting.append(channel.batch_read_async(1, next(starts), batch, MANY))
            return read / (time.perf_counter() - began)

    def add(self, ledger: int, count: int) -> float:
        """Return the rate in entries per second; sealing by the channel is included."""
        payloads = bytes(SIZE * CHUNK)
        offsets = np.arange(0, SIZE * CHUNK + 1, SIZE, dtype=np.int64)
        began = time.perf_counter()
        with self._connect() as channel, channel.add_stream(ledger, 0, digest=DIGEST, outstanding=WINDOW) as stream:
            for _ in range(count // CHUNK):
                stream.append(payloads, offsets)
        return count / (time.perf_counter() - began)


class Adder:
    """Keeps a window of unacknowledged adds."""

    def __init__(self) -> None:
        self.answers = 0
        self.changed = asyncio.Event()

    def answered(self, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Count acknowledged adds."""
        assert not codes.any()
        self.answers += len(entries)
        self.changed.set()

    def lost(self, error: BookKeeperError) -> None:
        """Raise the error that ended the connection."""
        raise error

    def on_room(self) -> None:
        """Do nothing: the window is the limit."""


class Asyncio:
    """The asyncio client."""

    def __init__(self, port: int, *, v3: bool) -> None:
        self._bookie = f"127.0.0.1:{port}"
        self._config = ClientConfig(use_v2_wire_protocol=not v3)
        properties = {"pybk.v3.ext": "batchRead"}
        self._info = BookieServiceInfo((bookie_endpoint("127.0.0.1", port),), properties).to_bytes()

    async def _registered(self, _: str) -> bytes:
        return self._info

    def read(self, batch: int, outstanding: int, seconds: float) -> float:
        """Return the rate in entries per second."""

        async def main() -> float:
            async with BookieClient(self._config, self._registered) as client:
                starts = itertools.cycle(range(0, ENTRIES - batch, batch))
                read, began = 0, time.perf_counter()

                async def reader() -> None:
                    nonlocal read
                    while time.perf_counter() - began < seconds:
                        got = await client.batch_read(self._bookie, 1, next(starts), batch, MANY)
                        read += len(got)

                await asyncio.gather(*(reader() for _ in range(outstanding)))
                return read / (time.perf_counter() - began)

        return asyncio.run(main())

    def add(self, ledger: int, count: int) -> float:
        """Return the rate in entries per second; sealing is not included."""

        async def main() -> float:
            async with BookieClient(self._config, self._registered) as client:
                adder = Adder()
                sender = client.adds(self._bookie, ledger, DIGEST.master_key, adder)
                began = time.perf_counter()
                chunks = [sealed(ledger, first, CHUNK) for first in range(0, 10 * CHUNK, CHUNK)]
                for first in range(0, count, CHUNK):
                    while first + CHUNK - adder.answers > WINDOW:
                        adder.changed.clear()
                        await adder.changed.wait()
                    run, offsets, _ = chunks[first // CHUNK % len(chunks)]
                    renumbered = np.frombuffer(run, dtype=np.uint8).reshape(CHUNK, -1).copy()
                    ids = np.arange(first, first + CHUNK, dtype=np.int64)
                    renumbered[:, 12:20] = ids.astype(">i8").view(np.uint8).reshape(CHUNK, 8)
                    sender.send(renumbered.ravel().data, offsets, ids)
                while adder.answers < count:
                    adder.changed.clear()
                    await adder.changed.wait()
                rate = count / (time.perf_counter() - began)
                sender.close()
                return rate

        return asyncio.run(main())


@click.command()
@click.option("--pairs", default=3, show_default=True, help="Number of measurements of each client.")
@click.option("--seconds", default=2.0, show_default=True, help="Duration of each measurement of reads.")
@click.option("--adds", default=100_000, show_default=True, help="Number of entries in each measurement of adds.")
@click.option("--protocol", default=2, show_default=True)
@click.option("--only", default="", help="Run only measurements whose name contains this.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(pairs: int, seconds: float, adds: int, protocol: int, only: str, directory: Path) -> None:
    """Measure both clients."""
    shutil.rmtree(directory, ignore_errors=True)
    server = OurBookie(directory / "bookie")
    server.start({})
    ledgers = itertools.count(10)
    rates: dict[str, dict[str, list[float]]] = {}
    try:
        with Channel.connect("127.0.0.1", server.port) as channel:
            data, offsets = bytes(ENTRIES * SIZE), np.arange(0, ENTRIES * SIZE + 1, SIZE, dtype=np.int64)
            channel.add_batch(1, 0, data, offsets, digest=DIGEST)
            del data, offsets
        os.sched_setaffinity(0, {CLIENT_CPU})
        clients = {kind.__name__.lower(): kind(server.port, v3=protocol == 3) for kind in (Blocking, Asyncio)}
        with kept_apart(server.pid):
            for _ in range(pairs):
                for batch, outstanding in ((100, 4), (100, 8), (500, 4)):
                    name = f"read {batch} x {outstanding}"
                    if only in name:
                        for who, client in clients.items():
                            done = client.read(batch, outstanding, seconds)
                            rates.setdefault(name, {}).setdefault(who, []).append(done)
                name = f"add x {WINDOW}"
                if only in name:
                    for who, client in clients.items():
                        rates.setdefault(name, {}).setdefault(who, []).append(client.add(next(ledgers), adds))
    finally:
        server.stop()
    shutil.rmtree(directory, ignore_errors=True)
    medians = {name: {who: round(statistics.median(runs)) for who, runs in by.items()} for name, by in rates.items()}
    print(json.dumps({"protocol": protocol, "entries_per_s": medians}))


if __name__ == "__main__":
    main()
