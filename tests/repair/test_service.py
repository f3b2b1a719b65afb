"""Damage in one of three serving bookies is found by its scrub or a failed read, and repaired from the others."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.client import Channel, Digest, DigestType
from bookie.errors import DataUnknown, DigestMismatch, NoSuchEntry, ReadError
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigestType
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.pb import scrub_service_pb2 as pb
from bookie.pb.scrub_service_pb2_grpc import ScrubStub
from tests.fixtures.bookies import BookieProcess, metadata_of
from tests.fixtures.closed_logs import closed_logs_of

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

DIGEST = Digest.of(DigestType.CRC32C, b"secret")
ENTRIES = 300
WAIT_S = 60.0


def sealed(ledger: int, entry: int) -> bytes:
    payload = b"%d of ledger %d " % (entry, ledger) * 10
    return DIGEST.seal(ledger, entry, payload, lac=entry - 1, length=len(payload) * (entry + 1))


class Damaged:
    """Three bookies, the last of which is damaged."""

    def __init__(self, bookies: list[BookieProcess], driver: MetadataDriver) -> None:
        self.bookies = bookies
        self.victim = bookies[-1]
        self.driver = driver

    def write(self, ledger: int, members: list[BookieProcess], state: LedgerState = LedgerState.CLOSED) -> None:
        """Write a ledger to all of `members`."""
        closed = state is LedgerState.CLOSED
        self.driver.ledgers.create(
            ledger,
            LedgerMetadata(
                ensemble_size=len(members),
                write_quorum=len(members),
                ack_quorum=len(members),
                segments=(Segment(0, tuple(one.id for one in members)),),
                state=state,
                last_entry=ENTRIES - 1 if closed else -1,
                length=100 if closed else 0,
                digest_type=StoredDigestType.CRC32C,
                password=b"secret",
            ),
        )
        for one in members:
            with Channel.connect(*one.address) as channel:
                adds = [channel.add_stored_async(sealed(ledger, entry), DIGEST.master_key) for entry in range(ENTRIES)]
                for add in adds:
                    add.result()

    def place(self, ledger: int, entry: int) -> tuple[Path, int]:
        """Return the victim's log with an entry and the offset of its length word, log written and caches empty."""
        for path in (self.victim.directory / "ledgers" / "current").glob("*.log"):
            at = path.read_bytes().find(struct.pack(">qq", ledger, entry))
            if at >= 0:
                return path, at - 4
        raise AssertionError(f"entry {entry} of ledger {ledger} is in no log")

    def flip(self, ledger: int, entry: int, at: int) -> None:
        """Flip a bit of a record, `at` bytes after the start of its length word."""
        path, offset = self.place(ledger, entry)
        with path.open("r+b") as file:
            file.seek(offset + at)
            byte = file.read(1)[0]
            file.seek(offset + at)
            file.write(bytes([byte ^ 4]))

    def read(self, ledger: int, entry: int) -> bytes:
        """Read from the victim only."""
        with Channel.connect(*self.victim.address) as channel:
            return channel.read(ledger, entry)

    @contextmanager
    def scrub(self) -> Iterator[ScrubStub]:
        with open_channel(self.victim.admin, AdminAccess()) as channel:
            yield ScrubStub(channel)  # type: ignore[no-untyped-call]  # generated

    def pass_over(self) -> None:
        """Wait for one complete pass of its scrub."""
        with self.scrub() as scrub:
            before = scrub.GetStatus(pb.GetScrubStatusRequest(), timeout=WAIT_S).counters["scrub_passes"]
            scrub.Start(pb.StartScrubRequest(), timeout=WAIT_S)
            for status in scrub.Watch(pb.WatchScrubRequest(), timeout=WAIT_S):
                if status.counters["scrub_passes"] > before:
                    return

    def until(self, wanted: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        """Wait until the counters of scrub and repair have these values."""
        with self.scrub() as scrub:
            deadline = time.monotonic() + WAIT_S
            counters: dict[str, float] = {}
            while time.monotonic() < deadline:
                counters = dict(scrub.GetStatus(pb.GetScrubStatusRequest(), timeout=WAIT_S).counters)
                if wanted(counters):
                    return counters
        raise AssertionError(f"after {WAIT_S} s: {counters}\n{self.victim.log_text()[-3000:]}")


@pytest.fixture
def damaged(bookies: Callable[..., list[BookieProcess]], request: pytest.FixtureRequest) -> Iterator[Damaged]:
    """Three bookies, with the settings of a parameter."""
    three = bookies(3, scrubEnabled="false", scrubRateByBytes="0", **getattr(request, "param", {}))
    driver = open_driver(metadata_of(three))
    driver.start()
    yield Damaged(three, driver)
    driver.stop()


def test_what_the_scrub_finds_is_copied_from_replicas(damaged: Damaged) -> None:
    """Damage in payload, ids and length words of a closed and of an open ledger is found and repaired while it
    serves.

    Read from the damaged bookie alone, each entry is right again, also after a restart.
    """
    damaged.write(1, damaged.bookies)
    damaged.write(2, damaged.bookies, LedgerState.OPEN)
    damaged.victim.restart()
    bad = [(1, 10, 60), (1, 20, 19), (1, 30, 11), (2, 40, 3), (2, 50, 30), (2, 60, 100)]
    for ledger, entry, at in bad:
        damaged.flip(ledger, entry, at)
    damaged.pass_over()
    counters = damaged.until(lambda now: now["repair_repaired"] >= len(bad) and not now["repair_waiting_now"])
    assert (counters["repair_repaired"], counters["repair_unrepairable_now"]) == (len(bad), 0)
    for ledger in (1, 2):
        assert [damaged.read(ledger, entry) for entry in range(ENTRIES)] == [
            sealed(ledger, entry) for entry in range(ENTRIES)
        ]
    damaged.victim.restart()
    for ledger, entry, _ in bad:
        assert damaged.read(ledger, entry) == sealed(ledger, entry)
    damaged.pass_over()
    assert damaged.until(lambda now: now["scrub_passes"] > 0)["repair_repaired"] == 0


@pytest.mark.parametrize("damaged", [{"entryLogPerLedgerEnabled": "true", "flushInterval": "100"}], indirect=True)
def test_the_log_of_what_was_repaired_is_closed(damaged: Damaged) -> None:
    """With a log for each ledger, the one that a closed ledger got for its repair is closed by the next checkpoint.

    The log of an open ledger, whose writer may still write here, is not.
    """
    damaged.write(2, damaged.bookies, LedgerState.OPEN)
    damaged.write(1, damaged.bookies)
    damaged.victim.restart()
    before = {ledger: closed_logs_of(damaged.victim, ledger) for ledger in (1, 2)}
    for repaired, ledger in enumerate((2, 1), 1):
        damaged.flip(ledger, 10, 60)
        damaged.pass_over()
        damaged.until(lambda now, count=repaired: now["repair_repaired"] >= count)  # type: ignore[misc]
    deadline = time.monotonic() + WAIT_S
    while closed_logs_of(damaged.victim, 1) == before[1]:
        assert time.monotonic() < deadline, damaged.victim.log_text()[-3000:]
    assert closed_logs_of(damaged.victim, 2) == before[2]


@pytest.mark.thorough
def test_a_read_that_fails_asks_for_the_repair(damaged: Damaged) -> None:
    """Without a scrub, a read returns EIO, never "no such entry", and soon the entry is repaired."""
    damaged.write(1, damaged.bookies)
    damaged.victim.restart()
    damaged.flip(1, 7, 19)
    with pytest.raises(ReadError) as refusal:
        damaged.read(1, 7)
    assert not isinstance(refusal.value, NoSuchEntry)
    damaged.until(lambda now: now["repair_repaired_read"] == 1)
    assert damaged.read(1, 7) == sealed(1, 7)


@pytest.mark.thorough
def test_with_one_replica_there_is_nothing_to_copy_from(damaged: Damaged) -> None:
    """The damage is named and counted; the entry is EIO or fails its digest, and the others are served."""
    damaged.write(1, [damaged.victim])
    damaged.victim.restart()
    damaged.flip(1, 7, 60)
    damaged.flip(1, 9, 19)
    damaged.pass_over()
    counters = damaged.until(lambda now: now["repair_unrepairable_now"] == 2)
    assert (counters["repair_unrepairable_digest_now"], counters["repair_unrepairable_place_now"]) == (1, 1)
    assert "the ledger has one replica" in damaged.victim.log_text()
    with pytest.raises(DigestMismatch):
        DIGEST.open(damaged.read(1, 7), 1, 7)
    with pytest.raises((ReadError, DataUnknown)) as refusal:
        damaged.read(1, 9)
    assert not isinstance(refusal.value, NoSuchEntry)
    assert damaged.read(1, 10) == sealed(1, 10)


@pytest.mark.thorough
def test_replicas_that_come_back_are_asked_again(damaged: Damaged) -> None:
    """An entry without a replica is repaired after a failed read once a replica is back, without another pass."""
    damaged.write(1, damaged.bookies[1:])
    damaged.victim.restart()
    damaged.flip(1, 7, 60)
    other = damaged.bookies[1]
    assert other.stop() == 0
    damaged.pass_over()
    damaged.until(lambda now: now["repair_unrepairable_now"] == 1)
    other.start()
    damaged.pass_over()
    damaged.until(lambda now: now["repair_repaired"] == 1 and now["repair_unrepairable_now"] == 0)
    assert damaged.read(1, 7) == sealed(1, 7)
