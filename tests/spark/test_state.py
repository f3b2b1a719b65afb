"""The state of a job: what was done is found again, what a crash cut short is not, and nothing is mixed up."""

from pathlib import Path

import pytest

from bookie.errors import IllegalOperation
from bookie.spark.state import State


def test_what_is_done_is_found_again(tmp_path: Path) -> None:
    """With its facts, in any later call with the same options; nothing of a line that was cut short."""
    directory = tmp_path / "state"
    with State(directory, "export", {"to": Path("/data")}) as state:
        state.note("7", entries=3)
        state.note("8", entries=4)
    log = directory / "done.jsonl"
    log.write_bytes(log.read_bytes()[:-5])
    with State(directory, "export", {"to": Path("/data")}) as state:
        assert state.done == {"7": {"entries": 3}}
        assert state.found == 1
        state.note("9")
    with State(directory, "export", {"to": Path("/data")}) as state:
        assert list(state.done) == ["7", "9"]


def test_another_call_is_refused(tmp_path: Path) -> None:
    """Other options, another job, or the same one twice at a time: an error that says so."""
    with State(tmp_path, "export", {"to": "a"}) as state:
        state.note("7")
        with pytest.raises(IllegalOperation, match="in use"), State(tmp_path, "export", {"to": "a"}):
            pass
    with pytest.raises(IllegalOperation, match="export with to 'a', not 'b'"), State(tmp_path, "export", {"to": "b"}):
        pass
    with pytest.raises(IllegalOperation, match="state of export, not of import"), State(tmp_path, "import", {}):
        pass


def test_without_a_directory_nothing_is_kept(tmp_path: Path) -> None:
    """It lasts as long as the call."""
    with State(None, "export", {}) as state:
        state.note("7", entries=3)
        assert state.done == {"7": {"entries": 3}}
    assert not list(tmp_path.iterdir())
