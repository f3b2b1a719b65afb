"""A storage with closed logs, to be compacted: what both measurements of `perf.compaction` begin with."""

import os
from pathlib import Path

from bookie._fast.store.direct import Direct
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import JournalSettings, StorageSettings

__all__ = ["fill", "MIB", "opened"]

MIB = 1 << 20


def opened(root: Path, *, log_mib: int, directories: int = 1) -> LedgerStorage:
    """Open a storage without threads; its journal is replayed."""
    storage = LedgerStorage(
        StorageSettings(
            ledger_directories=tuple(root / f"ledgers{number}" for number in range(directories)),
            write_cache_bytes=256 * MIB,
            read_cache_bytes=8 * MIB,
            log_bytes_max=log_mib * MIB,
        ),
        JournalSettings(directories=(root / "journal",), write_data=False),
    )
    storage.open()
    return storage


def fill(root: Path, total: int, size: int, ledgers: int, *, log_mib: int, directories: int = 1) -> None:
    """Write entries of all ledgers in turn, as clients do."""
    storage = opened(root, log_mib=log_mib, directories=directories)
    assert storage.stores is not None
    assert storage.checkpoints is not None
    direct = Direct(storage.stores)
    body = os.urandom(size - 24)
    for at in range(total // (size + 4)):
        ledger, entry = at % ledgers, at // ledgers
        direct.add(ledger.to_bytes(8, "big") + entry.to_bytes(8, "big") + bytes(8) + body)
        if at % (48 * MIB // size) == 0:
            storage.checkpoints.flush_alone()
    storage.checkpoints.flush_alone()
    direct.close()
    storage.stop()
