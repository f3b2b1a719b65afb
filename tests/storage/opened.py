"""A bookie's ledger storage with small caches, driven by the test: groups are committed, halves flushed and entries
read when the test says so. What was flushed is read from disk, unless a test keeps it in memory. Only the read pool has
a thread.
"""

import threading
from pathlib import Path
from typing import Any

from bookie._fast.base.file import Files
from bookie._fast.entrylog.scan import scan_entry_log
from bookie._fast.index.view import Index
from bookie._fast.store.checkpoint import Checkpointer
from bookie._fast.store.direct import Direct
from bookie._fast.store.read_pool import ReadPoolWorkers
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.recovery import Progress, RecoveryReport
from bookie.storage.settings import JournalSettings, StorageSettings
from tests.reference.storage import Stores

KIB = 1 << 10
MIB = 1 << 20
STORAGE: dict[str, Any] = {
    "write_cache_bytes": 4 * MIB,
    "read_cache_bytes": 512 * KIB,
    "read_segment_bytes": 64 * KIB,
    "readahead_bytes": 16 * KIB,
    "index_map_bytes": 64 * MIB,
    "log_bytes_max": 256 * KIB,
    "read_threads": 1,
    "keep_flushed": False,
}
JOURNAL: dict[str, Any] = {"file_bytes_max": 2 * MIB, "prealloc_bytes": MIB, "buffer_bytes": 2 * MIB}


class Opened:
    """Open directories under `root`. `crash` loses what is only in memory; `stop` flushes it first."""

    def __init__(
        self,
        root: Path,
        *,
        ledger_dirs: int = 1,
        journals: int = 1,
        files: Files | None = None,
        same_boot: bool = False,
        progress: Progress | None = None,
        **settings: object,
    ) -> None:
        journal = {**JOURNAL, **{name: value for name, value in settings.items() if hasattr(JournalSettings, name)}}
        storage = {**STORAGE, **{name: value for name, value in settings.items() if hasattr(StorageSettings, name)}}
        self.ledger_dirs = tuple(root / f"ledgers-{i}" for i in range(ledger_dirs))
        self.journal_dirs = tuple(root / f"journal-{i}" for i in range(journals))
        self.storage = LedgerStorage(
            StorageSettings(ledger_directories=self.ledger_dirs, **storage),
            JournalSettings(directories=self.journal_dirs, **journal),
            files=files,
        )
        self.report: RecoveryReport = self.storage.open(progress, same_boot=same_boot)
        assert self.storage.stores is not None
        assert self.storage.checkpoints is not None
        self.checkpoints: Checkpointer = self.storage.checkpoints
        self.pool = ReadPoolWorkers(self.storage.stores, queue_max=100)
        directories = range(len(self.ledger_dirs))
        self.readers = [threading.Thread(target=self.pool.run, args=(at,), daemon=True) for at in directories]
        for reader in self.readers:
            reader.start()
        self.direct = Direct(self.storage.stores, self.pool)

    def user(self) -> Direct:
        """Return a further Direct for another thread; the caller closes it."""
        assert self.storage.stores is not None
        return Direct(self.storage.stores, self.pool)

    def checkpoint(self) -> None:
        """Take a complete checkpoint in this thread."""
        self.checkpoints.flush_alone()

    def flush_for_room(self) -> None:
        """Take a checkpoint as if adds had no room; it may leave runs that the index lacks."""
        self.checkpoints.flush_alone(whole=False)

    def crash(self) -> None:
        """End without a checkpoint, so that the next start must replay. What was not committed is lost."""
        self.pool.stop()
        for reader in self.readers:
            reader.join()
        self.direct.close()
        self.storage.stop()

    def stop(self) -> None:
        """Stop cleanly."""
        assert self.direct.commit()
        self.checkpoint()
        self.crash()


def check_index(ledger_dirs: tuple[Path, ...], model: Stores) -> None:
    """Check B6 on closed directories: each index row points at a record of its ledger and entry, and the look-up of
    each live entry finds what the model holds.
    """
    for at, directory in enumerate(ledger_dirs):
        current = directory / "current"
        logs = {int(path.stem, 16): path for path in current.glob("*.log")}
        places = {
            (log_id, int(offset)): (int(ledger), int(entry), int(length))
            for log_id, path in logs.items()
            for chunk in scan_entry_log(path)
            for ledger, entry, offset, length in zip(chunk.ledger, chunk.entry, chunk.offset, chunk.length, strict=True)
        }
        index = Index.open(current / "locations.lmdb", STORAGE["index_map_bytes"])
        reader = index.reader()
        mine = {ledger: known for ledger, known in model.ledgers.items() if ledger % len(ledger_dirs) == at}
        assert {row.ledger for row in reader.ledgers()} == set(mine)
        for ledger, known in mine.items():
            for run in reader.runs(ledger):
                offset = run.offset
                for entry, length in enumerate(run.lengths, run.first):
                    if length:
                        assert places[run.log_id, offset] == (ledger, entry, length)
                        offset += 4 + length
            for entry, data in known.entries.items():
                hit = reader.lookup(ledger, entry)
                assert hit is not None, f"entry {entry} of ledger {ledger} is not in the index"
                with logs[hit.log_id].open("rb") as log:
                    log.seek(hit.offset + 4)
                    assert log.read(hit.length) == data
        reader.close()
        index.close()
