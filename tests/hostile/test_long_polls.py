"""Reads that wait for a higher LAC, on real sockets: what ends a wait, how it is answered, limits, memory, tailing.

Modules: server.long_polls, store.notices, server.dispatch.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bookie.pb import wire_pb2 as pb
from bookie.storage.settings import MIB
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, Peer, entry_of
from tests.hostile.v3 import FENCE, PIGGYBACK, add3, answer, ask, batch3, part, read3, send, write_lac

LONG_MS = 600_000
SHORT_MS = 30
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def bookie(tmp_path: Path) -> Iterator[LocalBookie]:
    """A bookie with two I/O loops."""
    with local_bookie(tmp_path) as bookie:
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """A connection that has written entries 0 to 3 of ledger 1, the last one with LAC 2."""
    with bookie.peer() as peer:
        for entry in range(4):
            assert ask(peer, add3(1, entry, b"data", lac=entry - 1)).status == pb.EOK
        yield peer


def poll(ledger: int, previous_lac: int, timeout_ms: int) -> pb.Request:
    """Return a read that waits for a LAC above `previous_lac`, and returns the entry after that too."""
    return read3(ledger, -1, previousLAC=previous_lac, timeOut=timeout_ms, flag=PIGGYBACK)


def until_waiting(bookie: LocalBookie, count: int) -> None:
    """Wait until this number of polls is registered."""
    bookie.until("long_polls_waiting", lambda waiting: waiting == count)


def test_an_unknown_ledger(peer: Peer) -> None:
    """The error is returned at once."""
    assert ask(peer, poll(99, -1, LONG_MS)).status == pb.ENOLEDGER


def test_a_lac_that_is_higher_already(peer: Peer) -> None:
    """The entry comes at once with its id and the LAC, and without the time of an update."""
    found = part(ask(peer, poll(1, 0, LONG_MS)))
    assert (found.entryId, found.body, found.maxLAC) == (1, entry_of(1, 1, b"data", lac=0), 2)
    assert not found.HasField("lacUpdateTimestamp")


@pytest.mark.parametrize("fields", [{"timeOut": SHORT_MS}, {"timeOut": 0}, {"timeOut": -5}, {}])
def test_a_wait_that_times_out(peer: Peer, fields: dict[str, Any]) -> None:
    """There is no entry, and the LAC is unchanged. Without a timeout, or with none left, the response comes at once."""
    found = part(ask(peer, read3(1, -1, previousLAC=2, flag=PIGGYBACK, **fields)))
    assert (found.status, found.entryId, found.maxLAC) == (pb.EOK, -1, 2)
    assert not found.HasField("body")
    assert not found.HasField("lacUpdateTimestamp")


def test_a_poll_without_piggyback_is_a_plain_read_in_the_end(peer: Peer) -> None:
    """It returns the entry that it names."""
    found = part(ask(peer, read3(1, 3, previousLAC=2, timeOut=SHORT_MS)))
    assert (found.entryId, found.body, found.maxLAC) == (3, entry_of(1, 3, b"data", lac=2), 2)


def test_a_piggyback_on_an_entry_is_refused(peer: Peer) -> None:
    """A piggyback is only allowed with the last entry."""
    refused = part(ask(peer, read3(1, 3, previousLAC=2, timeOut=LONG_MS, flag=PIGGYBACK)))
    assert refused.status == pb.EBADREQ


def test_a_lac_update_ends_the_wait(bookie: LocalBookie, peer: Peer) -> None:
    """Every waiting connection gets the entry and the time of the update; other requests continue meanwhile."""
    with bookie.peer() as one, bookie.peer() as two:
        send(one, poll(1, 2, LONG_MS))
        later = poll(1, 3, LONG_MS)
        send(two, poll(1, 2, LONG_MS), later)
        until_waiting(bookie, 3)
        assert ask(two, read3(1, 0)).status == pb.EOK
        assert ask(peer, add3(1, 4, b"data", lac=3)).status == pb.EOK
        for waiting in (one, two):
            found = part(answer(waiting))
            assert (found.entryId, found.body, found.maxLAC) == (3, entry_of(1, 3, b"data", lac=2), 3)
            assert found.lacUpdateTimestamp > 1_600_000_000_000
        assert bookie.stat("long_polls_waiting") == 1
        assert ask(peer, add3(1, 5, b"data", lac=4)).status == pb.EOK
        last = answer(two)
        assert (last.header.txnId, part(last).entryId, part(last).maxLAC) == (later.header.txnId, 4, 4)


def test_an_entry_that_is_not_here(bookie: LocalBookie, peer: Peer) -> None:
    """Only the LAC is returned, because another bookie has the entry."""
    send(peer, poll(1, 6, LONG_MS))
    until_waiting(bookie, 1)
    with bookie.peer() as other:
        assert ask(other, add3(1, 9, b"data", lac=8)).status == pb.EOK
    found = part(answer(peer))
    assert (found.entryId, found.maxLAC, found.HasField("body")) == (-1, 8, False)


@pytest.mark.parametrize(
    "end",
    [lambda: read3(1, -1, masterKey=KEY, flag=FENCE), lambda: write_lac(1, 0)],
    ids=["fence", "explicit LAC that is not higher"],
)
def test_what_else_ends_a_wait(bookie: LocalBookie, peer: Peer, end: Callable[[], Any]) -> None:
    """There is no entry and no time of an update, and the LAC is unchanged."""
    send(peer, poll(1, 2, LONG_MS))
    until_waiting(bookie, 1)
    with bookie.peer() as other:
        assert ask(other, end()).status == pb.EOK
    found = part(answer(peer))
    assert (found.entryId, found.maxLAC, found.HasField("lacUpdateTimestamp")) == (-1, 2, False)


def test_an_explicit_lac_brings_the_entry(bookie: LocalBookie, peer: Peer) -> None:
    """The last entry of a ledger becomes readable in this way."""
    send(peer, poll(1, 2, LONG_MS))
    until_waiting(bookie, 1)
    with bookie.peer() as other:
        assert ask(other, write_lac(1, 3)).status == pb.EOK
    found = part(answer(peer))
    assert (found.entryId, found.body, found.maxLAC) == (3, entry_of(1, 3, b"data", lac=2), 3)


def test_a_batch_that_waits(bookie: LocalBookie, peer: Peer) -> None:
    """Like a single read: from the entry after the LAC that it names with a piggyback, otherwise from its own start."""
    asked = {"previousLAC": 2, "timeOut": LONG_MS}
    entries = [entry_of(1, entry, b"data", lac=lac) for entry, lac in enumerate((-1, 0, 1, 2, 2, 4))]
    found = part(ask(peer, batch3(1, -1, **{**asked, "previousLAC": 0}, flag=PIGGYBACK)))
    assert (found.startEntryId, list(found.body), found.maxLAC) == (1, entries[1:4], 2)
    with bookie.peer() as one, bookie.peer() as two:
        send(one, batch3(1, -1, **asked, flag=PIGGYBACK))
        send(two, batch3(1, 1, **asked, maxCount=2))
        until_waiting(bookie, 2)
        for entry, lac in ((4, 2), (5, 4)):  # the wait ends with the second
            assert ask(peer, add3(1, entry, b"data", lac=lac)).status == pb.EOK
        found = part(answer(one))
        assert (found.startEntryId, list(found.body), found.maxLAC) == (3, entries[3:], 4)
        assert found.lacUpdateTimestamp > 1_600_000_000_000
        found = part(answer(two))
        assert (found.startEntryId, list(found.body), found.maxLAC) == (1, entries[1:3], 4)


@pytest.mark.parametrize("fields", [{"timeOut": SHORT_MS}, {"timeOut": 0}, {}])
def test_a_batch_that_waits_in_vain(peer: Peer, fields: dict[str, Any]) -> None:
    """There are no entries, and the LAC is unchanged."""
    found = part(ask(peer, batch3(1, -1, previousLAC=2, flag=PIGGYBACK, **fields)))
    assert (found.status, found.startEntryId, list(found.body), found.maxLAC) == (pb.EOK, -1, [], 2)
    assert not found.HasField("lacUpdateTimestamp")


def test_after_a_restart_the_lac_is_learnt_first(tmp_path: Path) -> None:
    """The LAC that the entries on disk imply is returned at once; the poll waits only for a higher one."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        for entry in range(4):
            assert ask(peer, add3(1, entry, b"data", lac=entry - 1)).status == pb.EOK
        assert bookie.storage.checkpoint()
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        found = part(ask(peer, poll(1, 1, LONG_MS)))
        assert (found.entryId, found.maxLAC) == (2, 2)
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        found = part(ask(peer, poll(1, 2, SHORT_MS)))
        assert (found.entryId, found.maxLAC) == (-1, 2)


def test_more_polls_than_allowed(tmp_path: Path) -> None:
    """Over the limit of the connection, or of all, a poll is refused; other requests and connections are not."""
    with (
        local_bookie(tmp_path, long_polls_per_connection_max=5, long_polls_max=8) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
    ):
        assert ask(peer, add3(1, 0)).status == pb.EOK
        send(peer, *(poll(1, 5, LONG_MS) for _ in range(5)))
        until_waiting(bookie, 5)
        assert ask(peer, poll(1, 5, LONG_MS)).status == pb.ETOOMANYREQUESTS
        send(other, *(poll(1, 5, LONG_MS) for _ in range(3)))
        until_waiting(bookie, 8)
        assert ask(other, poll(1, 5, LONG_MS)).status == pb.ETOOMANYREQUESTS
        assert ask(other, poll(1, -2, LONG_MS)).status == pb.EOK
        assert bookie.stat("long_polls_refused") == 2
        peer.close()
        until_waiting(bookie, 3)
        send(other, poll(1, 5, LONG_MS))
        until_waiting(bookie, 4)


def test_a_stop_answers_who_waits(tmp_path: Path) -> None:
    """They are answered at once, as if they had timed out."""
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert ask(peer, add3(1, 0)).status == pb.EOK
        send(peer, poll(1, 5, LONG_MS))
        until_waiting(bookie, 1)
        stop = threading.Thread(target=bookie.port.stop, args=(60.0,))
        stop.start()
        assert part(answer(peer)).entryId == -1
        stop.join()


def resident() -> int:
    """Return the resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def test_many_idle_polls(tmp_path: Path, many_descriptors: int) -> None:
    """2,000 connections with a poll or two take less than 4 KiB each, counting both ends of the sockets, and leave
    nothing behind, whether they end or are cut off.
    """
    if many_descriptors < 4200:
        pytest.skip(f"both ends of 2,000 connections are 4,000 descriptors, and {many_descriptors} are allowed")
    with local_bookie(tmp_path) as bookie, bookie.peer() as writer:
        assert ask(writer, add3(1, 0)).status == pb.EOK
        peers = [bookie.peer() for _ in range(50)]
        for warm in peers:
            assert ask(warm, read3(1, 0)).status == pb.EOK
        before = resident()
        peers += [bookie.peer() for _ in range(1950)]
        for number, one in enumerate(peers):
            send(one, read3(1, 0))
            assert answer(one).status == pb.EOK
            send(one, *(poll(1, number % 7, LONG_MS) for _ in range(1 + number % 2)))
            assert ask(one, read3(1, 0)).status == pb.EOK
        until_waiting(bookie, 3000)
        if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which adds to each allocation
            assert resident() - before < 2000 * 4096
        assert bookie.stat("output_buffer_bytes") <= 64 << 10
        for one in peers[:1000]:
            one.close()
        until_waiting(bookie, 1500)
        for one in peers[1000:]:
            one.abort()
        until_waiting(bookie, 0)
        assert bookie.stat("long_polls_cancelled") == 3000
        assert ask(writer, add3(1, 1, lac=0)).status == pb.EOK


def test_many_polls_of_one_ledger_end_at_once(tmp_path: Path) -> None:
    """All get the entry, though all responses together are larger than the budget of output, and others are served."""
    peers, each, payload = 40, 60, bytes(4000)
    with local_bookie(tmp_path, io_threads=1, output_bytes_max=8 * MIB) as bookie, ExitStack() as open_ones:
        writer, *waiting = (open_ones.enter_context(bookie.peer()) for _ in range(peers + 1))
        assert ask(writer, add3(1, 0, payload)).status == pb.EOK
        for one in waiting:
            send(one, *(poll(1, -1, LONG_MS) for _ in range(each)))
        until_waiting(bookie, peers * each)
        assert ask(writer, add3(1, 1, payload, lac=0)).status == pb.EOK
        for one in waiting:
            found = [part(answer(one)) for _ in range(each)]
            assert {(reply.entryId, reply.body) for reply in found} == {(0, entry_of(1, 0, payload))}
        assert bookie.stat("long_polls_waiting") == 0
        assert bookie.stat("closed_by_limit") == 0


def tail(bookie: LocalBookie, ledger: int, count: int, seen: list[list[bytes]]) -> None:
    """Read a ledger by polls until its last entry."""
    with bookie.peer() as peer:
        lac = -1
        while len(seen[ledger]) < count:
            found = part(ask(peer, poll(ledger, lac, LONG_MS)))
            assert found.status == pb.EOK
            if found.entryId != -1:
                assert found.entryId == lac + 1
                seen[ledger].append(found.body)
                lac += 1


def test_twenty_ledgers_are_tailed_while_they_are_written(bookie: LocalBookie) -> None:
    """Every entry comes exactly once and in order, whichever loops reader and writer are on."""
    ledgers, count = 20, 150
    with bookie.peer() as first:
        for ledger in range(ledgers):
            assert ask(first, add3(ledger, 0, b"0")).status == pb.EOK
    seen: list[list[bytes]] = [[] for _ in range(ledgers)]
    tails = [threading.Thread(target=tail, args=(bookie, ledger, count, seen)) for ledger in range(ledgers)]
    for thread in tails:
        thread.start()

    def write(mine: range) -> None:
        with bookie.peer() as peer:
            for entry in range(1, count):
                for ledger in mine:
                    assert ask(peer, add3(ledger, entry, b"%d" % entry, lac=entry - 1)).status == pb.EOK
            for ledger in mine:
                assert ask(peer, write_lac(ledger, count - 1)).status == pb.EOK

    writers = [threading.Thread(target=write, args=(range(part, ledgers, 4),)) for part in range(4)]
    for thread in writers:
        thread.start()
    for thread in writers + tails:
        thread.join()
    for ledger in range(ledgers):
        expected = [entry_of(ledger, entry, b"%d" % entry, lac=entry - 1) for entry in range(count)]
        assert seen[ledger] == expected
    assert bookie.stat("long_polls_waiting") == 0
    assert bookie.stat("long_polls_notified") > 0


@pytest.mark.parametrize("timed", [{}, {"timeOut": SHORT_MS}])
@pytest.mark.parametrize("start", [-1, 0, 1])
def test_a_batch_with_a_piggyback_names_a_lac(peer: Peer, start: int, timed: dict[str, int]) -> None:
    """ENTRY_PIGGYBACK without previousLAC is EBADREQ in a batch read; a single read ignores it, as Java's bookie."""
    refused = ask(peer, batch3(1, start, flag=PIGGYBACK, **timed))
    assert refused.status == pb.EBADREQ
    assert (part(refused).startEntryId, list(part(refused).body)) == (start, [])
    assert ask(peer, read3(1, 0, flag=PIGGYBACK, **timed)).status == pb.EOK
    assert ask(peer, batch3(1, 0)).status == pb.EOK
