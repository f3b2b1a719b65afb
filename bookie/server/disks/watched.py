"""Which directories of a bookie are monitored, and the status that its last run left in them. At start, main thread."""

from collections.abc import Sequence
from pathlib import Path

from bookie.server.configuration.settings import Settings
from bookie.server.disks.monitor import DiskMonitor
from bookie.server.disks.state import INDEX, JOURNAL, LEDGER, Directory
from bookie.server.disks.status_file import StatusFiles, read
from bookie.server.mode import Mode
from bookie.storage.layout import current
from bookie.storage.ledger_storage import LedgerStorage

__all__ = ["make_monitor", "restore_status"]


def make_monitor(settings: Settings, storage: LedgerStorage) -> DiskMonitor:
    """Monitor ledger directories, separate index directories, and separate journals, each path once."""
    kinds: dict[Path, str] = {}
    for kind, paths in (
        (LEDGER, settings.storage.ledger_directories),
        (INDEX, settings.storage.index_directories),
        (JOURNAL, settings.journal.directories),
    ):
        for path in paths:
            kinds.setdefault(path, kind)
    return DiskMonitor(
        [Directory(kind, path) for path, kind in kinds.items()], settings.disks, refused=storage.full_directories
    )


def restore_status(mode: Mode, disks: DiskMonitor, ledger_directories: Sequence[Path]) -> None:
    """Restore the operator's mode of the last run; a disk that was full then must fall below the low mark. From now
    on every change is written to the status files.
    """
    directories = [current(path) for path in ledger_directories]
    last = read(directories)
    if last is not None and last.read_only:
        if last.manual:
            mode.set("operator", read_only=True)
        else:
            disks.start_full()
    files = StatusFiles(directories)
    mode.follow_reasons(files.keep)
    disks.after_each_check(files.again)
