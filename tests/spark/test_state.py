"""The state of a job: finished units are found again, incomplete lines are not, and nothing is mixed up."""

from pathlib import Path

import pytest

from bookie.errors import IllegalOperation
from bookie.spark.state import State


def test_what_is_done_is_found_again(tmp_path: Path) -> None:
    """Finished units and their results are found by later calls with the same options; incomplete lines are ignored."""
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
    """Other options, another job, and a concurrent call are refused with a clear error."""
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
