"""Garbage collection in a whole bookie: only ledgers that were deleted in the metadata store leave its disk."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import garbage_service_pb2 as pb
from bookie.pb.garbage_service_pb2_grpc import GarbageCollectionStub
from tests.crash.model import Model
from tests.crash.peer import FENCE, FENCED, NO_LEDGER, OK, Ledger, Peer
from tests.crash.soak import MIB, Metadata, disk_bytes
from tests.fixtures.bookies import BookieProcess
from tests.hostile import peer as hostile
from tests.hostile.peer import add, read

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

CALL_S = 60.0
ENTRIES = 60


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[Metadata]:
    """A metadata store that outlives the bookie."""
    store = Metadata(tmp_path / "store")
    yield store
    store.stop()


class Collected:
    """A bookie with ledgers, and its admin port."""

    def __init__(self, bookie: BookieProcess, metadata: Metadata) -> None:
        self.bookie = bookie
        self.metadata = metadata
        self.model = Model(1000)

    def fill(self, count: int) -> list[Ledger]:
        """Write this many ledgers, all acknowledged."""
        peer = Peer(self.model, "writer", self.bookie.address)
        ledgers = [self.model.open() for _ in range(count)]
        for ledger in ledgers:
            self.metadata.create(ledger.id, self.bookie.id)
            peer.send_adds(ledger, 0, ENTRIES)
            while peer.outstanding:
                for _, entry, code in peer.take_adds():
                    assert code == OK
                    self.model.acknowledge(ledger, entry)
        peer.close()
        return ledgers

    def delete(self, ledgers: list[Ledger]) -> None:
        """Delete ledgers from the metadata store."""
        for ledger in ledgers:
            self.model.forget(ledger)
            self.metadata.delete(ledger.id)

    def collect(self, **order: bool) -> pb.GarbageStatus:
        """Force a cycle and wait until it ends."""
        with open_channel(self.bookie.admin, AdminAccess()) as channel:
            gc = GarbageCollectionStub(channel)  # type: ignore[no-untyped-call]  # generated
            before = gc.GetStatus(pb.GetGarbageStatusRequest(), timeout=CALL_S).counters["gc_cycles_total"]
            status: pb.GarbageStatus = gc.Force(pb.ForceGarbageRequest(major=True, **order), timeout=CALL_S)
            while status.counters["gc_cycles_total"] == before or status.running:
                status = gc.GetStatus(pb.GetGarbageStatusRequest(), timeout=CALL_S)
        return status

    def await_compaction(self) -> pb.GarbageStatus:
        """Force a cycle and wait until it reads a log."""
        with open_channel(self.bookie.admin, AdminAccess()) as channel:
            gc = GarbageCollectionStub(channel)  # type: ignore[no-untyped-call]  # generated
            status: pb.GarbageStatus = gc.Force(pb.ForceGarbageRequest(major=True), timeout=CALL_S)
            while status.progress.log_id < 0:
                status = gc.GetStatus(pb.GetGarbageStatusRequest(), timeout=CALL_S)
        return status

    def codes(self, ledgers: list[Ledger]) -> set[int]:
        """Return the codes of reads of their first entries, after reading back everything live."""
        peer = Peer(self.model, "reader", self.bookie.address)
        found = {peer.read(ledger.id, 0) for ledger in ledgers}
        self.model.verify(peer, self.model.all())
        peer.close()
        assert not self.model.problems, self.model.problems[:5]
        return found

    def log_bytes(self) -> int:
        """Return the bytes of the entry logs."""
        return sum(disk_bytes(path) for path in (self.bookie.ledgers / "current").glob("*.log"))


@pytest.fixture
def collected(bookies: Callable[..., list[BookieProcess]], metadata: Metadata) -> Collected:
    """A bookie that collects only on request."""
    (bookie,) = bookies(
        metadataServiceUri=f"grpc://127.0.0.1:{metadata.port}",
        gcWaitTime="3600000",
        minorCompactionInterval="0",
        majorCompactionInterval="0",
        forceAllowCompaction="true",
        flushSizeMb="1",
        logSizeLimit=str(MIB),
        zkTimeout="1000",
    )
    return Collected(bookie, metadata)


def test_what_is_deleted_goes_from_the_disk(collected: Collected) -> None:
    """B14: deleted ledgers are unknown at once, and after a kill; the rest is there, in fewer bytes."""
    ledgers = collected.fill(60)
    gone, kept = ledgers[::2], ledgers[1::2]
    collected.collect()
    before = collected.log_bytes()
    collected.delete(gone)
    status = collected.collect()
    assert status.counters["gc_deleted_ledger_total"] == len(gone)
    assert collected.codes(gone) == {NO_LEDGER}
    assert collected.codes(kept) == {OK}
    assert collected.log_bytes() < before
    collected.bookie.kill()
    collected.bookie.start()
    assert collected.codes(gone) == {NO_LEDGER}
    assert collected.codes(kept) == {OK}


def test_a_deleted_ledger_is_unknown_to_a_recovery_too(collected: Collected) -> None:
    """A fencing read of a ledger that was fenced, deleted and collected finds none, as other reads do; it created an
    empty one before, and was answered "no such entry".
    """
    (ledger,) = collected.fill(1)
    fencing = read(ledger.id, -1, flags=FENCE, key=ledger.key)
    with hostile.Peer(collected.bookie.address) as peer:
        assert peer.ask(fencing).code == OK
    collected.fill(1)  # a store that lists no ledger deletes none
    collected.delete([ledger])
    assert collected.collect().counters["gc_deleted_ledger_total"] == 1
    with hostile.Peer(collected.bookie.address) as peer:
        assert [peer.ask(fencing).code for _ in range(2)] == [NO_LEDGER] * 2
        assert peer.ask(read(ledger.id, 0)).code == NO_LEDGER
        assert peer.ask(add(ledger.id, ENTRIES, b"late", key=ledger.key)).code == FENCED


def test_a_cluster_whose_ledgers_are_all_deleted_gets_its_space_back(collected: Collected) -> None:
    """Nothing was deleted before, for ever, while the metadata store listed no ledgers. It must do so for a while."""
    collected.bookie.stop()
    collected.bookie.settings["gcEmptyLedgerListWaitTime"] = "1"
    collected.bookie.start()
    ledgers = collected.fill(30)
    before = collected.log_bytes()
    collected.delete(ledgers)
    assert collected.collect().counters["gc_deleted_ledger_total"] == 0
    while (status := collected.collect()).counters["gc_deleted_ledger_total"] == 0:
        continue
    assert status.counters["gc_deleted_ledger_total"] == len(ledgers)
    assert not status.alarm
    assert collected.codes(ledgers) == {NO_LEDGER}
    assert collected.log_bytes() < before
    assert "lists no ledgers at all" in collected.bookie.log_text()


def test_b12_most_ledgers_go_only_by_an_operators_word(collected: Collected) -> None:
    """The alarm is shown, and everything stays readable, even after a compaction, until the operator confirms."""
    ledgers = collected.fill(30)
    collected.delete(ledgers[:25])
    assert "25 of 30" in collected.collect().alarm
    assert collected.codes(ledgers) == {OK}
    assert not collected.collect(mass_deletion=True).alarm
    assert collected.codes(ledgers[:25]) == {NO_LEDGER}
    assert collected.codes(ledgers[25:]) == {OK}


@pytest.mark.thorough
def test_a_stop_in_the_middle_of_a_slow_compaction(collected: Collected) -> None:
    """At this rate a log takes a quarter of an hour; the stop does not wait for it, and nothing is lost."""
    collected.bookie.settings["compactionRateByBytes"] = "1024"
    collected.bookie.restart()
    ledgers = collected.fill(40)
    collected.collect(mass_deletion=True)
    collected.delete(ledgers[::3])
    status = collected.await_compaction()
    assert (status.running, status.compacting) == (True, "major")
    collected.bookie.restart()
    assert collected.codes(ledgers[1::3]) == {OK}
