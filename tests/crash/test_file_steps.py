"""The process is killed before each call by which a file of the storage is made, gets its name, or goes, under load:
what was acknowledged is there afterwards (B1, B3, B4, B5).

What is killed behind the last call of a row is killed before the first one of what follows: a group, a checkpoint.
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
    """A new file is made ahead under a name that no replay sees, and old ones go behind the mark."""
    assert not die_before(tmp_path, ROLLS[step], {"journalReuseFiles": "false"})


@pytest.mark.parametrize("step", REUSED)
def test_b3_b4_an_end_before_this_step_of_a_reuse_loses_nothing(step: str, tmp_path: Path) -> None:
    """The same where the next file is an old one, which still holds groups."""
    assert not die_before(tmp_path, REUSED[step], {"journalReuseFiles": "true"})


@pytest.mark.parametrize("step", MARKS)
def test_b4_an_end_before_this_step_of_a_mark_loses_nothing(step: str, tmp_path: Path) -> None:
    """A mark, or a last id, is the old one or the new one, and never says more than the disk holds."""
    assert not die_before(tmp_path, MARKS[step], {})
