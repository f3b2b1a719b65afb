"""Test group commit: bytes, policies, new files, zeros ahead, recycling and trimming.

Modules: journal.commit, journal.state, journal.files.
"""

import errno
import random
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.base import fatal
from bookie._fast.base.file import Files
from bookie._fast.journal.commit import JournalCommitter
from bookie._fast.journal.reader import scan_journal
from bookie._fast.store.direct import JournalWriter
from tests.fixtures.draws import examples
from tests.fixtures.faults import go_on
from tests.reference import journal as model

KIB, MIB = 1 << 10, 1 << 20
FIRST = 0x10
DEFAULTS: dict[str, Any] = {
    "buffer_bytes": 256 * KIB,
    "alignment_bytes": 4096,
    "file_bytes_max": 4 * MIB,
    "prealloc_bytes": MIB,
    "backups_max": 2,
    "group_wait_ms": 0,
    "group_bytes": 64 * KIB,
    "group_entries": 0,
    "flush_when_empty": True,
    "sync_data": True,
    "reuse_files": True,
}
FOREVER_MS = 1e9


@contextmanager
def journal(
    directory: Path, files: Files | None = None, **settings: object
) -> Iterator[tuple[JournalCommitter, JournalWriter]]:
    """Open a journal without threads of its own, and a writer of it."""
    committer = JournalCommitter(str(directory), files or Files(), **{**DEFAULTS, **settings})
    committer.open(FIRST, [])
    writer = JournalWriter(committer)
    try:
        yield committer, writer
    finally:
        writer.close()
        committer.close()


@contextmanager
def running(*bodies: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
    """Run threads with these bodies, which are joined after `stop`."""
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        go_on()
        stop()
        for thread in threads:
            thread.join()


def record(entry: int, size: int, ledger: int = 1) -> bytes:
    """Return an entry of `size` bytes."""
    return (struct.pack(">qq", ledger, entry) + bytes([1 + entry % 255]) * size)[: max(16, size)]


def framed(data: bytes) -> bytes:
    """Return the record as it is in the file."""
    return struct.pack(">i", len(data)) + data


def replayed(directory: Path, ids: list[int]) -> list[bytes]:
    """Return the records of these files, after checking that our reader and the model's agree."""
    found = []
    for file_id in ids:
        path = directory / f"{file_id:x}.txn"
        data = path.read_bytes()
        rows, oracle = scan_journal(path, file_id), model.scan(data, file_id)
        ours = list(zip(rows.ledger, rows.kind, rows.position, rows.length, strict=True))
        assert [tuple(map(int, row)) for row in ours] == oracle.records
        assert {rows.torn, rows.damaged, oracle.torn, oracle.damaged} == {False}
        found += [data[at + 4 : at + 4 + size] for _, _, at, size in oracle.records]
    return found


@settings(deadline=None, max_examples=examples(40))
@given(
    groups=st.lists(st.lists(st.integers(16, 9000), min_size=1, max_size=6), max_size=6),
    alignment=st.sampled_from([512, 4096]),
)
def test_like_the_model(tmp_path_factory: pytest.TempPathFactory, groups: list[list[int]], alignment: int) -> None:
    """B3: header, groups, padding and closing fields are the model's, followed by zeros, and the mark is right."""
    directory = tmp_path_factory.mktemp("journal")
    expected = model.header() + model.group(b"", model.HEADER, FIRST, 4096)
    with journal(directory, alignment_bytes=alignment) as (committer, writer):
        for number, sizes in enumerate(groups, 1):
            records = [record(at, size) for at, size in enumerate(sizes)]
            assert [writer.append(data) for data in records] == [number] * len(records)
            assert writer.published() == number - 1
            assert writer.commit()
            assert writer.published() == number
            expected += model.group(b"".join(map(framed, records)), len(expected), FIRST, alignment)
            assert committer.mark() == (FIRST, len(expected))
        assert committer.stats()["groups"] == len(groups)
    data = (directory / f"{FIRST:x}.txn").read_bytes()
    assert data[: len(expected)] == expected
    assert not any(data[len(expected) :])


def test_meta_records(tmp_path: Path) -> None:
    """Key, fence and LAC records are those of Apache BookKeeper."""
    with journal(tmp_path) as (_, writer):
        writer.append_meta(7, model.MASTER_KEY, b"k" * 20)
        writer.append_meta(7, model.FENCE)
        writer.append_meta(7, model.LAC, b"p" * 16)
        writer.commit()
    assert replayed(tmp_path, [FIRST]) == [
        struct.pack(">qqi", 7, model.MASTER_KEY, 20) + b"k" * 20,
        struct.pack(">qq", 7, model.FENCE),
        struct.pack(">qqi", 7, model.LAC, 16) + b"p" * 16,
    ]


@pytest.mark.parametrize("alignment", [512, 4096])
@pytest.mark.parametrize("recycle", [False, True])
def test_a_record_that_fills_its_group(tmp_path: Path, alignment: int, *, recycle: bool) -> None:
    """A record may use the last byte of a group. The next one waits for a commit."""
    with journal(tmp_path, alignment_bytes=alignment, reuse_files=recycle, backups_max=0) as (committer, writer):
        sizes = [writer.capacity() - 4, writer.capacity() - 4 - 31, writer.capacity() - 4 - alignment + 8]
        for number, size in enumerate(sizes * 20, 1):
            assert writer.append(record(0, writer.capacity() - 3)) == 0
            assert writer.append(record(number, size)) == number
            if size == sizes[0]:
                assert not writer.has_room(0)
                assert writer.append(record(0, 16)) == 0
            assert writer.commit()
            writer.trim(committer.mark()[0])
        kept = replayed(tmp_path, committer.file_ids())
        assert kept == [record(number, size) for number, size in enumerate(sizes * 20, 1)][-len(kept) :]


def test_a_lone_add_does_not_wait(tmp_path: Path) -> None:
    """With one add, the group is committed as soon as the journal is free."""
    with (
        journal(tmp_path, group_wait_ms=FOREVER_MS) as (committer, writer),
        running(committer.run, stop=committer.stop),
    ):
        for entry in range(5):
            assert writer.wait(writer.append(record(entry, 50)), 60)
        stats = committer.stats()
        assert (stats["groups"], stats["flush_wait"], stats["flush_bytes"]) == (5, 0, 0)


@pytest.mark.parametrize("limits", [{"group_bytes": 1000}, {"group_entries": 3, "group_bytes": MIB}])
def test_a_group_goes_when_it_is_full(tmp_path: Path, limits: dict[str, int]) -> None:
    """A group is committed when its bytes or entries exceed the limit, long before its wait is over."""
    policy: dict[str, Any] = {"group_wait_ms": FOREVER_MS, "flush_when_empty": False, **limits}
    with journal(tmp_path, **policy) as (committer, writer), running(committer.run, stop=committer.stop):
        for entry in range(3):
            assert writer.append(record(entry, 300)) == 1
        assert committer.stats()["groups"] == 0
        assert writer.append(record(3, 300)) == 1
        assert writer.wait(1, 60)
        stats = committer.stats()
        assert (stats["groups"], stats["entries"], stats["flush_bytes"], stats["flush_wait"]) == (1, 4, 1, 0)


def test_a_group_goes_when_its_wait_is_over(tmp_path: Path) -> None:
    """A group is committed when journalMaxGroupWaitMSec is over."""
    with (
        journal(tmp_path, group_wait_ms=1, flush_when_empty=False) as (committer, writer),
        running(committer.run, stop=committer.stop),
    ):
        assert writer.wait(writer.append(record(0, 50)), 60)
        assert committer.stats()["flush_wait"] == 1


def test_what_was_appended_is_committed_at_the_end(tmp_path: Path) -> None:
    """`stop` commits what was appended, and does not wait for the group to fill."""
    with journal(tmp_path, group_wait_ms=FOREVER_MS, flush_when_empty=False) as (committer, writer):
        with running(committer.run, stop=committer.stop):
            writer.append(record(0, 50))
        assert writer.published() == 1
    assert replayed(tmp_path, [FIRST]) == [record(0, 50)]


def test_many_appenders(tmp_path: Path) -> None:
    """Each record is durable once, in its writer's order and in the group that append() returned."""
    with journal(tmp_path, buffer_bytes=64 * KIB, file_bytes_max=MIB, backups_max=50) as (committer, first):
        writers = [first, *(JournalWriter(committer) for _ in range(3))]

        def append(ledger: int) -> None:
            writer, at = writers[ledger], 0
            while at < 500:
                group = writer.append(record(at, 200 + at, ledger))
                at += group != 0
                if group == 0 or at % 50 == 0:
                    assert writer.wait(group or writer.published() + 1, 60)

        with running(committer.run, committer.run_prepare, stop=committer.stop):
            threads = [threading.Thread(target=append, args=(ledger,)) for ledger in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for writer in writers[1:]:
            writer.close()
        ids = committer.file_ids()
        assert committer.stats()["entries"] == 2000
    found = replayed(tmp_path, ids)
    for ledger in range(4):
        mine = [data for data in found if data[7] == ledger]
        assert mine == [record(at, 200 + at, ledger) for at in range(500)]


def test_groups_and_zeros_never_meet(tmp_path: Path) -> None:
    """Groups may overtake the zeros that are written ahead of them, and all groups are there in the end."""
    numbers = random.Random(5)
    sizes = [numbers.randrange(16, 90 * KIB) for _ in range(400)]
    with (
        journal(tmp_path, file_bytes_max=16 * MIB, buffer_bytes=MIB) as (committer, writer),
        running(committer.run_prepare, stop=committer.stop),
    ):
        for entry, size in enumerate(sizes):
            assert writer.append(record(entry, size))
            if numbers.random() < 0.4 or not writer.has_room(90 * KIB):
                assert writer.commit()
        assert writer.commit()
        ids = committer.file_ids()
    assert len(ids) > 1
    assert replayed(tmp_path, ids) == [record(entry, size) for entry, size in enumerate(sizes)]


def test_old_bytes_of_a_recycled_file(tmp_path: Path) -> None:
    """B5: valid groups of the file's previous use, after the end, are not replayed."""
    written: dict[int, list[bytes]] = {}
    stale = 0
    with journal(tmp_path, file_bytes_max=MIB, backups_max=0) as (committer, writer):
        for entry in range(80):
            data = record(entry, 40 * KIB if len(committer.file_ids()) < 3 and entry < 60 else 3000)
            writer.append(data)
            assert writer.commit()
            written.setdefault(committer.mark()[0], []).append(data)
            writer.trim(committer.mark()[0])
            assert committer.file_ids() == [committer.mark()[0]]
            [file_id] = committer.file_ids()
            assert replayed(tmp_path, [file_id]) == written[file_id]
            content = (tmp_path / f"{file_id:x}.txn").read_bytes()[committer.mark()[1] :]
            assert not any(content[:4]), "a reader that knows no checksums stops here"
            stale += any(content)
    assert stale > 10


def test_what_trimming_keeps(tmp_path: Path) -> None:
    """Trimming keeps journalMaxBackups files below the mark, and everything from the mark on."""
    with journal(tmp_path, file_bytes_max=64 * KIB, reuse_files=False) as (committer, writer):
        for entry in range(8):
            writer.append(record(entry, 60 * KIB))
            assert writer.commit()
        ids = committer.file_ids()
        assert len(ids) >= 8
        writer.trim(ids[0])
        assert committer.file_ids() == ids
        writer.trim(ids[5])
        assert committer.file_ids() == ids[3:]
        assert sorted(int(path.stem, 16) for path in tmp_path.glob("*.txn")) == ids[3:]
        writer.trim(ids[5])
        assert committer.file_ids() == ids[3:]


def test_no_file_is_forgotten(tmp_path: Path) -> None:
    """However many files there are, all count for the backlog and are removed when the mark has passed them."""
    committer = JournalCommitter(str(tmp_path), Files(), **{**DEFAULTS, "file_bytes_max": 64 * KIB, "backups_max": 0})
    existing = list(range(1, 10_001))
    committer.open(10_001, existing)
    writer = JournalWriter(committer)
    for entry in range(3):
        writer.append(record(entry, 60 * KIB))
        assert writer.commit()
    ids = committer.file_ids()
    assert ids == list(range(1, ids[-1] + 1))
    assert len(ids) > 10_001
    writer.trim(2)
    assert committer.stats()["backlog_bytes"] > 10_000 * 64 * KIB - 128 * KIB
    assert committer.file_ids() == ids[1:]
    writer.trim(ids[-1])
    assert committer.file_ids() == ids[-1:]
    writer.close()
    committer.close()


def test_as_many_used_files_are_kept_as_a_trim_retires(tmp_path: Path) -> None:
    """So writing finds used files until the next trim. Later trims that retire none remove them one at a time."""
    with journal(tmp_path, file_bytes_max=64 * KIB, backups_max=0) as (committer, writer):

        def spares_after(entries: int) -> int:
            for entry in range(entries):
                writer.append(record(entry, 60 * KIB))
                assert writer.commit()
            writer.trim(committer.mark()[0])
            assert len(list(tmp_path.glob("*.txn"))) == 1
            return len(list(tmp_path.glob("*.spare")))

        assert spares_after(6) == 6
        assert spares_after(5) == 5
        assert spares_after(20) == 8
        assert [spares_after(0) for _ in range(8)] == [7, 6, 5, 4, 3, 2, 2, 2]


def test_used_files_take_no_more_room_than_the_journal_has_taken(tmp_path: Path) -> None:
    """No new file is made while there is a used one, however often the journal grows and is trimmed."""
    with journal(tmp_path, file_bytes_max=64 * KIB, backups_max=1) as (committer, writer):
        first, most = committer.mark()[0], 0
        for files in (3, 12, 5, 12, 1, 7, 12):
            for entry in range(files):
                writer.append(record(entry, 60 * KIB))
                assert writer.commit()
            most = max(most, len(committer.file_ids()))
            writer.trim(committer.mark()[0])
            kept = [path.suffix for path in tmp_path.iterdir()]
            assert kept.count(".txn") == len(committer.file_ids())
            assert len(kept) <= most
        assert committer.mark()[0] - first > 2 * most, "most of the files were used before"


def test_where_direct_writes_are_refused() -> None:
    """On a memory file system, which may refuse direct writes, the journal uses the page cache."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        with journal(Path(name)) as (_, writer):
            for entry in range(3):
                assert writer.append(record(entry, 5000))
                assert writer.commit()
        assert replayed(Path(name), [FIRST]) == [record(entry, 5000) for entry in range(3)]


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """A missing directory is an error that names it."""
    committer = JournalCommitter(str(tmp_path / "absent"), Files(), **DEFAULTS)
    with pytest.raises(FileNotFoundError, match="absent"):
        committer.open(FIRST, [])
    committer.close()


@pytest.mark.parametrize(("op", "suffix"), [("rename", ".txn"), ("open", ".preparing"), ("fdatasync", ".preparing")])
def test_a_first_file_that_cannot_be_made(tmp_path: Path, op: str, suffix: str) -> None:
    """The start fails with the disk's error, which is not fatal, since nothing was acknowledged."""
    faulty = pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
    faulty.clear()
    committer = JournalCommitter(str(tmp_path), faulty.FaultyFiles(), **DEFAULTS)
    try:
        rule = faulty.plan(op, "EIO", suffix=suffix)
        with pytest.raises(OSError, match=str(tmp_path)) as failed:
            committer.open(FIRST, [])
        assert failed.value.errno == errno.EIO
        assert faulty.hits(rule) == 1
        assert fatal.wait(0) is None
    finally:
        faulty.clear()
        committer.close()


def test_syncs(tmp_path: Path) -> None:
    """Each group is synced. With journalSyncData=false, only `sync` and a new file cause a sync."""
    faulty = pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
    for sync_data, expected in ((True, 4), (False, 0)):
        directory = tmp_path / str(sync_data)
        directory.mkdir()
        with journal(directory, files=faulty.FaultyFiles(), sync_data=sync_data) as (committer, writer):
            faulty.clear()
            for entry in range(4):
                writer.append(record(entry, 100))
                assert writer.commit()
                assert writer.published() == entry + 1
            assert [call.op for call in faulty.trace()].count("fdatasync") == expected
            assert committer.sync()
            assert [call.op for call in faulty.trace()].count("fdatasync") == expected + (not sync_data)
        faulty.clear()


def test_a_loop_leaves_a_new_file_to_the_journal_thread(tmp_path: Path) -> None:
    """A loop does not begin a new file, because that may wait for the disk while other connections need the loop."""
    with journal(tmp_path, file_bytes_max=MIB) as (committer, writer):
        while committer.mark()[1] + 32 * KIB < MIB:
            assert writer.append(record(1, 16 * KIB))
            assert writer.commit_as_loop()
        before = writer.published()
        group = writer.append(record(2, 100 * KIB))
        assert writer.commit_as_loop()
        assert (writer.published(), committer.file_ids()) == (before, [FIRST])
        with running(committer.run, stop=committer.stop):
            assert writer.wait(group, 60.0)
        assert committer.file_ids() == [FIRST, FIRST + 1]
    assert replayed(tmp_path, [FIRST + 1]) == [record(2, 100 * KIB)]


def test_a_loop_never_waits_for_another_committer(tmp_path: Path, faulty: ModuleType) -> None:
    """While a committer waits for the disk, a loop does not wait for it: its record goes with the next group."""
    with journal(tmp_path, faulty.FaultyFiles()) as (committer, writer):
        rule = faulty.plan("pwritev", "STALL", suffix=".txn")
        with running(committer.run, stop=committer.stop):
            assert writer.append(record(1, 100)) == 1
            while not faulty.hits(rule):
                assert writer.published() == 0
            assert writer.append(record(2, 100)) == 2
            assert writer.commit_as_loop()
            assert writer.published() == 0
            go_on()
            assert writer.wait(2, 60.0)
    assert replayed(tmp_path, [FIRST]) == [record(1, 100), record(2, 100)]
