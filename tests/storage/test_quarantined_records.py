"""Records at start that cannot be stored, in the journal or in the ledgers index. Each costs its ledger, not the
bookie: the start succeeds, everything else of the ledger is served, other ledgers are unaffected, and so is the next
start.
"""

import struct
from pathlib import Path

import pytest

from bookie._fast.base import fatal
from bookie._fast.index.view import Index
from bookie._fast.store import quarantine
from bookie._fast.store.direct import Refused
from bookie._fast.store.quarantine import REASONS
from tests.reference import journal as model
from tests.reference.storage import entry, lac_packet
from tests.storage.opened import MIB, Opened
from tests.storage.test_recovery import FILE, KEY, framed, key_record, put

LAST_ID = 2**63 - 1
LAC = -0x8000


def lac_record(packet: bytes, size: int | None = None) -> bytes:
    """Return an explicit LAC of ledger 1 in the journal, with the announced size."""
    return model.record(1, LAC, struct.pack(">i", len(packet) if size is None else size) + packet)


def key_of_size(size: int, given: bytes) -> bytes:
    return model.record(1, model.MASTER_KEY, struct.pack(">i", size) + given)


BAD = {
    "the last id": (framed(entry(1, LAST_ID)), 1),
    "the last id twice": (framed(entry(1, LAST_ID)) * 2, 1),
    "another key": (key_record(1, b"z" * 20), 3),
    "a key cut off": (key_of_size(20, b"short"), 3),
    "a key without its size": (model.record(1, model.MASTER_KEY), 3),
    "a key of a negative size": (key_of_size(-1, b""), 3),
    "a key too long for the index": (key_of_size(70_000, b"k" * 70_000), 3),
    "a LAC of 3 bytes": (lac_record(b"lac"), 4),
    "a LAC cut off": (lac_record(lac_packet(1, 3), size=36), 4),
    "a LAC without its size": (model.record(1, LAC), 4),
    "a LAC of another ledger": (lac_record(lac_packet(2, 3)), 4),
    "a LAC too long for the index": (lac_record(lac_packet(1, 3) + bytes(2 * MIB)), 4),
}


def status(one: Opened, ledger: int, at: int) -> str | list[bytes]:
    held = one.direct.read(ledger, at, count=1, size=MIB)
    try:
        return held.entries() if held.status == "OK" else held.status
    finally:
        held.release()


def check(one: Opened, reason: int) -> None:
    """Check that ledger 1 is quarantined with entries 0 to 4 and those after the bad record, and ledger 2 is not."""
    assert quarantine.listed(one.storage._directory_stores[0]) == [(1, (REASONS[reason],))]
    assert [status(one, 1, at) for at in range(5)] == [[entry(1, at)] for at in range(5)]
    assert status(one, 1, 9) == status(one, 1, -1) == "UNKNOWN_STATE"
    with pytest.raises(Refused, match="IO_ERROR"):
        one.direct.add(entry(1, 5), KEY)
    assert status(one, 2, 0) == [entry(2, 0)]
    assert status(one, 2, 9) == "NO_ENTRY"
    one.direct.add(entry(2, 1), KEY)
    assert one.direct.commit()
    assert fatal.wait(0) is None


@pytest.mark.parametrize("bad", BAD)
def test_in_the_journal(bad: str, tmp_path: Path) -> None:
    """Each of them refused the start, or ended the process at the first flush, and at every later start."""
    record, reason = BAD[bad]
    before = key_record(1) + key_record(2) + b"".join(framed(entry(1, at)) for at in range(3))
    behind = framed(entry(2, 0)) + framed(entry(1, 3)) + framed(entry(1, 4))
    put(tmp_path, FILE, model.build([before + record + behind], FILE))
    one = Opened(tmp_path)
    check(one, reason)
    one.crash()
    again = Opened(tmp_path)
    check(again, reason)
    again.stop()


def test_a_key_that_nobody_knows(tmp_path: Path) -> None:
    """Without its damaged first record, the ledger would be taken for a deleted one, and its entries be denied."""
    put(tmp_path, FILE, model.build([key_of_size(-1, b"") + framed(entry(1, 0)) + framed(entry(1, 1))], FILE))
    one = Opened(tmp_path)
    assert quarantine.listed(one.storage._directory_stores[0]) == [(1, (REASONS[3],))]
    assert status(one, 1, 1) == [entry(1, 1)]
    one.stop()


def stored(root: Path) -> Path:
    """Store ledgers 1 and 2 with an entry each in log and index; return the path of the index."""
    one = Opened(root)
    for ledger in (1, 2):
        one.direct.add(entry(ledger, 0), KEY)
    assert one.direct.commit()
    one.stop()
    return root / "ledgers-0" / "current" / "locations.lmdb"


def test_a_ledger_record_that_cannot_be_read(tmp_path: Path) -> None:
    """One flipped bit refused the start. The fence is unknown then, so the ledger counts as fenced."""
    path = stored(tmp_path) / "data.mdb"
    pages = bytearray(path.read_bytes())
    value = bytes((1, 0, 0, 20, 0, 0, 0, 0)) + KEY  # version, flags, sizes, key
    at = pages.find((1).to_bytes(8, "big"))
    places = []
    while at >= 0:
        if pages[at + 12 : at + 12 + len(value)] == value:
            places.append(at)
        at = pages.find((1).to_bytes(8, "big"), at + 1)
    assert places
    for place in places:
        pages[place + 30] ^= 4
    path.write_bytes(pages)
    for _ in range(2):
        one = Opened(tmp_path)
        state = one.direct.ledger(1)
        assert state is not None
        assert state.fenced
        assert quarantine.listed(one.storage._directory_stores[0]) == [(1, (REASONS[5],))]
        assert status(one, 1, 0) == [entry(1, 0)]
        assert status(one, 1, 1) == "UNKNOWN_STATE"
        assert status(one, 2, 1) == "NO_ENTRY"
        one.stop()


@pytest.mark.parametrize("packet", [b"lac", lac_packet(2, 7)])
def test_a_lac_in_the_index_that_is_none(packet: bytes, tmp_path: Path) -> None:
    """A short LAC from an older bookie made long polls, LAC writes and replay read eight bytes beyond its end."""
    index = Index.open(stored(tmp_path), 64 * MIB)
    index.begin()
    index.put_ledger(1, KEY, lac=packet)
    index.commit()
    index.close()
    one = Opened(tmp_path)
    assert quarantine.listed(one.storage._directory_stores[0]) == [(1, (REASONS[4],))]
    state = one.direct.ledger(1)
    assert state is not None
    assert state.explicit_lac is None
    assert status(one, 1, 0) == [entry(1, 0)]
    one.stop()
