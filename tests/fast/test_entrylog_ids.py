"""Test entry log ids: existing names are skipped, and a log is open until writer and index are done with it."""

import threading
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bookie._fast.entrylog.ids import COMPACTION, FLUSH, EntryLogIds
from tests.fixtures.draws import examples


def test_names_that_exist_are_skipped(tmp_path: Path) -> None:
    """An id whose file exists is skipped, whatever `lastId` says."""
    (tmp_path / "3.log").write_bytes(b"")
    (tmp_path / "5.log").write_bytes(b"")
    ids = EntryLogIds(tmp_path, 3)
    assert [ids.create(), ids.create(), ids.create()] == [4, 6, 7]
    assert ids.next_id == 8


def test_ids_come_round_past_those_still_open(tmp_path: Path) -> None:
    """After 7fffffff comes 0. An id is not used again while its log is open, even if the file is gone."""
    ids = EntryLogIds(tmp_path, 0x7FFFFFFF)
    assert [ids.create(), ids.create()] == [0x7FFFFFFF, 0]
    (tmp_path / "7fffffff.log").unlink()
    (tmp_path / "0.log").unlink()
    assert EntryLogIds(tmp_path, 0x7FFFFFFF).create() == 0x7FFFFFFF
    (tmp_path / "7fffffff.log").unlink()
    again = EntryLogIds(tmp_path, 0)
    assert again.create() == 0
    (tmp_path / "0.log").unlink()
    assert again.create() == 1


def test_last_id_never_goes_back(tmp_path: Path) -> None:
    """When two writers publish in any order, the file has the highest id, until ids start again at 0."""
    ids = EntryLogIds(tmp_path, 9)
    ids.publish(0xB)
    assert (tmp_path / "lastId").read_text() == "b\n"
    ids.publish(0xA)
    assert (tmp_path / "lastId").read_text() == "b\n"
    ids.publish(0x7FFFFFFF)
    ids.publish(0)
    assert (tmp_path / "lastId").read_text() == "0\n"


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    """A log whose creation failed is not open."""
    ids = EntryLogIds(tmp_path / "gone", 7)
    with pytest.raises(OSError, match="cannot create"):
        ids.create()
    with pytest.raises(OSError, match="lastId"):
        ids.publish(7)
    assert ids.open_count() == 0
    assert ids.next_id == 7


def test_many_threads_never_share_an_id(tmp_path: Path) -> None:
    """Threads that create logs at once, such as flush and compaction, never get the same id."""
    ids = EntryLogIds(tmp_path)
    made: list[int] = []

    def work() -> None:
        for _ in range(50):
            log_id = ids.create()
            ids.publish(log_id)
            made.append(log_id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == list(range(200))
    assert ids.open_count() == 200
    assert ids.least_open() == 0
    assert (tmp_path / "lastId").read_text() == "c7\n"


class OpenSet(RuleBasedStateMachine):
    """The set of open logs agrees with two Python sets for each user."""

    directory: Path

    def __init__(self) -> None:
        super().__init__()
        self.ids = EntryLogIds(self.directory)
        self.written: dict[int, int] = {}
        self.closed: dict[int, int] = {}

    @rule(user=st.sampled_from([FLUSH, COMPACTION]))
    def create(self, user: int) -> None:
        """Create a log as a writer."""
        log_id = self.ids.create(user)
        (self.directory / f"{log_id:x}.log").unlink()
        assert log_id not in self.written | self.closed
        self.written[log_id] = user

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        """Close a log as its writer."""
        log_id = data.draw(st.sampled_from(sorted(self.written)))
        self.ids.close(log_id)
        self.closed[log_id] = self.written.pop(log_id)

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """Remove a log as its writer."""
        log_id = data.draw(st.sampled_from(sorted(self.written)))
        self.ids.drop(log_id)
        del self.written[log_id]

    @rule(user=st.sampled_from([FLUSH, COMPACTION]))
    def settle(self, user: int) -> None:
        """Settle the closed logs of a user, as its commit does."""
        self.ids.settle(user)
        self.closed = {log_id: whose for log_id, whose in self.closed.items() if whose != user}

    @invariant()
    def agree(self) -> None:
        """The open logs are those that are written, and those that are closed but not settled."""
        wanted = self.written | self.closed
        assert self.ids.open_count() == len(wanted)
        assert self.ids.least_open() == min(wanted, default=None)
        assert all(self.ids.is_open(log_id) == (log_id in wanted) for log_id in range(self.ids.next_id + 1))


def test_open_set_against_a_model(tmp_path: Path) -> None:
    """Creating, closing, dropping and settling in any order keeps the set of open logs right."""
    OpenSet.directory = tmp_path
    OpenSet.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
    OpenSet.TestCase().runTest()
