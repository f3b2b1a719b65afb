"""A bookie under mixed load for any length of time: ledgers of all sizes are written, read and deleted, space is
reclaimed, and the process is killed every few seconds. A model knows every acknowledged entry; disk, descriptors and
memory are sampled.

The metadata store is in the test's process and survives the bookie. Threads: writers, a reader, a deleter.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from bookie.metadata.key_value.driver import KeyValueDriver
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from bookie_admin.services.metadata_store import STREAMS_MAX, MetadataService
from tests.crash.model import Model
from tests.crash.peer import OK, Ledger, Peer, PeerLost
from tests.crash.planned import PlannedBookie
from tests.fixtures.leaks import descriptors

__all__ = ["Sample", "Soak"]

MIB = 1 << 20
WRITERS = 2
WINDOW = 200
LIVE_BYTES = 32 * MIB
ENTRIES = (5, 50, 200, 1500)
"""A ledger is closed after one of these numbers of entries."""
COLLECTING = {
    "compactionRateByBytes": "0",
    "dbStorage_readAheadCacheMaxSizeMb": "4",
    "dbStorage_writeCacheMaxSizeMb": "8",
    "flushInterval": "100",
    "gcDeleteShareMax": "1",
    "gcMetadataOpRateLimit": "100000",
    "gcWaitTime": "200",
    "journalMaxMemorySizeMb": "5",
    "logSizeLimit": str(2 * MIB),
    "majorCompactionInterval": "2",
    "minorCompactionInterval": "1",
    "openEntryLogLimit": "32",
    "zkRetryBackoffStartMs": "50",
    "zkTimeout": "2000",
}
"""Thresholds are the defaults; pauses are those of a bookie that lives a thousand times faster."""
SETTLE_S = 120.0

never = threading.Event()


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the bookie at one moment, and what it should hold."""

    at_s: float
    log_bytes: int
    live_bytes: int
    index_bytes: int
    anonymous_bytes: int
    descriptors: int

    @property
    def amplification(self) -> float:
        """Return the bytes of entry logs per live byte."""
        return self.log_bytes / max(self.live_bytes, 1)


class Metadata:
    """The metadata store in this process, and access to it."""

    def __init__(self, directory: Path) -> None:
        self._store = EmbeddedStore(directory)
        self._driver = KeyValueDriver(self._store, session_timeout_s=10)
        self._driver.start()
        if not self._driver.cluster.is_initialized():
            self._driver.cluster.initialize()
        self._service = MetadataService(self._store)
        self._pool = ThreadPoolExecutor(STREAMS_MAX + 8)
        self._server = grpc.server(self._pool)
        self._service.add_to(self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def driver(self) -> KeyValueDriver:
        """Return a driver to create other ledgers with."""
        return self._driver

    def create(self, ledger: int, bookie: str) -> None:
        """Create a ledger on this bookie."""
        metadata = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, (bookie,)),))
        self._driver.ledgers.create(ledger, metadata)

    def delete(self, ledger: int) -> None:
        """Delete a ledger."""
        self._driver.ledgers.delete(ledger)

    def stop(self) -> None:
        """Stop the service and the store."""
        self._service.close()
        self._server.stop(grace=None).wait()
        self._pool.shutdown()
        self._driver.stop()


@dataclass
class Soak:
    """One bookie, its model and its load. Call `run` repeatedly, then `settle`, and examine `model.problems`."""

    bookie: PlannedBookie
    metadata: Metadata
    rng: random.Random
    model: Model
    samples: list[Sample] = field(default_factory=list)
    kills: int = 0
    live_bytes: int = LIVE_BYTES
    """The deleter keeps about this much in live ledgers."""
    pause_s: float = 0.0
    """A writer's pause after each add."""

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._failures: list[BaseException] = []
        self._owned: list[list[Ledger]] = [[] for _ in range(WRITERS)]
        self._begun = time.monotonic()

    @classmethod
    @contextmanager
    def opened(
        cls, directory: Path, seed: str, *, live_bytes: int = LIVE_BYTES, pause_s: float = 0.0, **settings: str
    ) -> Iterator["Soak"]:
        """Open everything but the process; all of it ends with the context."""
        rng = random.Random(seed)
        metadata = Metadata(directory / "store")
        uri = f"grpc://127.0.0.1:{metadata.port}"
        bookie = PlannedBookie(directory / "bookie", {**COLLECTING, "metadataServiceUri": uri, **settings})
        bookie.control = True
        try:
            yield cls(bookie, metadata, rng, Model(rng.randrange(1 << 40)), live_bytes=live_bytes, pause_s=pause_s)
        finally:
            bookie.kill()
            bookie.let_go()
            metadata.stop()

    # The life of the process.

    def start(self) -> None:
        """Start the process and read back a part of everything, sometimes all."""
        self.bookie.start()
        ledgers = self.model.all()
        self.verify(ledgers if self.rng.random() < 0.3 else self.rng.sample(ledgers, min(len(ledgers), 5)))

    def verify(self, ledgers: list[Ledger] | None = None) -> None:
        """Read back these live ledgers, or all."""
        peer = Peer(self.model, "verifier", self.bookie.address)
        try:
            self.model.verify(peer, self.model.all() if ledgers is None else ledgers)
        finally:
            peer.close()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.bookie.kill()
        self.kills += 1

    def load(self, until: Callable[[], None]) -> None:
        """Load the bookie while `until` runs, which returns when the bookie is dead, or shall get no more load."""
        self._over.clear()
        parts: list[Callable[[Peer, random.Random], None]] = [self._read, self._delete]
        parts += [self._writer(owned) for owned in self._owned]
        threads = [
            threading.Thread(target=self._play, args=(part, f"{n}", self.rng.randrange(1 << 60)))
            for n, part in enumerate(parts)
        ]
        for thread in threads:
            thread.start()
        try:
            until()
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        if self._failures:
            raise self._failures[0]

    def watch(self, seconds: float, every_s: float = 0.2) -> None:
        """Take samples for this long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.sample()
            never.wait(min(left, every_s))

    def settle(self) -> dict[str, Any]:
        """Without load, run collections until there is nothing to collect; return the counters of the collection."""
        status: dict[str, Any] = {}
        for _ in range(3):  # each cycle measures what the previous one compacted
            status = self.bookie.order(collect={"timeout_s": SETTLE_S})
            assert status["ended"], f"no end of a forced collection within {SETTLE_S} s: {status}"
        return status

    # Samples.

    def sample(self) -> Sample:
        """Return the present state of the bookie."""
        live = self.model.bytes
        process = Path(f"/proc/{self.bookie.pid}")
        lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
        current = self.bookie.ledgers / "current"
        taken = Sample(
            time.monotonic() - self._begun,
            sum(disk_bytes(path) for path in current.glob("*.log")),
            live,
            disk_bytes(current / "locations.lmdb/data.mdb"),
            int(lines["RssAnon"].split()[0]) << 10,
            sum(to != os.devnull for to in descriptors(self.bookie.pid).values()),
        )
        self.samples.append(taken)
        return taken

    # The threads.

    def _play(self, part: Callable[[Peer, random.Random], None], name: str, seed: int) -> None:
        peer = None
        try:
            peer = Peer(self.model, name, self.bookie.address)
            part(peer, random.Random(seed))
        except (PeerLost, ConnectionRefusedError, ConnectionResetError):
            pass  # the bookie was killed
        except BaseException as failure:  # noqa: BLE001 - an exception of a thread would be lost; `load` raises it
            self._failures.append(failure)
        finally:
            if peer is not None:
                peer.close()

    def _writer(self, owned: list[Ledger]) -> Callable[[Peer, random.Random], None]:
        def write(peer: Peer, rng: random.Random) -> None:
            following = {ledger.id: ledger.lac + 1 for ledger in owned}
            while not self._over.is_set():
                while len(owned) < len(ENTRIES):
                    owned.append(self._create())
                ledger = rng.choice(owned)
                count = rng.choice((1, 1, 5, 40))
                first = following.get(ledger.id, 0)
                following[ledger.id] = first + count
                ledger.sent = max(ledger.sent, first + count)
                peer.send_adds(ledger, first, count)
                if self.pause_s:
                    self._over.wait(count * self.pause_s)
                self._take(peer, owned, wait=len(peer.outstanding) >= WINDOW)
                if ledger.sent >= ENTRIES[ledger.id % len(ENTRIES)]:
                    while peer.outstanding:
                        self._take(peer, owned, wait=True)
                    ledger.closed = True
                    owned.remove(ledger)
            while peer.outstanding:
                self._take(peer, owned, wait=True)

        return write

    def _create(self) -> Ledger:
        ledger = self.model.open()
        self.metadata.create(ledger.id, self.bookie.id)
        return ledger

    def _take(self, peer: Peer, owned: list[Ledger], *, wait: bool) -> None:
        by_id = {ledger.id: ledger for ledger in owned}
        for number, entry, code in peer.take_adds(wait=wait):
            assert code == OK, f"ledger {number}, entry {entry}: an add was refused with {code}"
            self.model.acknowledge(by_id[number], entry)

    def _read(self, peer: Peer, rng: random.Random) -> None:
        while not self._over.wait(rng.uniform(0, 0.003)):
            ledger = self.model.some(rng)
            if ledger is None or not ledger.acked:
                continue
            entry = rng.randrange(ledger.lac + 1) if ledger.lac >= 0 else 0
            if rng.random() < 0.5:
                peer.read(ledger.id, entry)
            else:
                peer.batch_read(ledger.id, entry, rng.choice((1, 10, 500)), MIB >> 1)

    def _delete(self, peer: Peer, rng: random.Random) -> None:  # noqa: ARG002 - all threads have this signature
        while not self._over.wait(0.02):
            closed = [ledger for ledger in self.model.all() if ledger.closed]
            while closed and self.model.bytes > self.live_bytes:
                ledger = closed.pop(rng.randrange(len(closed)))
                self.model.forget(ledger)
                self.metadata.delete(ledger.id)


def disk_bytes(path: Path) -> int:
    """Return the bytes that a file occupies, or 0 if it is gone."""
    try:
        return path.stat().st_blocks * 512
    except FileNotFoundError:
        return 0
