"""The thread `index-repair` of a ledger directory, which repairs a damaged location index while the bookie serves.

First the readable part of the index is copied into a new index, which replaces it (module `store.gc.index_repair`).
Ledgers that may have lost runs are marked as in doubt: from then on the bookie never answers that one of their
entries does not exist. Then the entry logs that hold such ledgers are read, at a set pace, and the entries that are
missing from the index are added to it. Ledgers of which a damaged log may still hide entries stay in doubt and are
quarantined until their entries are copied from replicas. After a restart the repair continues where it ended.
"""

import logging
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bookie._fast.entrylog.map import read_map
from bookie._fast.index.view import Index
from bookie._fast.store import quarantine
from bookie._fast.store.gc.index_repair import DirectoryIndexRepair
from bookie._fast.store.storage import DirectoryStore, StorageEngine
from bookie.storage.tools.index_swap import abandoned_index, make_room
from bookie.storage.tools.log_files import LogFile, entry_logs
from bookie.storage.tools.rebuild_index import LogTaken, RebuildOptions, fill_index

__all__ = ["IndexRepair"]

RETRY_S = 10.0
"""Pause after a repair that failed, for example for want of disk space."""
IDLE_S = 3600.0
BYTES_PER_S = 64 << 20
"""The rate at which entry logs are searched for ledgers in doubt."""
STRETCH_BYTES = 16 << 20
TAIL_BYTES = 16 << 20
"""The most that a crash may leave half written at the end of a log that was not closed; anything longer is damage."""
LOST_RUNS = "unreadable runs in the location index"

Ids = NDArray[np.int64]
log = logging.getLogger(__name__)


class _Stopped(Exception):
    """The bookie is stopping."""


class IndexRepair:
    """The index repair of one ledger directory. `run` is its thread's body; any thread may call `stop` repeatedly."""

    def __init__(
        self, stores: StorageEngine, handle: DirectoryStore, directory: Path, index: Path, map_bytes: int
    ) -> None:
        self._stores = stores
        self._directory = directory
        self._index = index
        self._map_bytes = map_bytes
        self._repair = DirectoryIndexRepair(stores, handle, index, abandoned_index(index), map_bytes)
        self._stopping = threading.Event()
        self._repairs = 0

    def run(self) -> None:
        """Repair damage whenever it is found, until `stop`."""
        while not self._stopping.is_set():
            try:
                self.step()
            except _Stopped:
                return
            except (OSError, MemoryError) as error:
                facts = {"directory": self._directory, "error": error, "again_in_s": RETRY_S}
                log.error("the repair of the location index failed and will be retried", extra=facts)
                self._repair.note()
                self._stopping.wait(RETRY_S)

    def stop(self) -> None:
        """Make `run` return soon."""
        self._stopping.set()
        self._repair.stop()

    def stats(self) -> dict[str, int]:
        """Return the counters, including the number of successful repairs. Any thread."""
        return self._repair.stats() | {"index_repairs": self._repairs}

    def tell(self) -> None:
        """Log one line if damage was found since the last call. Any thread, one at a time."""
        damage = self._repair.take_damage()
        if damage is not None:
            facts = {"directory": self._directory, "times": damage[0], "ledger": damage[1]}
            remedy = "the bookie repairs it while it serves; check the disk, which changed bytes (docs/troubleshoot.md)"
            log.error("the location index is damaged", extra={**facts, "remedy": remedy})

    def step(self, wait_s: float = IDLE_S) -> bool:
        """Repair damage found so far, or search for ledgers in doubt, or wait; return whether there was work."""
        if self.salvage_damaged():
            return True
        if doubtful := [ledger for ledger, lasting in self._repair.doubts() if not lasting]:
            self.search(np.array(doubtful, np.int64))
            return True
        return self._repair.wait(wait_s)

    def salvage_damaged(self) -> bool:
        """Call `salvage` if damage was noted, and return whether it was."""
        damaged = self._repair.wait(0)
        if damaged:
            self.salvage()
        return damaged

    def salvage(self) -> None:
        """Replace the index by a new one with what can be read of it. Flushes wait meanwhile."""
        new = abandoned_index(self._index)
        facts: dict[str, object] = {"directory": self._directory, "index": self._index}
        log.warning("the readable part of the location index is copied into a new index", extra=facts)
        begun = time.monotonic()
        try:
            make_room(new)
            runs, lost, ledgers, doubtful = self._repair.salvage()
        finally:
            shutil.rmtree(new, ignore_errors=True)
        self._repairs += 1
        facts |= {"runs": runs, "lost": lost, "ledgers": ledgers, "doubtful": doubtful}
        facts["ms"] = int(1000 * (time.monotonic() - begun))
        log.warning("the location index was replaced by its readable part", extra=facts)

    def search(self, ledgers: Ids) -> None:
        """Search the entry logs for entries of the ledgers in doubt, and add those that are missing from the index."""
        logs, unsure = self._logs_of(ledgers)
        facts = {"directory": self._directory, "ledgers": ledgers.size, "logs": len(logs)}
        log.warning("entry logs are searched for entries that are missing from the location index", extra=facts)
        path = self._index.with_name(f"{self._index.name}.found")
        make_room(path)
        found = Index.open(path, self._map_bytes)
        begun = time.monotonic()

        def pace(done: int, total: int) -> None:
            log.info(
                "the search of entry logs goes on", extra={"directory": self._directory, "bytes": done, "total": total}
            )
            if self._stopping.wait(max(0.0, begun + done / BYTES_PER_S - time.monotonic())):
                raise _Stopped

        try:
            options = RebuildOptions(skip_unreadable=True, map_bytes=self._map_bytes, stretch_bytes=STRETCH_BYTES)
            report = fill_index(found, logs, ledgers=ledgers, options=options, progress=pace)
            lasting = self._hidden(ledgers, report.logs, unsure)
            self._repair.take_found(found, ledgers, lasting.astype(np.uint8))
        finally:
            found.close()
            shutil.rmtree(path, ignore_errors=True)
        still = {ledger for ledger, _ in self._repair.doubts()}  # others were deleted meanwhile
        for ledger in still.intersection(ledgers[lasting].tolist()):
            quarantine.put(self._stores, ledger, LOST_RUNS)
        facts |= {"entries": report.entries, "still_doubtful": int(lasting.sum())}
        log.warning("entries found in entry logs were added to the location index", extra=facts)

    def _logs_of(self, ledgers: Ids) -> tuple[list[LogFile], dict[str, Ids | None]]:
        """Return the logs that may hold any of these ledgers and, for each log, which ones; None means possibly all.

        Copies that compaction has not committed are left out: they may be given up, and their source is kept.
        """
        logs = []
        holds: dict[str, Ids | None] = {}
        for each in entry_logs(self._directory):
            end = self._repair.committed(each.log_id)
            if end == 0:
                continue
            file = each if end is None else each._replace(end=end)
            try:
                found = read_map(file.path)
            except FileNotFoundError:
                continue
            except OSError:
                found = None
            held = None if found is None else np.intersect1d(ledgers, found.ledgers)
            if held is None or held.size:
                logs.append(file)
                holds[str(file.path)] = held
        return logs, holds

    def _hidden(self, ledgers: Ids, logs: Sequence[LogTaken], holds: dict[str, Ids | None]) -> NDArray[np.bool_]:
        """Return a mask of the ledgers that may have entries which the search could not find."""
        hidden = np.zeros(ledgers.size, np.bool_)
        for taken in logs:
            if not self._damaged(taken, holds[taken.path] is not None):
                continue
            held = holds[taken.path]
            hidden |= True if held is None else np.isin(ledgers, held)
            facts = {"file": taken.path, "at": taken.end, "reason": taken.refused or "a record is damaged"}
            log.error("a damaged entry log may hide entries of ledgers in doubt", extra=facts)
        return hidden

    def _damaged(self, taken: LogTaken, closed: bool) -> bool:  # noqa: FBT001
        """Return whether the search read less than the log holds; the torn end of an open log does not count."""
        path = Path(taken.path)
        if not path.exists():
            return False  # collected meanwhile, so its live entries are indexed elsewhere
        if taken.refused or (taken.torn and closed):
            return True
        if not taken.torn:
            return False
        return path.stat().st_size - taken.end > TAIL_BYTES or self._repair.points_into(int(path.stem, 16), taken.end)
