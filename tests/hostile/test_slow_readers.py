"""Peers that do not read delay nobody: the memory that their responses reference is free within a few rounds of
their loop, whenever the response came, and a peer that finally reads gets the right bytes.

Modules: server.slow_readers, server.owed_reads, store.spare_half, server.connection, cache.read, store.read_path.
"""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookie._fast.store.direct import Direct
from bookie.storage.settings import MIB
from tests.fixtures.certificates import Authority
from tests.hostile import v3
from tests.hostile.local import STOP_S, LocalBookie, local_bookie
from tests.hostile.peer import KEY, Peer, add, batch, entry_of, read, records
from tests.hostile.tls_peer import settings_of
from tests.hostile.wires import BYTES, SLOW, Wire, checked, fill, stored
from tests.reference.wire_v2 import ADD, Request

HOT, COLD, MIXED = 1, 2, 3
NO_FRAME = struct.pack(">i", 1) + b"\0"
"""What neither protocol can read."""
FLOOD = 60
OUT_LITTLE = 1 << 16
"""The bytes that any batch may have, however much of the budget is taken."""
SILENT_MS = 300
"""Kernels delay an acknowledgement, and with it what follows, by at most 200 ms."""
SMALL: dict[str, Any] = {
    "io_threads": 1,
    "write_cache_bytes": 4 * MIB,
    "flush_bytes": 2 * MIB,
    "flush_interval_ms": 600_000,
    "read_cache_bytes": 256 << 10,
    "read_segment_bytes": 128 << 10,
    "output_high_bytes": 400_000,
    "output_low_bytes": 100_000,
    "output_bytes_max": 64 * MIB,
}


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that signed the bookie's certificate."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def bookie(tmp_path: Path, ca: Authority, faulty: ModuleType) -> Iterator[LocalBookie]:
    """A bookie on a disk with planned stalls. Ledgers COLD and MIXED are flushed, except entry 5 of MIXED."""
    party = ca.issue("bookie", hosts=["127.0.0.1"])
    with local_bookie(tmp_path, files=faulty.FaultyFiles(), tls=settings_of(party), **SMALL) as bookie:
        with bookie.peer() as peer:
            fill(peer, COLD, range(200))
            fill(peer, MIXED, range(5))
            fill(peer, MIXED, range(6, 12))
            assert bookie.storage.checkpoint()
            fill(peer, MIXED, range(5, 6))
            fill(peer, HOT, range(50))
        yield bookie


@pytest.fixture(params=["v2", "v3", "tls"])
def spoken(request: pytest.FixtureRequest, bookie: LocalBookie, ca: Authority) -> Wire:
    """Return the wire of each protocol in turn."""
    return Wire(request.param, bookie, ca)


def pins(bookie: LocalBookie) -> dict[str, int]:
    """Return the counts of pinned memory."""
    assert bookie.storage.stores is not None
    direct = Direct(bookie.storage.stores, bookie.storage.pool)
    try:
        return direct.pins()
    finally:
        direct.close()


def until_unpinned(bookie: LocalBookie) -> None:
    """Wait until nothing is pinned: a peer may have its response before its loop releases the memory."""
    deadline = time.monotonic() + STOP_S
    while any(pins(bookie).values()):
        assert time.monotonic() < deadline, pins(bookie)


def flood(spoken: Wire, peer: Peer) -> None:
    """Request so much that the connection is full, and wait until it is."""
    before = spoken.bookie.stat("choked")
    for _ in range(FLOOD):
        spoken.batch(peer, HOT, 0, 50)
    spoken.bookie.until("choked", lambda times: times > before)


def rounds(bookie: LocalBookie, times: int = 5) -> None:
    """Let every loop make its rounds."""
    with bookie.peer() as other:
        for _ in range(times):
            assert other.ask(read(HOT, 0)).code == 0


def in_time(what: threading.Thread) -> bool:
    """Return whether the thread ends."""
    what.join(STOP_S / 2)
    return not what.is_alive()


def test_a_half_is_free_although_an_answer_comes_to_a_full_connection_after_it_was_asked_for(
    spoken: Wire, faulty: ModuleType
) -> None:
    """B18: a batch has an entry from the half and waits for the disk; the half is flushed and needed again, every
    loop releases it, and then the response is ready for a peer that does not read. Flushes and adds continue, and a
    peer that finally reads gets its bytes.
    """
    bookie = spoken.bookie
    with spoken.slow() as slow, bookie.peer() as other:
        stall = faulty.plan("pread", "STALL", suffix=".log")
        spoken.batch(slow, MIXED, 5, 5)
        assert faulty.wait_hit(stall, STOP_S)
        flood(spoken, slow)
        flushed = bookie.stat("index_entries")
        first = threading.Thread(target=bookie.storage.checkpoint, daemon=True)
        first.start()
        bookie.until("index_entries", lambda entries: entries > flushed)
        rounds(bookie)
        faulty.release()
        assert in_time(first)
        fill(other, COLD, range(200, 210))
        second = threading.Thread(target=bookie.storage.checkpoint, daemon=True)
        second.start()
        assert in_time(second), "the half that was flushed first never came back"
        assert pins(bookie)["halves"] == 0
        found = [spoken.check(slow) for _ in range(FLOOD + 1)]
        assert any(ledger == MIXED and count for ledger, _, count in found)


def test_the_ring_goes_on_although_an_answer_comes_to_a_full_connection_after_it_was_asked_for(
    spoken: Wire, faulty: ModuleType
) -> None:
    """B21: a single read waits for the disk while the ring comes round to its page and needs it, and then the
    response is ready for a peer that does not read. The ring goes on.
    """
    bookie = spoken.bookie
    with spoken.slow() as slow, bookie.peer() as other:
        stall = faulty.plan("pread", "STALL", suffix=".log")
        spoken.single(slow, COLD, 100)
        assert faulty.wait_hit(stall, STOP_S)
        flood(spoken, slow)
        for entry in range(0, 90, 2):
            other.send(read(COLD, entry))
            checked(COLD, entry, [other.answer().body])
        faulty.release()
        rounds(bookie)
        turned = bookie.stat("read_cache_evicted_segments")
        for entry in range(100, 200, 2):
            other.send(read(COLD, entry))
            checked(COLD, entry, [other.answer().body])
        assert bookie.stat("read_cache_evicted_segments") > turned, "the ring stands still"
        found = [spoken.check(slow) for _ in range(FLOOD + 1)]
        assert (COLD, 100, 1) in found


@pytest.mark.parametrize("name", ["v2", "v3", "tls"])
def test_a_kept_half_is_free_although_a_peer_does_not_read(name: str, tmp_path: Path, ca: Authority) -> None:
    """B18, B21: unsent responses point into a flushed half that is kept. When its memory is needed, flushes and adds
    continue, and a peer that finally reads gets its bytes.
    """
    tls = settings_of(ca.issue("bookie", hosts=["127.0.0.1"]))
    with local_bookie(tmp_path, tls=tls, **{**SMALL, "keep_flushed": True}) as bookie, bookie.peer() as other:
        spoken = Wire(name, bookie, ca)
        fill(other, HOT, range(50))
        assert bookie.storage.checkpoint()
        with spoken.slow() as slow:
            flood(spoken, slow)
            for ledger in range(10, 22):
                fill(other, ledger, range(50))
                again = threading.Thread(target=bookie.storage.checkpoint, daemon=True)
                again.start()
                assert in_time(again), "the kept half never came back"
            found = [spoken.check(slow) for _ in range(FLOOD)]
            assert {ledger for ledger, _, _ in found} == {HOT}
            other.send(read(HOT, 7))
            checked(HOT, 7, [other.answer().body])
            assert bookie.stat("disk_reads") > 0, "the half was not dropped"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["v3", "tls"])
def test_long_polls_that_end_on_full_connections(name: str, bookie: LocalBookie, ca: Authority) -> None:
    """B18: between flushes, each change answers a poll of a peer that does not read; every one of them ends."""
    spoken = Wire(name, bookie, ca)
    polled = 7
    with ExitStack() as stack:
        other = stack.enter_context(bookie.peer())
        fill(other, polled, range(1))
        slow = [stack.enter_context(spoken.slow()) for _ in range(6)]
        for at, one in enumerate(slow):
            fill(other, HOT, range(50))
            waiting = bookie.stat("long_polls_waiting")
            v3.send(one, v3.read3(polled, -1, previousLAC=at - 1, timeOut=600_000, flag=v3.PIGGYBACK))
            bookie.until("long_polls_waiting", lambda count, before=waiting: count > before)  # type: ignore[misc]
            flood(spoken, one)
            body = stored(polled, at + 1)[32:]
            other.send(Request(ADD, 2, key=KEY, body=entry_of(polled, at + 1, body, lac=at)))
            assert other.answer().code == 0
            flush = threading.Thread(target=bookie.storage.checkpoint, daemon=True)
            flush.start()
            assert in_time(flush)
            fill(other, COLD, range(300 + at, 301 + at))
        assert bookie.storage.checkpoint()
        assert pins(bookie)["halves"] == 0
        for at, one in enumerate(slow):
            answers = [v3.part(v3.answer(one)) for _ in range(FLOOD + 1)]
            (found,) = [answer for answer in answers if answer.ledgerId == polled]
            assert found.body[32:] == stored(polled, at)[32:]


def silent_ms(peer: Peer) -> int:
    """Return for how long the peer's kernel has received no bytes: `tcpi_last_data_recv`."""
    return int(struct.unpack_from("=I", peer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 52)[0])


def until_full(peers: list[Peer]) -> None:
    """Wait until the kernels of peers that do not read have received all they will; the last of it comes late."""
    deadline = time.monotonic() + STOP_S
    while min(map(silent_ms, peers)) < SILENT_MS:
        assert time.monotonic() < deadline


def served_wholly(peer: Peer, answers: int) -> bool:
    """Return whether this many responses came, all with the right bytes, before the bookie closed the connection."""
    try:
        for _ in range(answers):
            checked(HOT, 0, records(peer.answer().body))
    except (EOFError, ConnectionResetError):
        return False
    return True


@pytest.mark.thorough
@pytest.mark.parametrize("order", [1, -1])
def test_when_the_budget_of_output_is_used_up_the_slowest_are_closed(tmp_path: Path, order: int) -> None:
    """B17: memory that is needed again does not fit into the budget: peers that have received nothing for longest
    are closed, which the log and a counter show; the others get their bytes, nothing stays pinned, and flushes
    continue. If one of the others breaks a rule later, that is the reason which is shown.
    """
    with local_bookie(tmp_path, **{**SMALL, "output_bytes_max": 8 * MIB}) as bookie, ExitStack() as stack:
        other = stack.enter_context(bookie.peer())
        fill(other, HOT, range(50))
        slow = [stack.enter_context(bookie.peer(**SLOW)) for _ in range(40)]
        for one in slow[::order]:
            choked = bookie.stat("choked")
            one.send(*(batch(HOT, 0, count=50) for _ in range(FLOOD)))
            bookie.until("choked", lambda times, before=choked: times > before)  # type: ignore[misc]
        until_full(slow)
        for _ in range(10):
            checked(HOT, 0, records(slow[0].answer().body))
        assert bookie.storage.checkpoint()
        bookie.until("turned_away_12", lambda times: times > 0)
        rounds(bookie)
        assert pins(bookie)["halves"] == 0
        assert bookie.stat("output_buffer_bytes") <= 8 * MIB
        assert bookie.stat("turned_away_12") < len(slow)
        fill(other, HOT, range(50))
        served = [served_wholly(one, FLOOD - 10 * (one is slow[0])) for one in slow]
        assert served[0], "it was the last to take something"
        assert served.count(False) == bookie.stat("turned_away_12") == bookie.stat("closed_by_limit")
        for one, still_open in zip(slow, served, strict=True):
            if still_open:
                one.sock.sendall(NO_FRAME)
                assert one.take_all() == b""
        assert bookie.stat("turned_away_1") == served.count(True)
        assert bookie.stat("turned_away_2") == 0
        fill(other, HOT, range(50, 100))
        assert bookie.storage.checkpoint()


@pytest.mark.thorough
def test_many_who_hold_little_close_nobody_who_reads(tmp_path: Path) -> None:
    """B17: no peer has much unsent output, but together it exceeds the budget: these peers are closed, and not
    counted as broken frames; a client that adds and reads meanwhile always gets memory for its responses.
    """
    little = {"output_bytes_max": 4 * MIB, "output_high_bytes": 20_000, "output_low_bytes": 5_000}
    with local_bookie(tmp_path, **{**SMALL, **little}) as bookie, ExitStack() as stack:
        other = stack.enter_context(bookie.peer())
        assert other.ask(add(HOT, 0, bytes(500))).code == 0
        for at in range(250):
            settled = sum(map(bookie.stat, ("choked", "closed_by_limit", "broken_frames")))
            slow = stack.enter_context(bookie.peer(**SLOW))
            slow.send(*(read(HOT, 0) for _ in range(1500)))
            while sum(map(bookie.stat, ("choked", "closed_by_limit", "broken_frames"))) == settled:
                assert other.ask(read(HOT, 0)).code == 0
            assert other.ask(add(HOT, at, bytes(500))).code == 0
        assert bookie.stat("turned_away_12") > 0
        assert bookie.stat("turned_away_12") == bookie.stat("closed_by_limit")
        assert bookie.stat("broken_frames") == 0
        assert bookie.stat("output_buffer_bytes") <= 4 * MIB


@pytest.mark.parametrize("small_first", [False, True])
def test_what_one_connection_has_under_way_closes_no_other(tmp_path: Path, small_first: bool) -> None:
    """B17: one peer asks the disk for more at once than the budget of output holds. It is served as it reads, and
    another peer with little unsent output is not closed for it; not even when the first peer's batches come after a
    single small read, which says nothing of what a batch brings.
    """
    with local_bookie(tmp_path, **{**SMALL, "output_bytes_max": 16 * MIB}) as bookie, ExitStack() as stack:
        other = stack.enter_context(bookie.peer())
        fill(other, HOT, range(50))
        patient, greedy = (stack.enter_context(bookie.peer(**SLOW)) for _ in range(2))
        patient.send(*(batch(HOT, 0, count=50) for _ in range(FLOOD)))
        bookie.until("choked", lambda times: times > 0)
        fill(other, COLD, range(1))
        assert bookie.storage.checkpoint()
        if small_first:
            checked(COLD, 0, [greedy.ask(read(COLD, 0)).body])
        greedy.send(*(batch(HOT, 0, count=50) for _ in range(2 * FLOOD)))
        assert served_wholly(greedy, 2 * FLOOD)
        assert served_wholly(patient, FLOOD)
        assert bookie.stat("turned_away_12") == 0


@pytest.mark.thorough
def test_who_never_reads_all_of_it_does_not_make_its_buffer_grow(tmp_path: Path) -> None:
    """B17: short responses are copied; a peer that always leaves some unread receives many times the budget."""
    with local_bookie(tmp_path, **{**SMALL, "output_bytes_max": 8 * MIB}) as bookie, bookie.peer(**SLOW) as peer:
        peer.send(*(add(HOT, entry, bytes(3000)) for entry in range(20)))
        assert {peer.answer().code for _ in range(20)} == {0}
        requests, taken = [read(HOT, at % 20) for at in range(1000)], 0
        peer.send(*requests)
        for _ in range(10):
            peer.send(*requests)
            for _ in requests:
                assert peer.answer().body[32:] == bytes(3000)
                taken += 1
            assert bookie.stat("output_buffer_bytes") < 2 * MIB
        assert taken * 3000 > 3 * 8 * MIB


def test_connections_that_end_in_the_middle_while_the_ring_turns(spoken: Wire) -> None:
    """B21: some of those with pinned slices of the ring are closed or reset while it comes round; the others read
    the right bytes, and nothing stays pinned.
    """
    bookie = spoken.bookie
    with ExitStack() as stack:
        other = stack.enter_context(bookie.peer())
        slow = [stack.enter_context(spoken.slow()) for _ in range(12)]
        for at, one in enumerate(slow):
            for start in range(at, 200, 25):
                spoken.batch(one, COLD, start, 20)
        for entry in range(0, 200, 3):
            other.send(read(COLD, entry))
            checked(COLD, entry, [other.answer().body])
            if entry % 30 == 0:
                gone = slow.pop()
                gone.abort() if entry % 60 else gone.close()
        assert slow
        for at, one in enumerate(slow):
            for _ in range(at, 200, 25):
                assert spoken.check(one)[0] == COLD
        rounds(bookie)
        until_unpinned(bookie)
        assert bookie.stat("uncached_read_bytes") == 0
        bookie.until("read_pool_jobs", lambda jobs: jobs == 0)


@pytest.mark.parametrize("ends", [Peer.abort, Peer.close])
def test_connections_that_end_while_the_disk_stalls_leave_nothing_behind(
    tmp_path: Path, faulty: ModuleType, ends: Callable[[Peer], None]
) -> None:
    """B17, B21: peers that do not read end while the disk owes them batches, and a flush needs the memory of their
    unsent output. What they were owed does not count any longer: another client gets as much at once as before, far
    more than it would if the budget were taken.
    """
    small = {**SMALL, "output_bytes_max": 4 * MIB}
    with local_bookie(tmp_path, files=faulty.FaultyFiles(), **small) as bookie, bookie.peer() as other:
        fill(other, COLD, range(100))
        assert bookie.storage.checkpoint()
        for _ in range(12):
            fill(other, HOT, range(50))
            stall = faulty.plan("pread", "STALL", suffix=".log", times=-1)
            with ExitStack() as stack:
                slow = [stack.enter_context(bookie.peer(**SLOW)) for _ in range(3)]
                for one in slow:
                    one.send(*(batch(COLD, at, count=20) for at in range(0, 100, 20)))
                    one.send(*(batch(HOT, 0, count=50) for _ in range(5)))
                assert faulty.wait_hit(stall, STOP_S)
                flush = threading.Thread(target=bookie.storage.checkpoint, daemon=True)
                flush.start()
                assert in_time(flush)
                for one in slow:
                    ends(one)
                fill(other, MIXED, range(1))
            faulty.clear()
            faulty.release()
            bookie.until("read_pool_jobs", lambda jobs: jobs == 0)
        bookie.until("connections", lambda count: count == 1)
        until_unpinned(bookie)
        for entry in range(0, 100, 10):
            checked(COLD, entry, [other.ask(read(COLD, entry)).body])
        other.send(batch(COLD, 0, count=50))
        checked(COLD, 0, found := records(other.answer().body))
        assert len(found) * BYTES > 3 * OUT_LITTLE
        assert bookie.stat("output_buffer_bytes") < MIB


def test_an_orderly_stop_beside_slow_readers(tmp_path: Path) -> None:
    """B18: peers that never read delay the stop no longer than configured, and all added entries are there again."""
    directory = tmp_path / "stopped"
    directory.mkdir()
    with ExitStack() as stack, local_bookie(directory, **SMALL) as bookie:
        other = stack.enter_context(bookie.peer())
        fill(other, HOT, range(50))
        for _ in range(20):
            one = stack.enter_context(bookie.peer(**SLOW))
            choked = bookie.stat("choked")
            one.send(*(batch(HOT, 0, count=50) for _ in range(FLOOD)))
            bookie.until("choked", lambda times, before=choked: times > before)  # type: ignore[misc]
        ending = threading.Thread(target=bookie.port.stop, args=(0.2,), daemon=True)
        ending.start()
        assert bookie.storage.checkpoint()
        assert in_time(ending)
        ending = threading.Thread(target=bookie.storage.stop, daemon=True)
        ending.start()
        assert in_time(ending)
    with local_bookie(directory, **SMALL) as bookie, bookie.peer() as other:
        for entry in range(50):
            other.send(read(HOT, entry))
            checked(HOT, entry, [other.answer().body])
