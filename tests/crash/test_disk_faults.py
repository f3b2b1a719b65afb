"""Writes, syncs and commits that fail under load, injected in module base.file and below LMDB (B1, B2, B7, B15).

A failure ends the process with an error within 5 s, no later request is acknowledged, and the next start has
everything. A full disk makes the bookie read-only until there is room. What fails, and where:

                EIO, EROFS: the process ends                ENOSPC, EDQUOT: read-only until there is room
    journal     write, torn write, sync (also ENOSPC),      write, torn write, next file: open, zeros
                next file: open, rename
    entry log   write, torn write, sync, blocks             write, torn write, sync, open, blocks
    last id     open, rename                                write
    directory   sync
    mark        write, sync, rename                         write, open
    index       sync (volatile_disk.c); read: EIO           test_small_disks.py; a full map: tests/fast
    read        entry log: EIO is answered, never a denial

test_short_writes.py covers short writes that continue, test_small_disks.py small file systems, and tests/fast the
target of compaction.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.crash.scenarios import (
    fail_a_read,
    fail_an_index_sync,
    fail_the_disk,
    fill_the_disk,
    fill_the_disk_before_a_lone_writer,
)

pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")

FATAL: dict[str, dict[str, Any]] = {
    "write of the journal": {"op": "pwritev", "action": "EIO", "suffix": ".txn"},
    "write of the journal after half of it": {"op": "pwritev", "action": "EIO", "suffix": ".txn", "transferred": 2048},
    "sync of the journal": {"op": "fdatasync", "action": "EIO", "suffix": ".txn", "nth": 3},
    "making the next journal file": {"op": "open", "action": "EIO", "suffix": ".preparing"},
    "naming the next journal file": {"op": "rename", "action": "EIO", "suffix": ".txn"},
    "write of the entry log": {"op": "pwritev", "action": "EIO", "suffix": ".log", "nth": 2},
    "sync of the entry log": {"op": "fdatasync", "action": "EIO", "suffix": ".log"},
    "write of the mark": {"op": "pwritev", "action": "EIO", "suffix": "lastMark.tmp"},
    "sync of the mark": {"op": "fdatasync", "action": "EIO", "suffix": "lastMark.tmp", "nth": 2},
    "naming the mark": {"op": "rename", "action": "EIO", "suffix": "lastMark"},
}
MORE_FATAL: dict[str, dict[str, Any]] = {
    "write of the journal, read-only now": {"op": "pwritev", "action": "EROFS", "suffix": ".txn"},
    "sync of the journal, full": {"op": "fdatasync", "action": "ENOSPC", "suffix": ".txn"},
    "room for the entry log": {"op": "fallocate", "action": "EIO", "suffix": ".log"},
    "write of the entry log after half of it": {"op": "pwritev", "action": "EIO", "suffix": ".log", "transferred": 512},
    "a new last id, read-only now": {"op": "open", "action": "EROFS", "suffix": "lastId.tmp"},
    "naming the last id": {"op": "rename", "action": "EIO", "suffix": "lastId"},
    "sync of the directory": {"op": "fdatasync", "action": "EIO", "suffix": "/ledgers/current", "nth": 3},
}
FULL: dict[str, dict[str, Any]] = {
    "write of the entry log": {"op": "pwritev", "action": "ENOSPC", "suffix": ".log", "times": -1},
    "a new entry log": {"op": "open", "action": "ENOSPC", "suffix": ".log", "times": -1},
    "sync of the entry log": {"op": "fdatasync", "action": "ENOSPC", "suffix": ".log", "times": -1},
    "write of the journal": {"op": "pwritev", "action": "ENOSPC", "suffix": ".txn", "times": -1},
    "write of the mark": {"op": "pwritev", "action": "ENOSPC", "suffix": "lastMark.tmp", "times": -1},
    "a new mark": {"op": "open", "action": "ENOSPC", "suffix": "lastMark.tmp", "times": -1},
}
MORE_FULL: dict[str, dict[str, Any]] = {
    "write of the entry log by quota": {"op": "pwritev", "action": "EDQUOT", "suffix": ".log", "times": -1},
    "write of the entry log after half of it": {
        "op": "pwritev", "action": "ENOSPC", "suffix": ".log", "times": -1, "transferred": 4096,
    },
    "write of the journal after half of it": {
        "op": "pwritev", "action": "EDQUOT", "suffix": ".txn", "times": -1, "transferred": 2048,
    },
    "room for the entry log": {"op": "fallocate", "action": "ENOSPC", "suffix": ".log", "times": -1},
    "the next journal file": {"op": "open", "action": "ENOSPC", "suffix": ".preparing", "times": -1},
    "zeros for the next journal file": {"op": "pwritev", "action": "ENOSPC", "suffix": ".preparing", "times": -1},
    "write of the last id": {"op": "pwritev", "action": "ENOSPC", "suffix": "lastId.tmp", "times": -1},
}  # fmt: skip


def both(cells: dict[str, dict[str, Any]], more: dict[str, dict[str, Any]]) -> list[Any]:
    """Return the cases of every run, and those of the long one."""
    return [
        *(pytest.param(fault, id=what) for what, fault in cells.items()),
        *(pytest.param(fault, id=what, marks=pytest.mark.crash) for what, fault in more.items()),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("fault", both(FATAL, MORE_FATAL))
def test_b2_after_a_failure_nothing_is_acknowledged(fault: dict[str, Any], tmp_path: Path) -> None:
    """The process ends, and what it had acknowledged is there after the next start."""
    assert not fail_the_disk(tmp_path, dict(fault))


@pytest.mark.thorough
@pytest.mark.parametrize("nth", [4, 9])
def test_b2_a_failed_index_commit_ends_the_process(nth: int, tmp_path: Path) -> None:
    """LMDB continues after a failed commit, and would lose its changes."""
    assert not fail_an_index_sync(tmp_path, nth)


@pytest.mark.thorough
@pytest.mark.parametrize("fault", both(FULL, MORE_FULL))
def test_b15_a_full_disk_is_survived(fault: dict[str, Any], tmp_path: Path) -> None:
    """The bookie is read-only while there is no room and writable again when there is, and nothing is lost."""
    assert not fill_the_disk(tmp_path, dict(fault))


def test_b15_a_full_disk_holds_up_nobody_else(tmp_path: Path) -> None:
    """Reads continue, adds are refused at once, and the add that met the full disk is acknowledged with new space."""
    assert not fill_the_disk_before_a_lone_writer(tmp_path)


def test_b7_a_failed_read_denies_nothing(tmp_path: Path) -> None:
    """An entry that cannot be read now is not reported as nonexistent."""
    assert not fail_a_read(tmp_path)
