"""The markers `current/DIRTY` in each ledger directory, while a bookie runs and after an unclean end.

A marker records what its run relied on, because the next one may be configured differently: whether entries were
journaled, whether the journal was synced before an add was acknowledged, and the boot of the machine. The page cache
outlives the process but not the machine, so within one boot an unsynced journal has lost nothing. Main thread.
"""

import errno
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bookie.durable import replace_file, sync_directory
from bookie.errors import StartRefused
from bookie.storage.layout import current

__all__ = ["boot_id", "DirtyMarker", "Run"]

log = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def boot_id() -> str:
    """Return the id of this boot of the machine; empty if the system has none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings and the boot of the machine on which a run relies to keep what it acknowledged."""

    write_data: bool
    sync_data: bool
    boot: str

    def to_text(self) -> str:
        """Return the text of a marker."""
        write, sync = str(self.write_data).lower(), str(self.sync_data).lower()
        return f"bootId={self.boot}\njournalWriteData={write}\njournalSyncData={sync}\n"

    def lost(self, now: str) -> str:
        """Return why acknowledged entries may be lost in the boot `now`, in terms of this run's settings, or ""."""
        if not self.write_data:
            return "journalWriteData=false"
        if not self.sync_data and not (self.boot and self.boot == now):
            return "journalSyncData=false and a restart of the machine since"
        return ""


class DirtyMarker:
    """The markers of all ledger directories. `now` is the run that begins."""

    def __init__(self, ledger_directories: Iterable[Path], now: Run) -> None:
        self._files = tuple(current(path) / "DIRTY" for path in ledger_directories)
        self._now = now

    def is_set(self) -> bool:
        """Return whether the last run ended uncleanly, according to any directory."""
        return any(file.exists() for file in self._files)

    def files(self) -> str:
        """Return the paths of the markers, for messages."""
        return ", ".join(map(str, self._files))

    def lost(self) -> str:
        """Return why acknowledged entries of the last run may be lost; empty if they are not. One marker is enough."""
        found = (run.lost(self._now.boot) for file in self._files if (run := self._read(file)) is not None)
        return next(filter(None, found), "")

    def same_boot(self) -> bool:
        """Return whether the machine has not been restarted since the last run; known only after an unclean end."""
        runs = [run for file in self._files if (run := self._read(file)) is not None]
        return bool(runs) and bool(self._now.boot) and all(run.boot == self._now.boot for run in runs)

    def set(self) -> None:
        """Write the markers durably. On a full disk the marker of a run that relied on the same, or less, may stay."""
        for file in self._files:
            self._write(file, self._now)

    def settle(self) -> None:
        """Record that the synced journal has what the entry logs lack, so that even a power failure loses nothing."""
        for file in self._files:
            self._write(file, Run(write_data=True, sync_data=True, boot=self._now.boot))

    def clear(self) -> None:
        """Remove the markers, because the entry logs have everything."""
        for file in self._files:
            file.unlink(missing_ok=True)
            sync_directory(file.parent)

    def _read(self, file: Path) -> Run | None:
        """Read a marker. An empty one, of Apache BookKeeper or an older version, counts as a run like the present."""
        try:
            rows = file.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return None
        said = {name: value for name, _, value in (row.partition("=") for row in rows)}
        return Run(
            write_data=_flag(said, "journalWriteData", default=self._now.write_data),
            sync_data=_flag(said, "journalSyncData", default=self._now.sync_data),
            boot=said.get("bootId", ""),
        )

    def _write(self, file: Path, run: Run) -> None:
        try:
            replace_file(file, run.to_text().encode())
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            before = self._read(file)
            if before is None or (before.write_data and not run.write_data) or (before.sync_data and not run.sync_data):
                raise StartRefused(f"{file}: no space is left on the disk for this marker; free some space") from None
            log.warning("the disk is full, so the marker of an earlier run stays", extra={"file": file})


def _flag(said: dict[str, str], name: str, *, default: bool) -> bool:
    return said[name] != "false" if said.get(name) in ("true", "false") else default
