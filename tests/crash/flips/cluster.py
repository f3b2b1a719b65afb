"""Three bookies as processes with known contents, a continuous writer and reader, and the oracle, which judges the
answers of the damaged bookie entry by entry. The metadata store is in this process.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import grpc

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.client import Channel, Digest, DigestType
from bookie.errors import BookKeeperError, NoSuchEntry, NoSuchLedger
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigestType
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.pb import bookie_service_pb2 as bookie_pb
from bookie.pb import scrub_service_pb2 as pb
from bookie.pb.bookie_service_pb2_grpc import BookieStub
from bookie.pb.scrub_service_pb2_grpc import ScrubStub
from tests.crash.soak import Metadata
from tests.fixtures.bookies import BookieProcess

__all__ = ["Answers", "Cluster", "ENTRIES", "LEDGERS", "sealed"]

DIGEST = Digest.of(DigestType.CRC32C, b"flips")
LEDGERS = 32
ENTRIES = 250
WRITTEN_MAX = 500
"""Entries of the ledger being written before the writer begins another."""
WRITTEN_KEPT = 4
"""The number of ledgers written meanwhile that are checked."""
CALL_S = 120.0
SETTINGS = {
    "dbStorage_readAheadCacheMaxSizeMb": "4",
    "dbStorage_readCacheSegmentSizeMb": "1",
    "dbStorage_writeCacheMaxSizeMb": "16",
    "flushInterval": "3000",
    "gcWaitTime": "3600000",
    "minorCompactionInterval": "0",
    "majorCompactionInterval": "0",
    "journalMaxSizeMB": "16",
    "logLevel": "info",
    "logSizeLimit": str(2 << 20),
    "scrubEnabled": "false",
    "scrubRateByBytes": "0",
    "zkTimeout": "1500",
    "zkRetryBackoffStartMs": "50",
}


@lru_cache(1 << 14)
def sealed(ledger: int, entry: int) -> bytes:
    """Return the contents of an entry: about a kilobyte."""
    payload = (b"%d of ledger %d, " % (entry, ledger)) * (20 + (ledger * 31 + entry * 17) % 60)
    return DIGEST.seal(ledger, entry, payload, lac=entry - 1, length=len(payload) * (entry + 1))


@dataclass(slots=True)
class Answers:
    """The answers of the damaged bookie for what it must have: ids of (ledger, entry)."""

    right: int = 0
    errors: dict[tuple[int, int], str] = field(default_factory=dict)
    """Errors that are not a denial, including wrong digests."""
    denied: dict[tuple[int, int], str] = field(default_factory=dict)
    wrong: list[tuple[int, int]] = field(default_factory=list)
    """Bytes other than those written, with a correct digest."""


class Cluster:
    """`victim` is the damaged bookie. `acked` says what it must have: the entries of each ledger below this id."""

    def __init__(self, directory: Path, rng: random.Random) -> None:
        self.metadata = Metadata(directory / "metadata")
        self.uri = uri = f"grpc://127.0.0.1:{self.metadata.port}"
        self.bookies = [BookieProcess(directory / f"bookie-{k}", uri, dict(SETTINGS)) for k in range(3)]
        self.victim = self.bookies[-1]
        self.acked: dict[int, int] = {}
        self._rng = rng
        self._over = threading.Event()
        self._paused = threading.Event()
        self._idle = threading.Event()
        self._threads: list[threading.Thread] = []
        self._next = LEDGERS
        self._lock = threading.Lock()

    @property
    def driver(self) -> MetadataDriver:
        return self.metadata.driver

    @classmethod
    @contextmanager
    def running(cls, directory: Path, rng: random.Random) -> Iterator["Cluster"]:
        """Start and fill the cluster, with a writer and a reader; all of them end with the context."""
        one = cls(directory, rng)
        try:
            for bookie in one.bookies:
                bookie.start()
            for ledger in range(LEDGERS):
                one._create(ledger, closed=True)
                one._add(ledger, range(ENTRIES), one.bookies)
                one.acked[ledger] = ENTRIES
            one.flush()
            for name, body in (("writer", one._write), ("reader", one._read)):
                thread = threading.Thread(target=body, name=name, daemon=True)
                one._threads.append(thread)
                thread.start()
            yield one
        finally:
            one._over.set()
            one._paused.clear()
            for thread in one._threads:
                thread.join()
            for bookie in one.bookies:
                bookie.kill()
            one.metadata.stop()

    def _create(self, ledger: int, *, closed: bool) -> None:
        self.driver.ledgers.create(
            ledger,
            LedgerMetadata(
                ensemble_size=3,
                write_quorum=3,
                ack_quorum=2,
                segments=(Segment(0, tuple(one.id for one in self.bookies)),),
                state=LedgerState.CLOSED if closed else LedgerState.OPEN,
                last_entry=ENTRIES - 1 if closed else -1,
                length=1 if closed else 0,
                digest_type=StoredDigestType.CRC32C,
                password=b"flips",
            ),
        )

    def _add(self, ledger: int, entries: range, bookies: list[BookieProcess]) -> int:
        """Send entries to each bookie; return how many the victim acknowledged. Raises BookKeeperError of others."""
        acknowledged = 0
        for one in bookies:
            with Channel.connect(*one.address, timeout_s=CALL_S) as channel:
                replies = [channel.add_stored_async(sealed(ledger, at), DIGEST.master_key) for at in entries]
                for reply in replies:
                    reply.result()
                    acknowledged += one is self.victim
        return acknowledged

    def _write(self) -> None:
        """Write ten entries at a time to all three bookies. After a refusal, the victim gets no more of that ledger."""
        ledger, at = -1, 0
        while not self._over.is_set():
            if self._paused.is_set():
                self._idle.set()
                self._over.wait(0.02)
                continue
            self._idle.clear()
            if ledger < 0 or at >= WRITTEN_MAX:
                with self._lock:
                    ledger, at = self._next, 0
                    self._next += 1
                self._create(ledger, closed=False)
                if ledger - WRITTEN_KEPT >= LEDGERS:
                    self.acked.pop(ledger - WRITTEN_KEPT, None)
            piece = range(at, at + 10)
            with suppress(BookKeeperError):
                self._add(ledger, piece, self.bookies[:2])
            try:
                self._add(ledger, piece, [self.victim])
            except (BookKeeperError, OSError):
                ledger = -1  # it is unknown how much of the batch the victim has
                self._over.wait(0.2)
                continue
            at += 10
            self.acked[ledger] = at
            self._over.wait(0.1)

    def _read(self) -> None:
        """Read random single entries from the victim; the answers are ignored here."""
        rng = random.Random(1)
        while not self._over.is_set():
            with suppress(BookKeeperError, OSError), Channel.connect(*self.victim.address, timeout_s=5.0) as channel:
                while not self._over.is_set() and not self._paused.is_set():
                    with suppress(NoSuchEntry):
                        channel.read(rng.randrange(LEDGERS), rng.randrange(ENTRIES))
                    self._over.wait(0.005)
            self._over.wait(0.1)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Pause the writer, with nothing in flight."""
        self._paused.set()
        self._idle.clear()
        self._idle.wait(CALL_S)
        try:
            yield
        finally:
            self._paused.clear()

    def written(self) -> None:
        """Wait until the victim has acknowledged more entries, so that its journal has entries that the logs lack."""
        before = self.acked.get(self._next - 1, 0), self._next
        deadline = time.monotonic() + CALL_S
        while (self.acked.get(self._next - 1, 0), self._next) < (before[0] + 30, before[1]) \
                and self._next == before[1] and time.monotonic() < deadline:  # fmt: skip
            self._over.wait(0.05)

    def flush(self) -> None:
        """Flush the victim's memory to its logs and its index."""
        with open_channel(self.victim.admin, AdminAccess()) as channel:
            stub: Any = BookieStub(channel)  # type: ignore[no-untyped-call]  # generated
            stub.Flush(bookie_pb.FlushRequest(), timeout=CALL_S)

    def ask(self) -> Answers:
        """Read everything that the victim must have from the victim alone."""
        answers = Answers()
        for ledger, end in sorted(dict(self.acked).items()):
            self._ask_ledger(ledger, end, answers)
        return answers

    def _ask_ledger(self, ledger: int, end: int, answers: Answers) -> None:
        at = 0
        with Channel.connect(*self.victim.address, timeout_s=CALL_S) as channel:
            while at < end:
                try:
                    batch = channel.batch_read(ledger, at, min(end - at, 1000), 1 << 20)
                except (NoSuchEntry, NoSuchLedger) as error:
                    answers.denied[ledger, at] = str(error)
                    at += 1
                    continue
                except BookKeeperError as error:
                    answers.errors[ledger, at] = str(error)
                    at += 1
                    continue
                for entry, stored in batch:
                    if entry >= end:
                        break
                    if bytes(stored) == sealed(ledger, entry):
                        answers.right += 1
                    else:
                        self._judge(ledger, entry, bytes(stored), answers)
                at = batch.end

    def _judge(self, ledger: int, entry: int, stored: bytes, answers: Answers) -> None:
        try:
            DIGEST.open(stored, ledger, entry)
        except BookKeeperError as error:
            answers.errors[ledger, entry] = str(error)
        else:
            answers.wrong.append((ledger, entry))

    def scrub(self) -> None:
        """Run a complete scrub pass of the victim."""
        with open_channel(self.victim.admin, AdminAccess()) as channel:
            stub = ScrubStub(channel)  # type: ignore[no-untyped-call]  # generated
            before = stub.GetStatus(pb.GetScrubStatusRequest(), timeout=CALL_S).counters["scrub_passes"]
            stub.Start(pb.StartScrubRequest(), timeout=CALL_S)
            self._until(stub, lambda counters: counters["scrub_passes"] > before)

    def repaired(self, least: int) -> None:
        """Wait until this many entries were repaired since the victim's start."""
        with open_channel(self.victim.admin, AdminAccess()) as channel:
            stub = ScrubStub(channel)  # type: ignore[no-untyped-call]  # generated
            assert self._until(stub, lambda now: now["repair_repaired"] >= least)

    def settled(self) -> bool:
        """Wait until everything that can be repaired is. Return False if that takes too long."""
        with open_channel(self.victim.admin, AdminAccess()) as channel:
            stub = ScrubStub(channel)  # type: ignore[no-untyped-call]  # generated
            return self._until(
                stub, lambda now: now["repair_waiting_now"] <= now["repair_unrepairable_now"], wait_s=5.0
            )

    def _until(self, stub: ScrubStub, wanted: Callable[[dict[str, float]], bool], wait_s: float = CALL_S) -> bool:
        """Wait until the counters of scrub and repair satisfy a condition. Return False after a timeout."""
        try:
            for status in stub.Watch(pb.WatchScrubRequest(), timeout=wait_s):
                if wanted(status.counters):
                    return True
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
        return False

    def rest(self) -> None:
        """Wait a moment, in which the answers of the damaged bookie may change."""
        self._over.wait(0.2)
