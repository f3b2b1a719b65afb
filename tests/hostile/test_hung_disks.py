"""The disk of one directory hangs: what needs only the disks of others goes on as if nothing had happened (B15, B18).

Modules: store.checkpoint, store.flushers, journal.files, server.dispatch, server.admission.
"""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookie._fast.store.direct import Direct
from bookie.errors import RequestTimeout
from bookie.pb import wire_pb2 as wire
from bookie.storage.settings import MIB
from tests.fixtures.faults import go_on
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, Peer, add, entry_of, read
from tests.hostile.v3 import ask, write_lac

PATIENCE_S = 60
FENCE = 1
TOO_MANY = 106
HUNG, CALM = 1, 2
"""Ledgers on the disk that hangs and on the other one: the number of a ledger's directory is its id modulo two."""


def calm(peer: Peer, entries: range, size: int = 10_000) -> None:
    """Add to the ledger on the other disk, and check that all is acknowledged and served."""
    for first in range(entries.start, entries.stop, 20):
        few = range(first, min(first + 20, entries.stop))
        peer.send(*(add(CALM, entry, bytes(size)) for entry in few))
        assert {peer.answer().code for _ in few} == {0}
    last = entries.stop - 1
    assert peer.ask(read(CALM, last)).body == entry_of(CALM, last, bytes(size))


def journal_files(directory: Path) -> list[str]:
    """Return the ends of the paths of a journal's files, oldest first."""
    files = sorted((directory / "current").glob("*.txn"), key=lambda path: int(path.stem, 16))
    return ["/".join(path.parts[-3:]) for path in files]


@pytest.fixture
def journals(tmp_path: Path, faulty: ModuleType) -> Iterator[tuple[LocalBookie, Peer, Path]]:
    """A bookie with one loop and two journals, a connection, and the journal of ledger 1. Each loop has a patience of
    its own.
    """
    directories = tmp_path / "calm", tmp_path / "hung"
    with (
        local_bookie(
            tmp_path,
            files=faulty.FaultyFiles(),
            journals=directories,
            io_threads=1,
            throttle_ms_max=200,
            flush_interval_ms=3_600_000,
            buffer_bytes=2 * MIB,
            write_cache_bytes=64 * MIB,
            pending_adds_max=400,
            reuse_files=True,
        ) as bookie,
        bookie.peer() as peer,
    ):
        yield bookie, peer, directories[1]


def test_a_hung_directory_keeps_no_other_one_from_its_flushes(tmp_path: Path, faulty: ModuleType) -> None:
    """While the flush of one directory hangs, many times the write cache of another one is added, flushed and read."""
    directories = tmp_path / "calm", tmp_path / "hung"
    with (
        local_bookie(
            tmp_path,
            files=faulty.FaultyFiles(),
            ledger_directories=directories,
            throttle_ms_max=20_000,
            write_cache_bytes=2 * MIB,
            flush_bytes=MIB // 4,
        ) as bookie,
        bookie.peer() as peer,
    ):
        stall = faulty.plan("pwritev", "STALL", suffix="hung/current/0.log")
        peer.send(*(add(HUNG, entry, bytes(10_000)) for entry in range(40)))
        assert {peer.answer().code for _ in range(40)} == {0}
        assert faulty.wait_hit(stall, PATIENCE_S)
        with pytest.raises(RequestTimeout, match="and goes on"):
            bookie.storage.checkpoint(0.1)
        calm(peer, range(1000))
        assert sum(log.stat().st_size for log in (directories[0] / "current").glob("*.log")) > 6 * MIB
        go_on()
        assert bookie.storage.checkpoint()
        assert peer.ask(read(HUNG, 0)).body == entry_of(HUNG, 0, bytes(10_000))


def test_a_flush_that_finds_nothing_to_do_ends_beside_one_that_hangs(tmp_path: Path, faulty: ModuleType) -> None:
    """An add that found no room may ask for it when the half that it saw has just been swapped, and no other add comes.
    One flush answers that; the flush thread does not go round until the other directory is done.
    """
    directories = tmp_path / "calm", tmp_path / "hung"
    with (
        local_bookie(
            tmp_path, files=faulty.FaultyFiles(), ledger_directories=directories, flush_bytes=MIB // 4
        ) as bookie,
        bookie.peer() as peer,
    ):
        stall = faulty.plan("pwritev", "STALL", suffix="hung/current/0.log")
        peer.send(*(add(HUNG, entry, bytes(10_000)) for entry in range(40)))
        assert {peer.answer().code for _ in range(40)} == {0}
        assert faulty.wait_hit(stall, PATIENCE_S)
        assert bookie.storage.stores is not None
        direct = Direct(bookie.storage.stores, bookie.storage.pool)
        direct.want_room(CALM)
        deadline = time.monotonic() + PATIENCE_S
        while direct.wants_room(CALM):
            assert time.monotonic() < deadline
        go_on()
        direct.close()


def test_a_directory_that_hangs_when_it_is_flushed_again_keeps_no_other_one_from_its_flushes(
    tmp_path: Path, faulty: ModuleType
) -> None:
    """The first flush of a checkpoint is done in a directory, which is flushed again for room because another one is
    slow; then the slow one is done, and the second flush hangs.
    """
    directories = tmp_path / "calm", tmp_path / "hung"
    log = "hung/current/0.log"
    with (
        local_bookie(
            tmp_path,
            files=faulty.FaultyFiles(),
            ledger_directories=directories,
            throttle_ms_max=20_000,
            flush_interval_ms=3_600_000,
            write_cache_bytes=2 * MIB,
            flush_bytes=MIB // 4,
        ) as bookie,
        bookie.peer() as peer,
    ):
        peer.send(add(HUNG, 0, b"x"), add(CALM, 0, b"x"))
        assert {peer.answer().code for _ in range(2)} == {0}
        slow = faulty.plan("pwritev", "STALL", suffix="calm/current/0.log")
        with pytest.raises(RequestTimeout):
            bookie.storage.checkpoint(0)
        assert faulty.wait_hit(slow, PATIENCE_S)
        bookie.until("flushed_entries", lambda flushed: flushed == 1)
        again = faulty.plan("pwritev", "STALL", suffix=log)
        hung = faulty.plan("fdatasync", "STALL", suffix=log)
        peer.send(*(add(HUNG, entry, bytes(10_000)) for entry in range(1, 50)))
        assert {peer.answer().code for _ in range(49)} == {0}
        assert faulty.wait_hit(again, PATIENCE_S)
        faulty.release()
        assert faulty.wait_hit(hung, PATIENCE_S)
        calm(peer, range(1, 1000))
        go_on()
        assert bookie.storage.checkpoint()


@pytest.mark.parametrize("limit", [{"pending_reads_max": 20}, {"read_queue_max": 20}], ids=["of a loop", "in all"])
def test_reads_of_a_hung_directory_leave_the_others_theirs(
    tmp_path: Path, faulty: ModuleType, limit: dict[str, Any]
) -> None:
    """All threads of a directory hang in its disk, and as many reads wait for it as may wait in total. Reads of another
    directory, by the same connection, have threads and an equal part of the queue of their own.
    """
    directories = tmp_path / "calm", tmp_path / "hung"
    with (
        local_bookie(
            tmp_path, files=faulty.FaultyFiles(), ledger_directories=directories, io_threads=1, **limit
        ) as bookie,
        bookie.peer() as peer,
    ):
        for ledger in (HUNG, CALM):
            peer.send(*(add(ledger, entry, bytes(10_000)) for entry in range(200)))
            assert {peer.answer().code for _ in range(200)} == {0}
        assert bookie.storage.checkpoint()
        stall = faulty.plan("pread", "STALL", suffix="hung/current/0.log", times=-1)
        peer.send(*(read(HUNG, entry) for entry in range(0, 200, 2)))
        assert faulty.wait_hit(stall, PATIENCE_S)
        bookie.until("refused_reads", lambda refused: refused > 50)
        codes: list[int] = []
        for first in range(0, 200, 40):
            # With the reads ahead that those before have caused, these are less than the part of the queue.
            peer.send(*(read(CALM, entry) for entry in range(first, first + 4)))
            wanted = len(codes) + 4
            while len(codes) < wanted:
                answer = peer.answer()
                if answer.ledger == CALM:
                    codes.append(answer.code)
                else:
                    assert answer.code == TOO_MANY
        assert set(codes) == {0}
        go_on()


def test_a_hung_journal_delays_no_adds_to_others(journals: tuple[LocalBookie, Peer, Path], faulty: ModuleType) -> None:
    """When its memory is full and nothing has found room for as long as one may wait, further adds for it are refused
    at once, so that what follows them on their connection is not delayed.
    """
    bookie, peer, hung = journals
    stall = faulty.plan("fdatasync", "STALL", suffix=journal_files(hung)[-1])
    with bookie.peer() as other:
        other.send(*(add(HUNG, entry, bytes(100_000)) for entry in range(60)))
        assert faulty.wait_hit(stall, PATIENCE_S)
        assert other.answer().code == TOO_MANY
        bookie.until("stalls_refused", lambda refused: refused > 20)
        stalls = bookie.stat("stalls")
        for entry in range(60, 110):
            other.send(add(HUNG, entry, bytes(100_000)), add(CALM, entry, b"x"))
        codes: dict[int, list[int]] = {HUNG: [], CALM: []}
        while len(codes[CALM]) < 50:
            answer = other.answer()
            codes[answer.ledger].append(answer.code)
        assert set(codes[HUNG]) == {TOO_MANY}
        assert set(codes[CALM]) == {0}
        assert bookie.stat("stalls") == stalls
        calm(peer, range(200, 300))
        go_on()


def test_fences_and_lacs_for_a_hung_journal_are_refused_at_once(
    journals: tuple[LocalBookie, Peer, Path], faulty: ModuleType
) -> None:
    """When no record fits into its memory, they do not wait either, and the add that follows them is taken."""
    bookie, peer, hung = journals
    stall = faulty.plan("fdatasync", "STALL", suffix=journal_files(hung)[-1])
    with bookie.peer() as other, bookie.peer() as third:
        entries = count()
        for size, number in ((100_000, 30), (10_000, 12), (1000, 12), (100, 12), (0, 12)):
            other.send(*(add(HUNG, next(entries), bytes(size)) for _ in range(number)))
            while other.answer().code != TOO_MANY:
                pass
        assert faulty.wait_hit(stall, PATIENCE_S)
        other.send(add(CALM, 0, b"x"))
        while other.answer().ledger != CALM:
            pass
        stalls = bookie.stat("stalls")
        other.send(*(read(ledger, -1, flags=FENCE, key=KEY) for ledger in range(3, 23, 2)), add(CALM, 1, b"x"))
        codes = []
        while (answer := other.answer()).ledger != CALM:
            codes.append(answer.code)
        assert answer.code == 0
        assert codes[-5:] == [TOO_MANY] * 5
        assert ask(third, write_lac(HUNG, 0)).status == wire.ETOOMANYREQUESTS
        assert bookie.stat("stalls") == stalls
        calm(peer, range(2, 100))
        go_on()


def test_adds_to_a_hung_journal_leave_the_others_their_part(
    journals: tuple[LocalBookie, Peer, Path], faulty: ModuleType
) -> None:
    """As many adds wait for the hung journal as may wait in total: the other one may still have its equal part."""
    bookie, peer, hung = journals
    with bookie.peer() as other:
        stall = faulty.plan("fdatasync", "STALL", suffix=journal_files(hung)[-1])
        other.send(*(add(HUNG, entry, b"x") for entry in range(500)))
        assert faulty.wait_hit(stall, PATIENCE_S)
        assert {other.answer().code for _ in range(100)} == {TOO_MANY}
        for entry in range(50):
            assert other.ask(add(CALM, entry, b"x")).code == 0
        calm(peer, range(50, 200))
        go_on()
        assert {other.answer().code for _ in range(400)} == {0}


def test_a_hung_journal_keeps_no_checkpoint_from_its_end(
    journals: tuple[LocalBookie, Peer, Path], faulty: ModuleType
) -> None:
    """Files that no mark needs are renamed and removed by a thread of their journal, holding no lock of adds."""
    bookie, peer, hung = journals
    for first in range(0, 300, 5):  # less than half of its memory, so that none waits, however slow the disk is
        peer.send(*(add(HUNG, entry, bytes(100_000)) for entry in range(first, first + 5)))
        assert {peer.answer().code for _ in range(5)} == {0}
    oldest, _second, *later = journal_files(hung)
    assert later
    stall = faulty.plan("rename", "STALL", suffix=oldest.replace(".txn", ".spare"))
    assert bookie.storage.checkpoint()
    assert faulty.wait_hit(stall, PATIENCE_S)
    calm(peer, range(1000))
    assert bookie.storage.checkpoint()
    assert peer.ask(add(HUNG, 300, b"x")).code == 0
    go_on()
