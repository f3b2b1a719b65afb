"""Which ledgers are distrusted, directory by directory, and what happens to records that were there."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bookie._fast.index.view import Index, Ledger
from bookie.client import ChannelV3, Digest
from bookie.client.entries.digest import master_key
from bookie.errors import DataUnknown, LedgerFenced, NoSuchEntry
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.repair.distrust import clear_limbo, mark_distrusted
from tests.fixtures.bookies import BookieProcess

ME, OTHER, THIRD = "me:3181", "other:3181", "third:3181"


def ledger(*ensembles: Sequence[str], state: LedgerState = LedgerState.OPEN) -> LedgerMetadata:
    """Return a ledger with these ensembles of ten entries each."""
    segments = tuple(Segment(10 * n, tuple(bookies)) for n, bookies in enumerate(ensembles))
    return LedgerMetadata(
        ensemble_size=2, write_quorum=2, ack_quorum=1, segments=segments, state=state, password=b"secret"
    )


LEDGERS = {
    2: ledger([ME, OTHER]),
    4: ledger([ME, OTHER], state=LedgerState.CLOSED),
    6: ledger([ME, OTHER], [THIRD, OTHER]),
    8: ledger([THIRD, OTHER], [OTHER, ME], state=LedgerState.IN_RECOVERY),
    10: ledger([THIRD, OTHER]),
    3: ledger([ME, OTHER]),
}


@pytest.fixture
def indexes(tmp_path: Path) -> list[Path]:
    """Two directories, the first of which is empty."""
    paths = [tmp_path / name / "locations.lmdb" for name in ("a", "b")]
    paths[1].mkdir(parents=True)
    opened = Index.open(paths[1])
    opened.begin()
    opened.put_ledger(3, b"kept", lac=b"lac")
    opened.commit()
    opened.close()
    return paths


def records(index: Path) -> list[Ledger]:
    """Return all of an index."""
    opened = Index.open(index)
    try:
        return opened.reader().ledgers()
    finally:
        opened.close()


@pytest.mark.parametrize("lost", [[0], None])
def test_b17_what_is_lost_is_distrusted(indexes: list[Path], lost: list[int] | None) -> None:
    """An open ledger whose last ensemble has us is in limbo; all lost ones are fenced, with the key of the metadata.

    Others stay as they were.
    """
    done = mark_distrusted(ME, LEDGERS.items(), indexes, lost=lost)
    key = master_key(b"secret")
    assert records(indexes[0]) == [
        Ledger(2, key, fenced=True, limbo=True, lac=b""),
        Ledger(4, key, fenced=True, limbo=False, lac=b""),
        Ledger(6, key, fenced=True, limbo=False, lac=b""),
        Ledger(8, key, fenced=True, limbo=True, lac=b""),
    ]
    distrusted = lost is None
    assert records(indexes[1]) == [Ledger(3, b"kept", fenced=distrusted, limbo=distrusted, lac=b"lac")]
    assert (done.created, set(done.limbo)) == (4, {2, 8, 3} if distrusted else {2, 8})


def test_b11_metadata_without_a_password(indexes: list[Path]) -> None:
    """Metadata older than digests have no key: the first one from the journal or a client is accepted, not refused."""
    old = LedgerMetadata(ensemble_size=2, write_quorum=2, ack_quorum=1, segments=(Segment(0, (ME, OTHER)),))
    mark_distrusted(ME, [(2, old)], indexes)
    assert records(indexes[0]) == [Ledger(2, bytes(20), fenced=True, limbo=True, lac=b"")]


def test_limbo_is_cleared_by_name(indexes: list[Path]) -> None:
    """Only the named ledgers are cleared; the fence and everything else stays."""
    mark_distrusted(ME, LEDGERS.items(), indexes)
    assert clear_limbo([8, 3, 4, 77], indexes) == 2
    assert [record.ledger for index in indexes for record in records(index) if record.limbo] == [2]
    assert all(record.fenced for index in indexes for record in records(index))


@pytest.mark.thorough
def test_b17_a_start_without_a_journal_distrusts_what_it_may_lack(bookies: Callable[..., list[BookieProcess]]) -> None:
    """After a kill with entries in memory only, nothing of the open ledger is denied, and nothing more is accepted.

    What other bookies hold is as it was; an orderly stop and start in between changes nothing.
    """
    (bookie,) = bookies(journalWriteData="false", dataIntegrityChecking="true")
    driver = open_driver(f"grpc://{bookie.admin}")
    driver.start()
    digest = Digest.of(password=b"secret")
    for number, state in ((1, LedgerState.OPEN), (2, LedgerState.CLOSED)):
        driver.ledgers.create(number, ledger([bookie.id, OTHER], state=state))
    driver.stop()
    with ChannelV3.connect(*bookie.address) as channel:
        for number in (1, 2):
            channel.add(number, 0, b"kept", digest=digest, lac=-1, length=4)
    bookie.restart()
    with ChannelV3.connect(*bookie.address) as channel:
        for number in (1, 2):
            channel.add(number, 1, b"in memory", digest=digest, lac=0, length=13)
    bookie.kill()
    bookie.start()
    assert "ledgers that may lack entries are in limbo" in bookie.log_text()
    with ChannelV3.connect(*bookie.address) as channel:
        assert [channel.read(number, 0)[-4:] for number in (1, 2)] == [b"kept", b"kept"]
        with pytest.raises(DataUnknown):
            channel.read(1, 1)
        with pytest.raises(NoSuchEntry):
            channel.read(2, 1)
        with pytest.raises(LedgerFenced):
            channel.add(1, 2, b"more", digest=digest, lac=1, length=17)
