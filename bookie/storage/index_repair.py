"""The thread `index-repair` of a ledger directory: a damaged location index is made good while the bookie serves.

First what can be read of it moves into a new index, which takes its place (module `store.gc.index_repair`); ledgers
that may have lost runs are in doubt from then on: nothing of them is denied. Then the entry logs that hold such ledgers
are read, at a set pace, and what the index lacks is put back. What a damaged log may still hide leaves its ledgers in
doubt for good, in quarantine, until they are copied from their replicas. A restart goes on where this one ended.
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
"""After a repair that failed, as for want of space."""
IDLE_S = 3600.0
BYTES_PER_S = 64 << 20
"""Of entry logs that are read for ledgers in doubt."""
STRETCH_BYTES = 16 << 20
TAIL_BYTES = 16 << 20
"""What a crash may have left half written at the end of a log that nobody closed; more than that is damage."""
LOST_RUNS = "unreadable runs in the location index"

Ids = NDArray[np.int64]
log = logging.getLogger(__name__)


class _Stopped(Exception):
    """The bookie stops."""


class IndexRepair:
    """Of one ledger directory. `run` is its thread's body; `stop` any thread, idempotent."""

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
        """Repair whatever is found damaged, until `stop`."""
        while not self._stopping.is_set():
            try:
                self.step()
            except _Stopped:
                return
            except (OSError, MemoryError) as error:
                facts = {"directory": self._directory, "error": error, "again_in_s": RETRY_S}
                log.error("repairing the location index failed, it is tried again", extra=facts)
                self._repair.note()
                self._stopping.wait(RETRY_S)

    def stop(self) -> None:
        """End `run` at its next look."""
        self._stopping.set()
        self._repair.stop()

    def stats(self) -> dict[str, int]:
        """What is counted of it, and how many repairs succeeded. Any thread."""
        return self._repair.stats() | {"index_repairs": self._repairs}

    def tell(self) -> None:
        """One line in the log if damage was met since the last call. Any thread, one at a time."""
        damage = self._repair.take_damage()
        if damage is not None:
            facts = {"directory": self._directory, "times": damage[0], "ledger": damage[1]}
            remedy = (
                "it is repaired while the bookie serves; look at the disk, its bytes changed (docs/troubleshoot.md)"
            )
            log.error("damage in the location index", extra={**facts, "remedy": remedy})

    def step(self, wait_s: float = IDLE_S) -> bool:
        """Repair what is damaged now, or search for what is in doubt, or wait for damage; whether there was any."""
        if self.salvage_damaged():
            return True
        if doubtful := [ledger for ledger, lasting in self._repair.doubts() if not lasting]:
            self.search(np.array(doubtful, np.int64))
            return True
        return self._repair.wait(wait_s)

    def salvage_damaged(self) -> bool:
        """`salvage` if damage was noted; whether it was."""
        damaged = self._repair.wait(0)
        if damaged:
            self.salvage()
        return damaged

    def salvage(self) -> None:
        """Let the bookie go on with a new index of what can be read. Flushes wait meanwhile."""
        new = abandoned_index(self._index)
        facts: dict[str, object] = {"directory": self._directory, "index": self._index}
        log.warning("a new location index is made of what can be read of the old one", extra=facts)
        begun = time.monotonic()
        try:
            make_room(new)
            runs, lost, ledgers, doubtful = self._repair.salvage()
        finally:
            shutil.rmtree(new, ignore_errors=True)
        self._repairs += 1
        facts |= {"runs": runs, "lost": lost, "ledgers": ledgers, "doubtful": doubtful}
        facts["ms"] = int(1000 * (time.monotonic() - begun))
        log.warning("the location index was replaced by what could be read of it", extra=facts)

    def search(self, ledgers: Ids) -> None:
        """Find the entries of ledgers in doubt in the entry logs, and put back what the index lacks of them."""
        logs, unsure = self._logs_of(ledgers)
        facts = {"directory": self._directory, "ledgers": ledgers.size, "logs": len(logs)}
        log.warning("entry logs are searched for ledgers that lost their places in the index", extra=facts)
        path = self._index.with_name(f"{self._index.name}.found")
        make_room(path)
        found = Index.open(path, self._map_bytes)
        begun = time.monotonic()

        def pace(done: int, total: int) -> None:
            log.info("searching entry logs", extra={"directory": self._directory, "bytes": done, "of": total})
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
        for ledger in ledgers[lasting].tolist():
            quarantine.put(self._stores, ledger, LOST_RUNS)
        facts |= {"entries": report.entries, "still_doubtful": int(lasting.sum())}
        log.warning("entries found in entry logs are in the index again", extra=facts)

    def _logs_of(self, ledgers: Ids) -> tuple[list[LogFile], dict[str, Ids | None]]:
        """The logs that may hold any of these ledgers; and which ones, None: any."""
        logs = []
        holds: dict[str, Ids | None] = {}
        for file in entry_logs(self._directory):
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
        """Which of the ledgers may have entries that the search did not come upon."""
        hidden = np.zeros(ledgers.size, np.bool_)
        for taken in logs:
            if not self._damaged(taken, holds[taken.path] is not None):
                continue
            held = holds[taken.path]
            hidden |= True if held is None else np.isin(ledgers, held)
            facts = {"file": taken.path, "at": taken.end, "reason": taken.refused or "a record is damaged"}
            log.error("an entry log may hide entries of ledgers in doubt", extra=facts)
        return hidden

    def _damaged(self, taken: LogTaken, closed: bool) -> bool:  # noqa: FBT001
        """Whether the search saw less than the log holds. What a crash left at the end of an open one is no damage."""
        path = Path(taken.path)
        if not path.exists():
            return False  # collected meanwhile: what was needed of it is indexed elsewhere
        if taken.refused or (taken.torn and closed):
            return True
        if not taken.torn:
            return False
        return path.stat().st_size - taken.end > TAIL_BYTES or self._repair.points_into(int(path.stem, 16), taken.end)
