"""Test which log takes an entry, when a log is closed, and what a failed flush leaves (entrylog.set, base.by_age)."""

import errno
import random
import struct
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bookie._fast.entrylog.set import EntryLogSet, bytes_max
from tests.fixtures.draws import examples
from tests.reference import entry_log, log_set


def files(directory: Path) -> dict[int, bytes]:
    """Return the logs of a directory by id."""
    return {int(path.stem, 16): path.read_bytes() for path in directory.glob("*.log")}


def own_descriptors(directory: Path) -> int:
    """Return the number of descriptors of this process for files of the directory."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found += descriptor.readlink().parent == directory
        except FileNotFoundError:
            continue
    return found


class LikeTheModel(RuleBasedStateMachine):
    """After appends, marks, expiries and commits in any order, each sync leaves the files that the model has."""

    @initialize(active_max=st.integers(0, 3), seed=st.integers(0, 1 << 30))
    def begin(self, active_max: int, seed: int) -> None:
        """Begin with an empty directory."""
        import tempfile

        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name)
        self.logs = EntryLogSet(self.path, active_max=active_max)
        self.model = log_set.LogSet(active_max)
        self.seeded_random = random.Random(seed)
        self.count = 0

    @rule(ledger=st.one_of(st.integers(0, 4), st.integers(0, 40)), size=st.sampled_from([0, 100, 5000, 70_000]))
    def append(self, ledger: int, size: int) -> None:
        """Append an entry."""
        entry = entry_log.entry(ledger, self.count, self.seeded_random.randbytes(size))
        self.count += 1
        log_id, offset = self.logs.append(ledger, entry)
        assert log_id == self.model.append(ledger, entry)
        assert offset == len(entry_log.build(self.model.logs[log_id].entries[:-1], closed=False))

    @rule(ledger=st.integers(0, 4))
    def mark(self, ledger: int) -> None:
        """Mark a ledger whose end was announced."""
        self.logs.mark(ledger)
        self.model.mark(ledger)

    @rule(ledger=st.one_of(st.none(), st.integers(0, 4)))
    def end_marked(self, ledger: int | None) -> None:
        """Close the logs of marked ledgers."""
        self.logs.end_marked(ledger)
        self.model.end_marked(ledger)

    @rule()
    def expire(self) -> None:
        """Let all logs expire."""
        self.logs.expire(1000)
        for ledger in [one for one in self.model.taking if self.model.active_max]:
            self.model.close(ledger, "expired")

    @rule()
    def expire_nothing(self) -> None:
        """Let a time pass in which no log expires."""
        self.logs.expire(1)

    @rule()
    def commit(self) -> None:
        """Sync, compare the files with the model, and settle."""
        self.logs.sync()
        self.model.sync()
        self.compare()
        self.logs.settle()
        self.model.settle()
        assert own_descriptors(self.path) == len(self.model.taking)

    @rule(synced=st.booleans())
    def give_up(self, synced: bool) -> None:
        """Give up a flush that failed before or after its sync."""
        if synced:
            self.logs.sync()
            self.model.sync()
        self.logs.give_up()
        self.model.give_up()

    def compare(self) -> None:
        """Check that each file is the model's, followed only by zeros."""
        found = files(self.path)
        for log_id, log in self.model.logs.items():
            image = log.image()
            assert found[log_id][: len(image)] == image
            assert not any(found[log_id][len(image) :])
        assert set(found) == set(self.model.logs)

    @invariant()
    def counted(self) -> None:
        """The counters and the set of open logs are those of the model."""
        if not hasattr(self, "logs"):
            return
        stats = self.logs.stats()
        if self.model.active_max:
            assert stats["active"] == len(self.model.taking)
        assert {reason: stats[reason] for reason in self.model.closed} == self.model.closed
        several, noted = self.logs.counts()
        assert several == self.model.several
        assert (noted.times, noted.total) == (len(self.model.noted), sum(self.model.noted))
        for log_id, log in self.model.logs.items():
            assert self.logs.is_open(log_id) == log.open

    def teardown(self) -> None:
        """Remove the directory."""
        if hasattr(self, "logs"):
            del self.logs
            self.directory.cleanup()


LikeTheModel.TestCase.settings = settings(deadline=None, max_examples=examples(30), stateful_step_count=30)
TestLikeTheModel = LikeTheModel.TestCase


def entry_of(ledger: int, at: int = 0, size: int = 50) -> bytes:
    """Return an entry whose payload shows its ledger."""
    return entry_log.entry(ledger, at, struct.pack(">q", ledger) * (size // 8))


def test_one_publication_a_sync(tmp_path: Path) -> None:
    """`lastId` covers all logs of a flush when the flush is synced, and is written once."""
    logs = EntryLogSet(tmp_path, active_max=100)
    for ledger in range(50):
        logs.append(ledger, entry_of(ledger))
    assert not (tmp_path / "lastId").exists()
    logs.sync()
    assert (tmp_path / "lastId").read_text() == "31\n"


def test_descriptors_and_memory_are_bounded(tmp_path: Path) -> None:
    """A flush of 300 ledgers keeps 20 logs open, and those of the batch that is being closed."""
    logs = EntryLogSet(tmp_path, active_max=20)
    most = 0
    for ledger in range(300):
        logs.append(ledger, entry_of(ledger))
        most = max(most, own_descriptors(tmp_path) if ledger % 7 == 0 else 0)
    logs.sync()
    assert 20 < most <= 20 + 64
    assert own_descriptors(tmp_path) == 20
    logs.settle()
    found = files(tmp_path)
    assert len(found) == 300
    assert sum(entry_log.read_map(data) is not None for data in found.values()) == 280
    assert bytes_max(500) < 6 << 20
    assert bytes_max(0) < 3 << 20


@pytest.mark.parametrize("op", ["open", "pwritev", "fdatasync", "rename"])
def test_a_full_disk_at_any_call(tmp_path: Path, faulty: ModuleType, op: str) -> None:
    """B6: whichever call of a flush finds no space, giving up leaves what was committed, and the next try succeeds."""
    for nth in range(1, 60):
        directory = tmp_path / f"{nth}"
        directory.mkdir()
        logs = EntryLogSet(directory, active_max=3, files=faulty.FaultyFiles())
        first = [entry_of(ledger) for ledger in range(4)]
        again = [entry_of(ledger, 1, 9000) for ledger in range(1, 7)]
        for entry in first:
            logs.append(int.from_bytes(entry[:8]), entry)
        logs.sync()
        logs.settle()
        before = {log_id: entry_log.scan(data).records for log_id, data in files(directory).items()}
        failing = faulty.plan(op, "ENOSPC", nth=nth)
        failed = flush(logs, again)
        if failed:
            with pytest.raises(OSError, match="No space"):
                logs.append(1, again[0])
            logs.give_up()
            left = {log_id: entry_log.scan(data).records for log_id, data in files(directory).items()}
            assert {log_id: left[log_id][: len(records)] for log_id, records in before.items()} == before
            assert set(left) == set(before)
            assert not flush(logs, again)
        struck = faulty.hits(failing)
        faulty.clear()
        logs.settle()
        assert set(held(directory)) == set(first + again)
        if not struck:
            assert nth > 1
            return
    raise AssertionError("the calls of a flush do not end")


def flush(logs: EntryLogSet, entries: list[bytes]) -> bool:
    """Append entries, announce a ledger's end and sync; return whether the disk was full."""
    try:
        for entry in entries:
            logs.append(int.from_bytes(entry[:8]), entry)
        logs.mark(2)
        logs.end_marked()
        logs.sync()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return True
    return False


def held(directory: Path) -> list[bytes]:
    """Return every entry of every log, and check that none is torn."""
    found = []
    for data in files(directory).values():
        scan = entry_log.scan(data)
        assert not scan.torn
        found += [data[at + 4 : at + 4 + size] for _, _, at, size in scan.records]
    return found


@pytest.mark.parametrize("op", ["pwritev", "fdatasync", "open"])
def test_a_failing_disk_is_for_ever(tmp_path: Path, faulty: ModuleType, op: str) -> None:
    """B2: after EIO in any log of the set, every call fails with it, even after giving up, and no file is removed."""
    logs = EntryLogSet(tmp_path, active_max=8, files=faulty.FaultyFiles())
    for ledger in range(4):
        logs.append(ledger, entry_of(ledger))
    logs.sync()
    logs.settle()
    faulty.plan(op, "EIO", suffix=".log")
    with pytest.raises(OSError, match=r"[Ii]nput/output"):
        flush(logs, [entry_of(ledger, 1) for ledger in range(10)])
    logs.give_up()
    for again in (logs.sync, lambda: logs.append(9, entry_of(9))):
        with pytest.raises(OSError, match=r"[Ii]nput/output"):
            again()
    assert len(files(tmp_path)) >= 4
