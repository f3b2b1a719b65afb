"""The process is killed under load before each call that creates, renames or deletes a file of the storage:
acknowledged entries are there afterwards (B1, B3, B4, B5).

A kill after the last call of a row is a kill before the first call of what follows: a group or a checkpoint.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.crash.scenarios import die_before

pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
pytestmark = pytest.mark.crash

ROLLS: dict[str, dict[str, Any]] = {
    "making the next journal file": {"op": "open", "suffix": ".preparing"},
    "its header": {"op": "pwritev", "suffix": ".preparing"},
    "half of its header": {"op": "pwritev", "suffix": ".preparing", "transferred": 512},
    "its zeros": {"op": "pwritev", "suffix": ".preparing", "nth": 2},
    "its sync": {"op": "fdatasync", "suffix": ".preparing"},
    "its name": {"op": "rename", "suffix": ".txn"},
    "the directory's sync": {"op": "fdatasync", "suffix": "/journal/current"},
    "closing the file before it": {"op": "close", "suffix": ".txn"},
    "the removal of an old journal file": {"op": "unlink", "suffix": ".txn"},
}
REUSED: dict[str, dict[str, Any]] = {
    "keeping an old journal file": {"op": "rename", "suffix": ".spare"},
    "taking it for the next one": {"op": "rename", "suffix": ".preparing"},
    "opening it": {"op": "open", "suffix": ".preparing"},
    "its new header": {"op": "pwritev", "suffix": ".preparing"},
    "its sync": {"op": "fdatasync", "suffix": ".preparing"},
    "its name": {"op": "rename", "suffix": ".txn"},
}
MARKS: dict[str, dict[str, Any]] = {
    "a new mark": {"op": "open", "suffix": "lastMark.tmp"},
    "its bytes": {"op": "pwritev", "suffix": "lastMark.tmp"},
    "half of its bytes": {"op": "pwritev", "suffix": "lastMark.tmp", "transferred": 7},
    "its sync": {"op": "fdatasync", "suffix": "lastMark.tmp"},
    "its name": {"op": "rename", "suffix": "lastMark"},
    "a new last id": {"op": "open", "suffix": "lastId.tmp"},
    "the bytes of the last id": {"op": "pwritev", "suffix": "lastId.tmp"},
    "the sync of the last id": {"op": "fdatasync", "suffix": "lastId.tmp"},
    "the name of the last id": {"op": "rename", "suffix": "lastId"},
    "the sync of the directory": {"op": "fdatasync", "suffix": "/ledgers/current"},
}


@pytest.mark.parametrize("step", ROLLS)
def test_b3_b4_an_end_before_this_step_of_a_journal_loses_nothing(step: str, tmp_path: Path) -> None:
    """A new file is prepared under a name that no replay reads, and old files are deleted after the mark has moved."""
    assert not die_before(tmp_path, ROLLS[step], {"journalReuseFiles": "false"})


@pytest.mark.parametrize("step", REUSED)
def test_b3_b4_an_end_before_this_step_of_a_reuse_loses_nothing(step: str, tmp_path: Path) -> None:
    """The same where the next file is a recycled one, which still holds groups."""
    assert not die_before(tmp_path, REUSED[step], {"journalReuseFiles": "true"})


@pytest.mark.parametrize("step", MARKS)
def test_b4_an_end_before_this_step_of_a_mark_loses_nothing(step: str, tmp_path: Path) -> None:
    """A mark, or a last id, is the old one or the new one, and never exceeds what the disk holds."""
    assert not die_before(tmp_path, MARKS[step], {})
