"""Recovery on three real bookies, some of which are down, hung, or hold nothing."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bookie.client import BookKeeper, ReadHandle
from bookie.errors import BookKeeperError, LedgerRecoveryError, MetadataVersionConflict
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerState, Segment
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

PAYLOADS = [b"entry %d" % k for k in range(10)]
LENGTH = sum(map(len, PAYLOADS))
PATIENT = {"readEntryTimeoutSec": 3600, "addEntryTimeoutSec": 3600}
"""A call that waits for a hung bookie takes longer than the test may take."""


@pytest.fixture
def three(cluster: list[BookieProcess]) -> Iterator[list[BookieProcess]]:
    """Three bookies, the first of which owns the metadata store and stays up; all run again after the test."""
    yield cluster
    for bookie in cluster:
        if bookie.process is None:
            bookie.start()


@pytest.fixture
def bk(three: list[BookieProcess]) -> Iterator[BookKeeper]:
    """A client."""
    with BookKeeper(f"grpc://{three[0].admin}", **PATIENT) as client:
        yield client


@pytest.fixture
def driver(three: list[BookieProcess]) -> Iterator[MetadataDriver]:
    """A driver of the metadata store."""
    driver = open_driver(f"grpc://{three[0].admin}")
    driver.start()
    yield driver
    driver.stop()


def left_open(three: list[BookieProcess], size: int) -> int:
    """Return a ledger whose writer is gone, with all payloads acknowledged by two of its bookies."""
    with BookKeeper(f"grpc://{three[0].admin}") as bk:
        writer = bk.create_ledger(ensemble_size=size, write_quorum_size=size, ack_quorum_size=2)
        for payload in PAYLOADS:
            writer.append(payload)
        return writer.id


def holds_everything(reader: ReadHandle) -> None:
    """Check that the ledger has all payloads and ends after them."""
    assert (reader.last_add_confirmed, reader.length) == (len(PAYLOADS) - 1, LENGTH)
    assert [bytes(entry.data) for entry in reader.read(0, len(PAYLOADS) - 1)] == PAYLOADS


@pytest.mark.parametrize("how", ["hung", "gone"])
def test_one_bookie_that_does_not_answer_stops_nobody(three: list[BookieProcess], bk: BookKeeper, how: str) -> None:
    """L10: recovery neither waits for a hung bookie nor needs it, even if no other bookie can replace it."""
    ledger = left_open(three, 3)
    if how == "hung":
        three[2].freeze()
    else:
        three[2].stop()
    try:
        with bk.open_ledger(ledger) as reader:
            holds_everything(reader)
    finally:
        if how == "hung":
            three[2].thaw()


def test_a_last_ensemble_that_holds_nothing(three: list[BookieProcess], bk: BookKeeper, driver: MetadataDriver) -> None:
    """ST6, L6, L10: recovery does not go below the last ensemble's first entry, even if an earlier bookie is down."""
    ledger = left_open(three, 2)
    stored = driver.ledgers.read(ledger)
    one, other = stored.value.segments[0].bookies
    (third,) = {bookie.id for bookie in three} - {one, other}
    gone, stays = (one, other) if one != three[0].id else (other, one)
    later = Segment(len(PAYLOADS), (stays, third))
    changed = replace(stored.value, segments=(*stored.value.segments, later))
    driver.ledgers.write(ledger, changed, stored.version)
    next(bookie for bookie in three if bookie.id == gone).stop()
    with bk.open_ledger(ledger) as reader:
        holds_everything(reader)
        assert reader.metadata.segments == changed.segments


@pytest.mark.parametrize("how", ["hung", "gone"])
def test_a_former_ensemble_that_is_gone(
    three: list[BookieProcess], driver: MetadataDriver, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """L10: the ledger is closed although no entry of a former ensemble can be read, as by Java's client.

    Its length is unknown then, and a warning says so.
    """
    ledger = left_open(three, 2)
    stored = driver.ledgers.read(ledger)
    former = replace(stored.value.segments[0], bookies=(three[1].id, "10.255.255.1:3181"))
    later = Segment(len(PAYLOADS), (three[0].id, three[2].id))
    changed = replace(stored.value, segments=(former, later))
    driver.ledgers.write(ledger, changed, stored.version)
    if how == "hung":
        three[1].freeze()
    else:
        three[1].stop()
    impatient = {"readEntryTimeoutSec": 1, "clientConnectTimeoutMillis": 1000}
    try:
        with BookKeeper(f"grpc://{three[0].admin}", **impatient) as client, client.open_ledger(ledger) as reader:
            assert (reader.last_add_confirmed, reader.length) == (len(PAYLOADS) - 1, 0)
    finally:
        if how == "hung":
            three[1].thaw()
    assert driver.ledgers.read(ledger).value.segments == changed.segments
    assert f"ledger {ledger}: cannot read the length from last entry {len(PAYLOADS) - 1}, using 0" in caplog.text


@pytest.mark.thorough
def test_too_few_bookies_to_tell(three: list[BookieProcess], bk: BookKeeper, driver: MetadataDriver) -> None:
    """L9: nothing is closed while bookies are down that may hold more entries; with them, the ledger is closed."""
    ledger = left_open(three, 3)
    for bookie in three[1:]:
        bookie.stop()
    with pytest.raises(LedgerRecoveryError, match=f"ledger {ledger}: only 1 of "):
        bk.open_ledger(ledger)
    assert driver.ledgers.read(ledger).value.state is LedgerState.IN_RECOVERY
    for bookie in three[1:]:
        bookie.start()
    with bk.open_ledger(ledger) as reader:
        holds_everything(reader)


@pytest.mark.thorough
def test_many_recover_at_once_and_the_end_is_final(bk: BookKeeper, driver: MetadataDriver) -> None:
    """L5, L10: ten clients close a ledger at the same end, which its writer cannot change later."""
    writer = bk.create_ledger(write_quorum_size=3)
    for payload in PAYLOADS:
        writer.append(payload)
    opening = [bk.open_ledger_async(writer.id) for _ in range(10)]
    for future in opening:
        with future.result() as reader:
            holds_everything(reader)
    closed = driver.ledgers.read(writer.id)
    late = writer.append_async(b"late")
    with pytest.raises(BookKeeperError):
        late.result()
    with contextlib.suppress(MetadataVersionConflict):
        writer.close()
    assert driver.ledgers.read(writer.id) == closed
