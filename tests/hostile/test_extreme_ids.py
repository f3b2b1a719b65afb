"""Ids, LACs, counts and sizes at the limits of their fields, over real sockets.

Entries that cannot be stored are refused before they are acknowledged. Whatever a client sends, the bookie lives,
its next checkpoint succeeds, and its next start finds everything that was acknowledged.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base import fatal
from bookie._fast.base.bounds import BOUNDS
from bookie.pb import wire_pb2 as wire
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, Peer, add, batch, entry_of, read
from tests.hostile.v3 import FENCE, PIGGYBACK, add3, answer, ask, batch3, packet, part, read3, read_lac, write_lac
from tests.hostile.v3 import request as request3
from tests.hostile.v3 import send as send3

LAST = BOUNDS.entry_id
BEYOND = 2**63 - 1
LOWEST = -(2**63)
EBADREQ = 100
EDGES = [LOWEST, LOWEST + 1, -0x8000, -0x1000, -2, -1, 0, 1, 2**31 - 1, 2**31, 2**32, 2**53, LAST - 1, LAST, BEYOND]
IDS = st.sampled_from(EDGES) | st.integers(LOWEST, BEYOND)
COUNTS = st.sampled_from([-(2**31), -1, 0, 1, 2, 2**31 - 1])


def test_the_last_id_leaves_one_for_what_lies_behind() -> None:
    """The id after the last one still fits in 64 bits."""
    assert LAST == BEYOND - 1


@pytest.mark.parametrize("flags", [0, 2, 6], ids=["add", "recovery add", "urgent recovery add"])
def test_an_id_that_no_index_can_hold_is_refused(flags: int, tmp_path: Path) -> None:
    """It is refused in both protocols, repeatedly, and the bookie survives a checkpoint and a restart."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        more: dict[str, Any] = {"flag": wire.AddRequest.RECOVERY_ADD} if flags else {}
        for _ in range(2):
            assert peer.ask(add(1, BEYOND, flags=flags)).code == EBADREQ
        for _ in range(2):
            with bookie.peer() as third:
                assert ask(third, add3(1, BEYOND, priority=100 if flags & 4 else 0, **more)).status == wire.EBADREQ
        assert peer.ask(add(1, LAST, b"last")).code == 0
        assert peer.ask(add(1, LAST, b"again")).code == 0
        assert bookie.storage.checkpoint()
        assert peer.ask(read(1, -1)).body == entry_of(1, LAST, b"again")
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert peer.ask(read(1, LAST)).body == entry_of(1, LAST, b"again")
        assert peer.ask(batch(1, LAST, count=2**31 - 1)).code == 0
        assert peer.ask(read(1, BEYOND)).code == 2


def test_the_request_of_v3_does_not_hide_the_id_of_its_entry(tmp_path: Path) -> None:
    """The ids in the body count, because the entry is stored under them."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert ask(peer, add3(1, 0, body=entry_of(1, BEYOND))).status == wire.EBADREQ
        assert ask(peer, add3(1, 0, body=entry_of(-1, 0))).status == wire.EBADREQ
        assert bookie.storage.checkpoint()


def test_a_lac_that_no_entry_can_have_is_refused(tmp_path: Path) -> None:
    """In an entry or as an explicit LAC, it would end every wait of the ledger's readers for ever."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert ask(peer, add3(1, 0, lac=BEYOND)).status == wire.EBADREQ
        with bookie.peer() as two:
            two.sock.sendall(frame_of_an_add(entry_of(1, 0, lac=BEYOND)))
            assert two.answer().code == EBADREQ
        assert ask(peer, add3(1, 0)).status == wire.EOK
        assert ask(peer, write_lac(1, BEYOND)).status == wire.EBADREQ
        assert part(ask(peer, read3(1, 0))).maxLAC == -1
        assert ask(peer, write_lac(1, LAST)).status == wire.EOK
        assert part(ask(peer, read_lac(1))).lacBody == packet(1, LAST)
        found = ask(peer, read3(1, -1, previousLAC=LAST, timeOut=1, flag=PIGGYBACK))
        assert (found.status, part(found).maxLAC) == (wire.EOK, LAST)


def frame_of_an_add(entry: bytes) -> bytes:
    """Return an add of V2 with an arbitrary entry."""
    body = struct.pack(">I", 0x02010000) + KEY + entry
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("previous", [LOWEST, -1, LAST - 1, LAST, BEYOND])
def test_a_poll_behind_an_extreme_lac_is_answered(previous: int, tmp_path: Path) -> None:
    """Whatever LAC a reader names, it gets a response in time, and no entry that it did not wait for."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert ask(peer, add3(1, 0, b"first", lac=-1)).status == wire.EOK
        assert ask(peer, add3(1, 1, b"second", lac=0)).status == wire.EOK
        for flag in ({}, {"flag": PIGGYBACK}):
            for ask_for in (read3, batch3):
                found = ask(peer, ask_for(1, -1, previousLAC=previous, timeOut=1, **flag))
                assert found.status in {wire.EOK, wire.ENOENTRY}
        assert bookie.storage.checkpoint()


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """A bookie with the limits of two ledgers, partly in its caches and partly on disk."""
    with local_bookie(tmp_path_factory.mktemp("bookie")) as bookie:
        with bookie.peer() as peer:
            for ledger in (1, 2**63 - 1):
                for entry in (0, 1, 2**31, LAST - 1, LAST):
                    assert peer.ask(add(ledger, entry, b"stored")).code == 0
            assert bookie.storage.checkpoint()
            assert peer.ask(read(1, LAST)).code == 0  # read from disk, so the log is open from now on
            assert peer.ask(add(1, 2, b"in memory")).code == 0
        yield bookie


def well(bookie: LocalBookie, peer: Peer) -> None:
    """Check that the process lives, a checkpoint succeeds, and the same connection is still served."""
    assert fatal.wait(0) is None
    assert bookie.storage.checkpoint()
    assert peer.ask(read(1, LAST)).body == entry_of(1, LAST, b"stored")


@given(IDS, IDS, COUNTS, IDS, st.booleans())
def test_no_read_ends_the_bookie(
    bookie: LocalBookie, ledger: int, entry: int, count: int, size: int, fence: bool
) -> None:
    """Single and batch reads of both protocols, entry lists and LACs are answered, whatever they ask for."""
    ledger = 3 if ledger in {1, BEYOND} else ledger  # do not fence the ledgers that other cases read
    flags, key = (1, KEY) if fence else (0, None)
    more: dict[str, Any] = {"flag": FENCE, "masterKey": KEY} if fence else {}
    with bookie.peer() as peer:
        peer.ask(read(ledger, entry, flags=flags, key=key))
        peer.ask(batch(ledger, entry, count=count, size=size, flags=flags, key=key))
    with bookie.peer() as peer:
        ask(peer, read3(ledger, entry, **more))
        ask(peer, batch3(ledger, entry, maxCount=count, maxSize=size, **more))
        ask(peer, request3(wire.GET_LIST_OF_ENTRIES_OF_LEDGER, {"ledgerId": ledger}))
        ask(peer, read_lac(ledger))
        ask(peer, request3(wire.FORCE_LEDGER, {"ledgerId": ledger}))
        send3(peer, read3(1, entry), batch3(1, entry, maxCount=count, maxSize=size))
        for _ in range(2):
            answer(peer)
    with bookie.peer() as peer:
        well(bookie, peer)


@given(st.lists(st.tuples(IDS, IDS, IDS), min_size=1, max_size=10), st.booleans())
def test_no_add_ends_the_bookie(bookie: LocalBookie, wanted: list[tuple[int, int, int]], recovery: bool) -> None:
    """Entries and explicit LACs of any ids are stored and found again, or refused with EBADREQ, as specified."""
    flag: dict[str, Any] = {"flag": wire.AddRequest.RECOVERY_ADD} if recovery else {}
    with bookie.peer() as peer:
        for ledger, entry, lac in wanted:
            holds = ledger >= 0 and 0 <= entry <= LAST and lac <= LAST
            body = entry_of(ledger, entry, b"stored", lac=lac)
            found = ask(peer, add3(ledger, entry, body=body, **flag))
            assert found.status in ({wire.EOK, wire.EFENCED} if holds else {wire.EBADREQ})
            if found.status == wire.EOK:
                assert part(ask(peer, read3(ledger, entry))).body == body
            ask(peer, write_lac(ledger, lac))
    with bookie.peer() as peer:
        assert fatal.wait(0) is None
        assert bookie.storage.checkpoint()
