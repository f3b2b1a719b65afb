"""V3 over sockets, beyond single statuses: the contents of responses, what waits for what, and changes of the
protocol.

Modules: server.dispatch, server.replies, server.acks, store.gather, store.last_entry, journal.commit, store.storage.
"""

import random
import struct
from collections.abc import Iterator
from itertools import accumulate, count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookie.pb import wire_pb2 as wire
from bookie.storage.settings import MIB
from tests.fixtures.faults import go_on
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, Peer, add, entry_of, read
from tests.hostile.v3 import (
    DEFERRED_SYNC,
    FENCE,
    PIGGYBACK,
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
from tests.reference.wire_v2 import encode_request

pytestmark = pytest.mark.leaks("one bookie serves the whole file, and opens logs as it goes")
LONG_MS = 600_000
fresh = count(5000)


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """One bookie for the whole file; each test uses ledgers of its own."""
    room: dict[str, Any] = {"write_cache_bytes": 64 * MIB, "buffer_bytes": 16 * MIB}
    with local_bookie(tmp_path_factory.mktemp("bookie"), **room) as bookie:
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """A connection."""
    with bookie.peer() as peer:
        yield peer


def fill(peer: Peer, ledger: int, payloads: list[bytes]) -> list[bytes]:
    """Add entries from 0 on, each with the LAC before it; return what is stored."""
    send(peer, *(add3(ledger, entry, payload, lac=entry - 1) for entry, payload in enumerate(payloads)))
    assert {answer(peer).status for _ in payloads} == {wire.EOK}
    return [entry_of(ledger, entry, payload, lac=entry - 1) for entry, payload in enumerate(payloads)]


def poll(ledger: int, lac: int, *, ms: int = LONG_MS, flag: int = PIGGYBACK, entry: int = -1) -> wire.Request:
    """Return a read that waits for a LAC above `lac`."""
    return read3(ledger, entry, previousLAC=lac, timeOut=ms, flag=flag)


def test_ids_of_the_request_are_echoed_and_those_of_the_entry_stored(peer: Peer) -> None:
    """They differ only if a client makes them differ."""
    ledger, other = next(fresh), next(fresh)
    answered = part(ask(peer, add3(ledger, 5, body=entry_of(other, 6, b"x"))))
    assert (answered.ledgerId, answered.entryId) == (ledger, 5)
    assert ask(peer, read3(ledger, 5)).status == wire.ENOLEDGER
    assert part(ask(peer, read3(other, 6))).body == entry_of(other, 6, b"x")


def test_reads_tell_the_lac(bookie: LocalBookie, peer: Peer) -> None:
    """Reads return the highest LAC known, from any entry or the explicit one; a fencing read returns none."""
    ledger = next(fresh)
    fill(peer, ledger, [b"x"] * 5)
    for flushed in (False, True):
        if flushed:
            assert bookie.storage.checkpoint()
        for entry in (0, 4, -1):
            assert part(ask(peer, read3(ledger, entry))).maxLAC == 3 + flushed
        assert part(ask(peer, batch3(ledger, 0))).maxLAC == 3 + flushed
        assert ask(peer, write_lac(ledger, 4)).status == wire.EOK
        assert ask(peer, write_lac(ledger, 1)).status == wire.EOK
    found = part(ask(peer, read3(ledger, -1, flag=FENCE, masterKey=KEY)))
    assert found.body
    assert not found.HasField("maxLAC")


def test_the_lac_of_an_earlier_process(tmp_path: Path) -> None:
    """The LAC is learnt from the last entry, by a read, a poll or an add; a ledger without an entry has none."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        for ledger in range(1, 5):
            fill(peer, ledger, [b"x"] * 50)
        ask(peer, read3(9, -1, flag=FENCE, masterKey=KEY))
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert part(ask(peer, read3(1, 7))).maxLAC == 48
        polled = part(ask(peer, poll(2, 30)))
        assert (polled.entryId, polled.maxLAC, polled.body) == (31, 48, entry_of(2, 31, b"x", lac=30))
        assert ask(peer, add3(3, 50, b"x", lac=49)).status == wire.EOK
        assert part(ask(peer, batch3(3, 49))).maxLAC == 49
        nothing = part(ask(peer, poll(4, 48, ms=1)))
        assert (nothing.entryId, nothing.maxLAC, nothing.body) == (-1, 48, b"")
        assert ask(peer, poll(9, -1, ms=1)).status == wire.ENOENTRY


def test_what_is_added_after_a_restart_leaves_cached_reads_alone(tmp_path: Path) -> None:
    """The first flush learns where the ledger ends, so later ones keep what was read from disk in the cache."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        fill(peer, 1, [bytes(500)] * 50)
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        for entry in (50, 51, 52):
            assert peer.ask(add(1, entry, b"x")).code == 0
            assert bookie.storage.checkpoint()
            if entry == 50:
                assert peer.ask(read(1, 0)).code == 0
        before = bookie.stat("disk_reads")
        assert peer.ask(read(1, 0)).code == 0
        assert bookie.stat("disk_reads") == before


def test_a_poll_ends_with_a_higher_lac(bookie: LocalBookie, peer: Peer) -> None:
    """It returns the entry after the known one, the LAC and the time; meanwhile the connection is served."""
    ledger = next(fresh)
    stored = fill(peer, ledger, [b"a", b"b", b"c"])
    waiting = poll(ledger, 1)
    plain = poll(ledger, 1, entry=0)
    plain.readRequest.ClearField("flag")
    send(peer, waiting, plain)
    with bookie.peer() as other:
        assert ask(peer, read3(ledger, 0)).status == wire.EOK
        assert ask(other, add3(ledger, 3, b"d", lac=1)).status == wire.EOK
        assert ask(peer, read3(ledger, 0)).status == wire.EOK
        assert ask(other, add3(ledger, 4, b"e", lac=3)).status == wire.EOK
    answers = {one.header.txnId: part(one) for one in (answer(peer), answer(peer))}
    polled, other_read = answers[waiting.header.txnId], answers[plain.header.txnId]
    assert (polled.entryId, polled.body, polled.maxLAC) == (2, stored[2], 3)
    assert polled.lacUpdateTimestamp > 1_700_000_000_000
    assert (other_read.entryId, other_read.body, other_read.maxLAC) == (0, stored[0], 3)
    assert not other_read.HasField("lacUpdateTimestamp")


def test_a_poll_that_need_not_wait(peer: Peer) -> None:
    """If the LAC is higher already, it returns the entry after the known one, or only the LAC without that entry."""
    ledger = next(fresh)
    stored = fill(peer, ledger, [b"a", b"b", b"c"])
    assert ask(peer, add3(ledger, 9, b"far", lac=8)).status == wire.EOK
    found = part(ask(peer, poll(ledger, -1)))
    assert (found.entryId, found.body, found.maxLAC) == (0, stored[0], 8)
    assert not found.HasField("lacUpdateTimestamp")
    found = part(ask(peer, poll(ledger, 4)))
    assert (found.entryId, found.body, found.maxLAC) == (-1, b"", 8)
    for lac in (8, 9, 2**63 - 1):
        untimed = read3(ledger, -1, previousLAC=lac, flag=PIGGYBACK)
        for message in (untimed, poll(ledger, lac, ms=1), poll(ledger, lac, ms=-5)):
            found = part(ask(peer, message))
            assert (found.status, found.entryId, found.body, found.maxLAC) == (wire.EOK, -1, b"", 8)
    assert part(ask(peer, poll(ledger, -7))).entryId == 0
    ignored = part(ask(peer, read3(ledger, 1, flag=PIGGYBACK)))
    assert (ignored.entryId, ignored.body) == (1, stored[1])


@pytest.mark.parametrize("end", ["fence", "explicit LAC", "higher explicit LAC"])
def test_what_else_ends_a_poll(bookie: LocalBookie, peer: Peer, end: str) -> None:
    """The LAC may be unchanged then."""
    ledger = next(fresh)
    fill(peer, ledger, [b"a", b"b", b"c"])
    message = poll(ledger, 1)
    send(peer, message)
    assert bookie.stat("long_polls_refused") == 0
    with bookie.peer() as other:
        assert ask(peer, force(ledger)).status == wire.EOK  # the poll, sent before, is waiting now
        if end == "fence":
            ask(other, read3(ledger, -1, flag=FENCE, masterKey=KEY))
        else:
            assert ask(other, write_lac(ledger, 2 if end.startswith("higher") else 0)).status == wire.EOK
    found = answer(peer)
    assert found.header.txnId == message.header.txnId
    lac = 2 if end.startswith("higher") else 1
    assert (part(found).entryId, part(found).maxLAC) == (2 if lac == 2 else -1, lac)


def test_polls_of_connections_that_are_gone(bookie: LocalBookie, peer: Peer) -> None:
    """They end with their connection, and the others continue."""
    ledger = next(fresh)
    fill(peer, ledger, [b"a"])
    for _ in range(20):
        with bookie.peer() as gone:
            send(gone, *(poll(ledger, 0) for _ in range(50)))
            assert ask(gone, read3(ledger, 0)).status == wire.EOK
    send(peer, poll(ledger, 0))
    with bookie.peer() as other:
        assert ask(other, add3(ledger, 1, b"b", lac=0)).status == wire.EOK
        assert ask(other, add3(ledger, 2, b"b", lac=1)).status == wire.EOK
    assert part(answer(peer)).entryId == 1


def test_deferred_sync(tmp_path: Path, faulty: ModuleType) -> None:
    """Such adds are acknowledged while the sync is stalled; recovery adds, other adds and a force are not."""
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), io_threads=1) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
    ):
        fill(peer, 1, [b"x"] * 5)
        rule = faulty.plan("fdatasync", "STALL", suffix=".txn")
        deferred = [add3(1, entry, b"x", writeFlags=DEFERRED_SYNC) for entry in range(5, 15)]
        late = [
            add3(1, 15, b"x"),
            add3(1, 16, b"x", writeFlags=2),
            add3(1, 17, b"x", flag=1, writeFlags=DEFERRED_SYNC),
            force(1),
            write_lac(1, 7),
        ]
        send(peer, *deferred, *late)
        assert {answer(peer).header.txnId for _ in deferred} == {message.header.txnId for message in deferred}
        assert faulty.wait_hit(rule, 30.0)
        assert ask(other, read3(1, 14)).status == wire.EOK
        go_on()
        answers = [answer(peer) for _ in late]
        assert {one.header.txnId for one in answers} == {message.header.txnId for message in late}
        assert {one.status for one in answers} == {wire.EOK}
        assert bookie.stat("deferred_adds") == 10
        assert ask(peer, force(1)).status == wire.EOK
        for entry in range(20, 40):
            assert ask(peer, add3(1, entry, b"x", writeFlags=DEFERRED_SYNC)).status == wire.EOK


def test_explicit_lacs(bookie: LocalBookie, peer: Peer) -> None:
    """READ_LAC returns the highest packet and the last entry, whichever exist; packets survive a restart."""
    ledger = next(fresh)
    assert ask(peer, write_lac(ledger, 3)).status == wire.EOK
    found = part(ask(peer, read_lac(ledger)))
    assert found.lacBody == packet(ledger, 3)
    assert not found.HasField("lastEntryBody")
    stored = fill(peer, ledger, [b"a", bytes(9000)])
    for flushed in (False, True):
        if flushed:
            assert bookie.storage.checkpoint()
        found = part(ask(peer, read_lac(ledger)))
        assert (found.lacBody, found.lastEntryBody) == (packet(ledger, 3), stored[1])
    other = next(fresh)
    (entry,) = fill(peer, other, [b"only"])
    found = part(ask(peer, read_lac(other)))
    assert not found.HasField("lacBody")
    assert found.lastEntryBody == entry


@pytest.mark.parametrize("with_packet", [False, True])
def test_b7_read_lac_behind_an_unreadable_disk(with_packet: bool, tmp_path: Path, faulty: ModuleType) -> None:
    """B7: READ_LAC fails while the last entry cannot be read, and never says that there is none."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        if with_packet:
            assert ask(peer, write_lac(1, 3)).status == wire.EOK
        stored = fill(peer, 1, [b"a", b"b"])
    with local_bookie(tmp_path, files=faulty.FaultyFiles()) as bookie, bookie.peer() as peer:
        faulty.plan("pread", "EIO", times=-1, suffix=".log")
        for _ in range(2):
            found = ask(peer, read_lac(1))
            assert found.readLacResponse.status == wire.EIO
            assert not found.readLacResponse.HasField("lastEntryBody")
        go_on()
        assert part(ask(peer, read_lac(1))).lastEntryBody == stored[1]


def expected(sizes: list[int], most: int, limit: int) -> int:
    """Return how many entries of these sizes a batch holds: always the first one, then as long as everything fits."""
    used = [64 + total for total in accumulate(size + 6 for size in sizes)]
    fitting = sum(1 for total in used if total <= limit)
    return min(max(fitting, 1), most or len(sizes))


@pytest.mark.parametrize("flushed", [False, True])
def test_batches_hold_what_fits(bookie: LocalBookie, peer: Peer, *, flushed: bool) -> None:
    """The number of entries, the frame size by the formula, and every byte are right, for entries of any size."""
    seeded_random = random.Random(7)
    ledger = next(fresh)
    kinds = (0, 5, 100, 4063, 4064, 4065, 5000, 20_000)
    stored = fill(peer, ledger, [seeded_random.randbytes(seeded_random.choice(kinds)) for _ in range(200)])
    if flushed:
        assert bookie.storage.checkpoint()
    sizes = [len(entry) for entry in stored]
    for _ in range(150):
        start, most = seeded_random.randrange(200), seeded_random.choice((0, 0, 1, 7, 150))
        exact = 64 + sum(size + 6 for size in sizes[start : start + seeded_random.randrange(40)])
        limit = seeded_random.choice((exact, exact - 1, exact + 1, seeded_random.randrange(300_000), 0, -1, 70))
        found = part(ask(peer, batch3(ledger, start, maxCount=most, maxSize=limit)))
        wanted = expected(sizes[start:], most, limit)
        assert found.startEntryId == start
        assert len(found.body) == wanted or (0 < len(found.body) < wanted and len(found.body) >= 100)
        assert list(found.body) == stored[start : start + len(found.body)]
    last = part(ask(peer, batch3(ledger, -1)))
    assert (last.startEntryId, list(last.body)) == (-1, stored[-1:])


def test_a_batch_of_entries_longer_than_two_megabytes(bookie: LocalBookie, peer: Peer) -> None:
    """The lengths of such entries take a longer prefix."""
    ledger = next(fresh)
    seeded_random = random.Random(3)
    edge = (1 << 21) - 32
    stored = fill(peer, ledger, [seeded_random.randbytes(size) for size in (edge - 1, 10, edge, edge + 1, 3000)])
    for flushed in (False, True):
        if flushed:
            assert bookie.storage.checkpoint()
        for start in range(5):
            found = part(ask(peer, batch3(ledger, start, maxSize=5 * MIB)))
            assert list(found.body) == stored[start : start + len(found.body)]
            assert len(found.body) == expected([len(one) for one in stored[start:]], 0, 5 * MIB)


def test_batches_when_output_is_scarce(tmp_path: Path) -> None:
    """What cannot be copied is sent from where it is stored: a peer that reads late gets everything. The budget
    includes the list of references.
    """
    limits: dict[str, Any] = {"output_bytes_max": 1 << 20, "output_high_bytes": 2 << 20, "output_low_bytes": 1 << 20}
    with local_bookie(tmp_path, **limits) as bookie, bookie.peer(receive_bytes=4096) as peer:
        stored = fill(peer, 1, [bytes([entry % 251]) * 900 for entry in range(1000)])
        wanted = [batch3(1, start, maxSize=1 << 19) for start in range(0, 400, 40)]
        send(peer, *wanted)
        for message in wanted:
            one = answer(peer)
            start = message.batchReadRequest.startEntryId
            assert one.header.txnId == message.header.txnId
            assert list(part(one).body) == stored[start : start + len(part(one).body)]
            assert len(part(one).body) > 500


def closed_by(bookie: LocalBookie) -> tuple[float, float]:
    """Take a checkpoint; return the number of logs open for entries, and of those closed after a write close."""
    assert bookie.storage.checkpoint()
    return bookie.stat("ledger_logs_active"), bookie.stat("ledger_logs_write_closed")


def test_write_close_closes_the_ledgers_log(tmp_path: Path) -> None:
    """ST9: a write close, a fence or a refused add closes the log at the next checkpoint, and again after later
    adds, which are still accepted; with a wrong key, or for an unknown ledger, nothing happens.
    """
    with local_bookie(tmp_path, log_per_ledger=True) as bookie, bookie.peer() as one:
        for ledger in (1, 2, 3, 4):
            fill(one, ledger, [b"x"])
        for ledger in (1, 1, 2, 77):
            assert ask(one, write_close(ledger)).status == wire.EOK
        assert ask(one, write_close(3, key=b"x")).status == wire.EUA
        ask(one, read3(4, -1, flag=FENCE, masterKey=KEY))
        assert bookie.stat("ledgers_closed") >= 3
        assert closed_by(bookie) == (1, 3)
        assert closed_by(bookie) == (1, 3)
        assert ask(one, add3(1, 1, b"x")).status == wire.EOK
        assert closed_by(bookie) == (2, 3)
        assert ask(one, write_close(1)).status == wire.EOK
        assert closed_by(bookie) == (1, 4)
        bookie.storage.set_read_only(True)
        assert ask(one, add3(3, 1, b"x")).status == wire.EREADONLY
        assert closed_by(bookie) == (0, 5)
        bookie.storage.set_read_only(False)
        assert ask(one, add3(3, 2, b"x")).status == wire.EOK
        assert ask(one, add3(4, 2, b"x")).status == wire.EFENCED
        assert ask(one, add3(4, 2, b"x", flag=wire.AddRequest.RECOVERY_ADD)).status == wire.EOK
        assert closed_by(bookie) == (1, 6)


def test_write_closes_without_logs_by_ledger_leave_nothing(tmp_path: Path) -> None:
    """Each checkpoint clears the marks, so that the next write close is recorded again."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as one:
        fill(one, 1, [b"x"])
        for turn in range(3):
            for _ in range(2):
                assert ask(one, write_close(1)).status == wire.EOK
            assert bookie.stat("ledgers_closed") == turn + 1
            assert closed_by(bookie) == (0, 0)


def test_a_connection_flips_to_v2_for_good(bookie: LocalBookie, peer: Peer) -> None:
    """After V3 and then a V2 frame, V3 is no longer accepted: its frames are taken for V2 and end the connection."""
    ledger = next(fresh)
    assert ask(peer, add3(ledger, 0, b"x")).status == wire.EOK
    assert peer.ask(read(ledger, 0)).body == entry_of(ledger, 0, b"x")
    assert peer.ask(add(ledger, 1, b"y")).code == 0
    send(peer, read3(ledger, 0))
    assert peer.closed()
    with bookie.peer() as other:
        unknown = bytes.fromhex("0a0608031063180b")  # operation 99: not a V3 message, and opcode 6 of V2
        other.sock.sendall(struct.pack(">i", len(unknown)) + unknown)
        assert other.closed()


def test_versions_of_v2_that_look_like_v3(bookie: LocalBookie) -> None:
    """A V2 frame with a version that no client sends is refused as V2."""
    for version in (8, 10, 0x7F, 0x80, 0xFF):
        with bookie.peer() as peer:
            assert peer.ask(read(1, 0, version=version)).code == 103


def test_both_protocols_side_by_side(bookie: LocalBookie) -> None:
    """Connections of both protocols, pipelined, on the same ledgers, get their own responses in their own format."""
    ledger = next(fresh)
    with bookie.peer() as old, bookie.peer() as new:
        for first in range(0, 200, 20):
            ids = range(first, first + 20)
            old.sock.sendall(b"".join(encode_request(add(ledger, entry, b"old")) for entry in ids if entry % 2))
            send(new, *(add3(ledger, entry, b"new", lac=entry - 5) for entry in ids if entry % 2 == 0))
            assert {old.answer().code for _ in range(10)} == {0}
            assert {answer(new).status for _ in range(10)} == {wire.EOK}
        for entry in range(200):
            body = entry_of(ledger, entry, b"old") if entry % 2 else entry_of(ledger, entry, b"new", lac=entry - 5)
            assert old.ask(read(ledger, entry)).body == body
            assert part(ask(new, read3(ledger, entry))).body == body


def test_adds_that_find_no_room(tmp_path: Path) -> None:
    """They wait for their time at the head of their connection, and are then refused."""
    with (
        local_bookie(tmp_path, write_cache_bytes=2 * MIB, throttle_ms_max=50) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
    ):
        assert ask(peer, add3(1, 0, bytes(1000))).status == wire.EOK
        too_large = add3(1, 1, bytes(3 * MIB))
        assert ask(peer, too_large).status == wire.ETOOMANYREQUESTS
        assert ask(other, read3(1, 0)).status == wire.EOK
        assert bookie.stat("stalls") >= 1


def test_frames_without_their_message(peer: Peer) -> None:
    """A header alone is refused with a copy of it, including the priority, and the connection continues."""
    for operation in range(1, 14):
        message = request(operation, priority=7)
        refused = ask(peer, message)
        assert refused == wire.Response(header=message.header, status=wire.EBADREQ)
