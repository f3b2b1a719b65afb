"""Assembles the garbage collection from directories, metadata store, cookie and disks. Main thread."""

from collections.abc import Collection

from bookie.metadata.driver import MetadataDriver
from bookie.server.configuration.settings import Settings
from bookie.server.disks.state import DiskState
from bookie.server.storage.own_ledgers import LedgersOfBookie
from bookie.storage.cookies import cookie_of
from bookie.storage.disk_level import DiskLevel
from bookie.storage.garbage.collection import Garbage
from bookie.storage.garbage.directory import LedgerDirectory
from bookie.storage.layout import current
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import StorageSettings

__all__ = ["disk_levels", "make_garbage"]


def make_garbage(
    settings: Settings, storage: LedgerStorage, driver: MetadataDriver, bookie_ids: Collection[str]
) -> Garbage:
    """Return the garbage collection of an open storage, not yet started. `bookie_ids` are all ids of this bookie."""
    first = settings.storage.ledger_directories[0]
    return Garbage(
        settings.garbage,
        [LedgerDirectory(collector, settings.garbage) for collector in storage.collectors()],
        LedgersOfBookie(driver, bookie_ids),
        own_instance=lambda: cookie_of(first).instance_id,
        checkpoint=storage.checkpoint,
        log_bytes_max=settings.storage.log_bytes_max,
        times=current(first),
    )


def disk_levels(storage: StorageSettings, state: DiskState) -> list[DiskLevel]:
    """Return the level of each ledger directory: the worse of its own disk and that of its index."""
    indexes = storage.index_directories or storage.ledger_directories
    return [
        max(state.of(ledger).level, state.of(index).level)
        for ledger, index in zip(storage.ledger_directories, indexes, strict=True)
    ]
