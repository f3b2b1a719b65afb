"""Small file systems that become full under load: journal, entry logs or index on a small tmpfs, or a small ext4
(B15).

In addition to the faults of test_disk_faults.py this shows the system's own behaviour: short writes, LMDB's errors,
and blocks that a sync cannot allocate. Where nothing can be mounted, the tests are skipped with the reason.
"""

from pathlib import Path

import pytest

from tests.crash.small_disk import SmallDisk, Unavailable
from tests.crash.small_disk_scenarios import die_on_a_full_disk, fill_a_small_disk, hold_back_the_journal

pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
pytestmark = pytest.mark.crash

MIB = 1 << 20
SIZES = {"journalDirectories": 96 * MIB, "ledgerDirectories": 96 * MIB, "indexDirectories": 16 * MIB}
# A journal that recycles or frees its files needs no more space than it has.
NEEDY = {"journalReuseFiles": "false", "journalMaxBackups": "100"}


CASES = [
    ("tmpfs", "journalDirectories", "monitor"),
    ("tmpfs", "ledgerDirectories", "write"),
    ("tmpfs", "indexDirectories", "monitor"),
    ("ext4", "journalDirectories", "write"),
    ("ext4", "ledgerDirectories", "monitor"),
    ("ext4", "indexDirectories", "write"),
]


@pytest.mark.parametrize(("kind", "role", "found_by"), CASES)
def test_b15_a_full_file_system_is_survived(tmp_path: Path, kind: str, role: str, found_by: str) -> None:
    """The bookie is read-only while the disk is full, whatever notices it, then writable again, and nothing is lost."""
    directory = tmp_path / "disk"
    directory.mkdir()
    interval = "50" if found_by == "monitor" else "3600000"
    try:
        with SmallDisk(directory, kind, SIZES[role]) as disk:
            settings = {role: str(directory), "diskCheckInterval": interval, **NEEDY}
            assert not fill_a_small_disk(tmp_path, disk, settings)
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED on {kind}: {reason}")


@pytest.mark.parametrize(
    ("kind", "roles"),
    [
        ("tmpfs", ("ledgerDirectories",)),
        ("ext4", ("ledgerDirectories",)),
        ("tmpfs", ("ledgerDirectories", "journalDirectories")),
        ("ext4", ("ledgerDirectories", "journalDirectories")),
    ],
)
def test_b15_a_crash_on_a_full_file_system(tmp_path: Path, kind: str, roles: tuple[str, ...]) -> None:
    """It starts on the full disk twice, serves what it has, denies nothing, and is writable when there is space."""
    directory = tmp_path / "disk"
    directory.mkdir()
    try:
        with SmallDisk(directory, kind, 96 * MIB) as disk:
            settings = {**{role: str(directory / role) for role in roles}, "diskCheckInterval": "50", **NEEDY}
            assert not die_on_a_full_disk(tmp_path, disk, settings)
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED on {kind}: {reason}")


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_b15_a_full_ledger_directory_holds_no_journal_back(tmp_path: Path, kind: str) -> None:
    """Its mark is written in place on a disk without a free byte, and its memory is written to the journal again."""
    directory = tmp_path / "disk"
    directory.mkdir()
    settings = {
        "dbStorage_writeCacheMaxSizeMb": "16",
        "diskCheckInterval": "50",
        "ledgerDirectories": f"{tmp_path}/ledgers0,{directory}/ledgers1",
        "readOnlyModeOnAnyDiskFullEnabled": "false",
    }
    try:
        with SmallDisk(directory, kind, 96 * MIB) as disk:
            assert not hold_back_the_journal(tmp_path, disk, settings)
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED on {kind}: {reason}")
