"""Operation x protocol x condition -> status, over sockets: this table has the bookie's response codes.

Modules: server.dispatch, server.replies, server.acks, store.gather, store.last_entry, store.storage.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bookie._fast.index.view import Index
from bookie.pb import wire_pb2 as wire
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, Peer, add, batch, entry_of, read
from tests.hostile.v3 import (
    FENCE,
    RECOVERY,
    add3,
    answer,
    ask,
    batch3,
    force,
    packet,
    part,
    read3,
    read_lac,
    request,
    send,
    write_close,
    write_lac,
)
from tests.reference.wire_v2 import Request

pytestmark = pytest.mark.leaks("one bookie serves the whole file, and opens logs as it goes")
V2 = {
    "EOK": 0,
    "ENOLEDGER": 1,
    "ENOENTRY": 2,
    "EBADREQ": 100,
    "EIO": 101,
    "EUA": 102,
    "EBADVERSION": 103,
    "EFENCED": 104,
    "EREADONLY": 105,
    "EUNKNOWNLEDGERSTATE": 101,
}
"""V2 has no code for limbo that its clients know."""
OTHER_KEY = bytes(reversed(KEY))
LEDGERS = {"known": 1, "fenced": 2, "empty": 3, "limbo": 4, "unknown": 77, "negative": -5}
fresh = count(1000)


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """Known: entries 0 to 9, LAC 8. Fenced: entry 0. Empty: fenced without an entry. Limbo: entry 0."""
    directory = tmp_path_factory.mktemp("bookie")
    with local_bookie(directory) as first, first.peer() as peer:
        for entry in range(10):
            assert ask(peer, add3(1, entry, b"payload", lac=entry - 1)).status == wire.EOK
        for ledger in (2, 4):
            assert ask(peer, add3(ledger, 0, b"payload")).status == wire.EOK
        assert ask(peer, read3(2, -1, flag=FENCE, masterKey=KEY)).status == wire.EOK
        assert ask(peer, read3(3, -1, flag=FENCE, masterKey=KEY)).status == wire.ENOENTRY
    index = Index.open(directory / "ledgers" / "current" / "locations.lmdb")
    index.begin()
    index.put_ledger(4, KEY, limbo=True)
    index.commit()
    index.close()
    with local_bookie(directory) as bookie:
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """A connection."""
    with bookie.peer() as peer:
        yield peer


Both = tuple[Request | None, wire.Request]


def added(ledger: int, *, key: bytes = KEY, flags: int = 0) -> Both:
    """Return the same add in both protocols; `flags` are V2's."""
    more = {"flag": RECOVERY} if flags & 2 else {}
    message = add3(ledger, 1, b"payload", masterKey=key, priority=100 if flags & 4 else 0, **more)
    return add(ledger, 1, b"payload", key=key, flags=flags), message


def fenced(ledger: int, entry: int, key: bytes) -> Both:
    """Return a fencing read in both protocols."""
    return read(ledger, entry, flags=1, key=key), read3(ledger, entry, flag=FENCE, masterKey=key)


def batched(ledger: int, start: int, **more: Any) -> Both:
    """Return a batch read in both protocols, or only in V3 if there is `more`."""
    return None if more else batch(ledger, start), batch3(ledger, start, **more)


CONDITIONS: dict[str, tuple[Callable[[], Both], str]] = {
    "add": (lambda: added(1), "EOK"),
    "add to an unknown ledger": (lambda: added(next(fresh)), "EOK"),
    "add, wrong key": (lambda: added(1, key=OTHER_KEY), "EUA"),
    "add, wrong key, recovery": (lambda: added(1, key=OTHER_KEY, flags=6), "EUA"),
    "add, empty key": (lambda: (None, add3(1, 1, masterKey=b"")), "EUA"),
    "add, key of another length": (lambda: (None, add3(1, 1, masterKey=KEY + b"x")), "EUA"),
    "add, key that nobody can have": (lambda: (None, add3(next(fresh), 1, masterKey=bytes(1 << 16))), "EBADREQ"),
    "add to a fenced ledger": (lambda: added(2), "EFENCED"),
    "add to a fenced ledger, high priority": (lambda: added(2, flags=4), "EFENCED"),
    "add to a fenced ledger, recovery": (lambda: added(2, flags=2), "EOK"),
    "add to a ledger in limbo": (lambda: added(4), "EUA"),
    "add to a ledger in limbo, recovery": (lambda: added(4, flags=2), "EOK"),
    "add to a negative ledger": (lambda: added(-5), "EBADREQ"),
    "add of a negative entry": (lambda: (add(1, -0x1000), add3(1, -0x1000)), "EBADREQ"),
    "add of no entry": (lambda: (None, add3(1, 0, body=b"")), "EBADREQ"),
    "add without a LAC": (lambda: (None, add3(1, 0, body=entry_of(1, 0)[:23])), "EBADREQ"),
    "add without its message": (lambda: (None, request(wire.ADD_ENTRY)), "EBADREQ"),
    "add, deferred sync": (lambda: (None, add3(1, 2, b"payload", writeFlags=1)), "EOK"),
    "add, bad version": (lambda: (add(1, 0, version=3), add3(1, 0, version=2)), "EBADVERSION"),
    "read": (lambda: (read(1, 3), read3(1, 3)), "EOK"),
    "read the last": (lambda: (read(1, -1), read3(1, -1)), "EOK"),
    "read an absent entry": (lambda: (read(1, 10), read3(1, 10)), "ENOENTRY"),
    "read an unknown ledger": (lambda: (read(77, 0), read3(77, 0)), "ENOLEDGER"),
    "read a negative ledger": (lambda: (read(-5, 0), read3(-5, 0)), "ENOLEDGER"),
    "read the last of an empty ledger": (lambda: (read(3, -1), read3(3, -1)), "ENOENTRY"),
    "read a ledger in limbo": (lambda: (read(4, 0), read3(4, 0)), "EOK"),
    "read an absent entry in limbo": (lambda: (read(4, 9), read3(4, 9)), "EUNKNOWNLEDGERSTATE"),
    "read the last in limbo": (lambda: (read(4, -1), read3(4, -1)), "EUNKNOWNLEDGERSTATE"),
    "read, bad version": (lambda: (read(1, 0, version=3), read3(1, 0, version=1)), "EBADVERSION"),
    "read without its message": (lambda: (None, request(wire.READ_ENTRY)), "EBADREQ"),
    "read with a key that is not asked for": (lambda: (None, read3(1, 3, masterKey=OTHER_KEY)), "EOK"),
    "fence": (lambda: fenced(2, 0, KEY), "EOK"),
    "fence, absent entry": (lambda: fenced(2, 5, KEY), "ENOENTRY"),
    "fence, empty ledger": (lambda: fenced(3, -1, KEY), "ENOENTRY"),
    "fence, unknown ledger": (lambda: fenced(next(fresh), -1, KEY), "ENOENTRY"),
    "fence, wrong key": (lambda: fenced(1, 0, OTHER_KEY), "EUA"),
    "fence, no key": (lambda: (read(1, 0, flags=1, version=1), read3(1, 0, flag=FENCE)), "EUA"),
    "fence, negative ledger": (lambda: fenced(-5, 0, KEY), "EBADREQ"),
    "poll an unknown ledger": (lambda: (None, read3(77, -1, previousLAC=0, timeOut=60_000, flag=2)), "ENOLEDGER"),
    "poll for an entry by id": (lambda: (None, read3(1, 3, previousLAC=0, timeOut=60_000, flag=2)), "EBADREQ"),
    "poll an empty ledger": (lambda: (None, read3(3, -1, previousLAC=-1, timeOut=0, flag=2)), "ENOENTRY"),
    "batch read": (lambda: batched(1, 3), "EOK"),
    "batch read the last": (lambda: batched(1, -1), "EOK"),
    "batch read from an absent entry": (lambda: batched(1, 10), "ENOENTRY"),
    "batch read an unknown ledger": (lambda: batched(77, 0), "ENOLEDGER"),
    "batch read a ledger in limbo": (lambda: batched(4, 0), "EOK"),
    "batch read from an absent entry in limbo": (lambda: batched(4, 9), "EUNKNOWNLEDGERSTATE"),
    "batch read the last in limbo": (lambda: batched(4, -1), "EUNKNOWNLEDGERSTATE"),
    "batch read, fence": (lambda: batched(2, 0, flag=FENCE, masterKey=KEY), "EOK"),
    "batch read, fence, wrong key": (lambda: batched(1, 0, flag=FENCE, masterKey=OTHER_KEY), "EUA"),
    "batch read, fence, no key": (lambda: batched(1, 0, flag=FENCE), "EUA"),
    "batch read, piggyback alone": (lambda: batched(1, 0, flag=2), "EBADREQ"),
    "batch read, fence, previous LAC": (
        lambda: batched(2, 0, previousLAC=100, timeOut=60_000, flag=FENCE, masterKey=KEY),
        "EOK",
    ),
    "poll an unknown ledger for a batch": (lambda: batched(77, -1, previousLAC=0, timeOut=60_000, flag=2), "ENOLEDGER"),
    "poll for a batch by id": (lambda: batched(1, 3, previousLAC=0, timeOut=60_000, flag=2), "EBADREQ"),
    "poll an empty ledger for a batch": (lambda: batched(3, -1, previousLAC=-1, timeOut=0, flag=2), "ENOENTRY"),
    "batch read, bad version": (lambda: (batch(1, 0, version=3), batch3(1, 0, version=1)), "EBADVERSION"),
    "write a LAC": (lambda: (None, write_lac(next(fresh), 3)), "EOK"),
    "write a LAC, fenced ledger": (lambda: (None, write_lac(2, 3)), "EOK"),
    "write a LAC, wrong key": (lambda: (None, write_lac(1, 3, masterKey=OTHER_KEY)), "EUA"),
    "write a LAC, short packet": (lambda: (None, write_lac(1, 3, body=bytes(15))), "EBADREQ"),
    "write a LAC, huge packet": (lambda: (None, write_lac(1, 3, body=packet(1, 3) + bytes(5000))), "EBADREQ"),
    "write a LAC, negative ledger": (lambda: (None, write_lac(-5, 3)), "EBADREQ"),
    "write a LAC, bad version": (lambda: (None, write_lac(1, 3, version=2)), "EBADVERSION"),
    "write a LAC without its message": (lambda: (None, request(wire.WRITE_LAC)), "EBADREQ"),
    "read the LAC": (lambda: (None, read_lac(1)), "EOK"),
    "read the LAC, unknown ledger": (lambda: (None, read_lac(77)), "ENOENTRY"),
    "read the LAC, empty ledger": (lambda: (None, read_lac(3)), "ENOENTRY"),
    "read the LAC, limbo": (lambda: (None, read_lac(4)), "EUNKNOWNLEDGERSTATE"),
    "read the LAC, bad version": (lambda: (None, read_lac(1, version=1)), "EBADVERSION"),
    "force": (lambda: (None, force(1)), "EOK"),
    "force, unknown ledger": (lambda: (None, force(77)), "EOK"),
    "force, fenced ledger": (lambda: (None, force(2)), "EOK"),
    "force, bad version": (lambda: (None, force(1, version=2)), "EBADVERSION"),
    "write close": (lambda: (None, write_close(1)), "EOK"),
    "write close, unknown ledger": (lambda: (None, write_close(77)), "EOK"),
    "write close, wrong key": (lambda: (None, write_close(1, key=OTHER_KEY)), "EUA"),
    "write close, bad version": (lambda: (None, write_close(1, version=2)), "EBADVERSION"),
    "range read": (lambda: (None, request(wire.RANGE_READ_ENTRY)), "EBADREQ"),
    "range add": (lambda: (None, request(wire.RANGE_ADD_ENTRY, version=1)), "EBADREQ"),
    "start TLS where there is none": (lambda: (None, request(wire.START_TLS, {})), "EBADREQ"),
    "authenticate where nobody asks for it": (
        lambda: (None, request(wire.AUTH, {"authPluginName": "sasl", "payload": b"x"})),
        "EOK",
    ),
}
READ_ONLY: dict[str, str] = {
    "add": "EREADONLY",
    "add to a fenced ledger, recovery": "EREADONLY",
    "add to a fenced ledger, high priority": "EFENCED",
    "add, wrong key": "EREADONLY",
    "add, bad version": "EBADVERSION",
    "fence": "EOK",
    "fence, unknown ledger": "ENOENTRY",
    "read": "EOK",
    "batch read": "EOK",
    "write a LAC": "EREADONLY",
    "write a LAC, wrong key": "EREADONLY",
    "read the LAC": "EOK",
    "force": "EOK",
    "write close": "EOK",
}
"""The rows that hold on a read-only bookie with room for recovery adds."""
BARE = {"range read", "range add", "start TLS where there is none"}


def check(peer: Peer, other: Peer, name: str, status: str) -> None:
    """Send the request in each protocol on a connection of its own, and check the status."""
    v2, v3 = CONDITIONS[name][0]()
    if v2 is not None:
        assert other.ask(v2).code == V2[status], "V2"
    response = ask(peer, v3)
    assert wire.StatusCode.Name(response.status) == status, "V3"
    header = wire.BKPacketHeader(version=3, operation=v3.header.operation, txnId=v3.header.txnId)  # type: ignore[arg-type]
    if name in BARE or name.endswith("its message"):
        assert response == wire.Response(header=v3.header, status=response.status)
        return
    assert response.header == header
    if v3.header.operation == wire.AUTH:
        assert response.authResponse == wire.AuthMessage(authPluginName="AuthDisabledPlugin", payload=b"")
        return
    found = part(response)
    names = {field.name for field, _ in found.ListFields()}
    if status != "EOK":
        assert names <= {"status", "ledgerId", "entryId", "startEntryId"}
    elif v3.header.operation in (wire.READ_ENTRY, wire.BATCH_READ_ENTRY):
        reported = "maxLAC" in names
        assert reported == ("fence" not in name and "limbo" not in name)


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("name", CONDITIONS)
def test_status(bookie: LocalBookie, peer: Peer, name: str, *, flushed: bool) -> None:
    """The status is the same from memory and from disk, and the connection continues."""
    if flushed:
        assert bookie.storage.checkpoint()
    with bookie.peer() as other:
        check(peer, other, name, CONDITIONS[name][1])
        assert ask(peer, read3(1, 3)).status == wire.EOK


@pytest.mark.parametrize("name", READ_ONLY)
def test_status_of_a_read_only_bookie(bookie: LocalBookie, peer: Peer, name: str) -> None:
    """Adds of high priority are accepted, explicit LACs never, and everything else continues."""
    bookie.storage.set_read_only(True)
    try:
        with bookie.peer() as other:
            check(peer, other, name, READ_ONLY[name])
    finally:
        bookie.storage.set_read_only(False)


def test_a_read_only_bookie_without_room_for_recovery(bookie: LocalBookie, peer: Peer) -> None:
    """A bookie without space for recoveries refuses adds of high priority as well."""
    bookie.storage.set_read_only(True)
    bookie.storage.allow(high_priority=False)
    try:
        v2, v3 = added(next(fresh), flags=6)
        assert v2 is not None
        assert wire.StatusCode.Name(ask(peer, v3).status) == "EREADONLY"
        assert peer.ask(v2).code == V2["EREADONLY"]
    finally:
        bookie.storage.set_read_only(False)
        bookie.storage.allow(high_priority=True)


def test_a_full_queue_of_cold_reads(tmp_path: Path) -> None:
    """Reads from disk beyond the queue get ETOOMANYREQUESTS with the ids of their request, the others their entry."""
    narrow: dict[str, Any] = {"read_queue_max": 2, "read_threads": 1, "readahead_entries": 1, "readahead_bytes": 1}
    with local_bookie(tmp_path, **narrow) as bookie, bookie.peer() as peer:
        for entry in range(400):
            assert ask(peer, add3(1, entry, bytes(900))).status == wire.EOK
        assert bookie.storage.checkpoint()
        send(peer, *(read3(1, entry) for entry in range(400)))
        found = [part(answer(peer)) for _ in range(400)]
        assert {one.status for one in found} == {wire.EOK, wire.ETOOMANYREQUESTS}
        assert all(one.body == (entry_of(1, one.entryId, bytes(900)) if one.status == 0 else b"") for one in found)
        assert sorted(one.entryId for one in found) == list(range(400))
