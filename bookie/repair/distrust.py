"""Before a bookie starts without its data: ledgers whose past answers cannot be trusted are fenced and put into
limbo.

This is for a lost disk, and for a crash without a journal. A ledger that is not closed and has this bookie in its
last ensemble may have entries that we acknowledged and lost: answering "no such entry" could truncate it. In limbo,
the bookie answers only for entries that it has. The bookie must be stopped; the caller holds the locks of its
directories.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie._fast.index.view import Index, Ledger
from bookie.client.entries.digest import master_key
from bookie.durable import make_directories
from bookie.metadata.driver import Ledgers
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie.repair.expected import in_last_ensemble, names
from bookie.repair.integrity import ledgers_of

__all__ = ["clear_limbo", "distrust_unflushed", "Distrusted", "in_limbo", "mark_distrusted"]

log = logging.getLogger(__name__)

RECORDS_A_COMMIT = 100_000
KEY_BYTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Distrusted:
    """The ledgers that were marked as distrusted before a start."""

    ledgers: int
    """The ledgers that the metadata assigns to this bookie, in the directories that were lost."""
    created: int
    """Those without a record in the index, which were created as fenced, with the key that follows from the metadata.
    """
    limbo: tuple[int, ...]
    """The ledgers that are not closed and have this bookie in the last ensemble."""


def mark_distrusted(
    bookie_id: str,
    ledgers: Iterable[tuple[int, LedgerMetadata]],
    indexes: Sequence[Path],
    *,
    lost: Collection[int] | None = None,
    map_bytes: int = 1 << 40,
) -> Distrusted:
    """Write a record of every ledger of this bookie to `indexes`, one for each ledger directory in configured order.

    `lost` has the positions, from 0, of the directories that lost their data; None means all of them. Ledgers of the
    other directories are not changed. A missing index, as on an empty disk, is created. Repeating the call changes
    nothing.
    """
    opened = {at: _Records(path, map_bytes) for at, path in enumerate(indexes) if lost is None or at in lost}
    found = created = 0
    limbo = []
    try:
        for ledger, metadata in ledgers:
            records = opened.get(ledger % len(indexes))
            if records is None or not names(metadata, bookie_id):
                continue
            found += 1
            distrust = metadata.state is not LedgerState.CLOSED and in_last_ensemble(metadata, bookie_id)
            created += records.distrust(ledger, metadata, limbo=distrust)
            if distrust:
                limbo.append(ledger)
        for records in opened.values():
            records.index.commit()
    finally:
        for records in opened.values():
            records.index.close()
    log.info("ledgers were marked as distrusted ledgers=%d created=%d limbo=%d", found, created, len(limbo))
    return Distrusted(ledgers=found, created=created, limbo=tuple(limbo))


def distrust_unflushed(bookie_id: str, ledgers: Ledgers, indexes: Sequence[Path]) -> int:
    """Put ledgers that may lack entries after a crash without a journal into limbo; return how many there are."""
    return len(mark_distrusted(bookie_id, ledgers_of(ledgers, bookie_id), indexes).limbo)


def in_limbo(indexes: Sequence[Path], *, map_bytes: int = 1 << 40) -> set[int]:
    """Return the ledgers that are in limbo. The bookie must be stopped."""
    found: set[int] = set()
    for path in indexes:
        index = Index.open(path, map_bytes)
        try:
            found.update(record.ledger for record in index.reader().ledgers() if record.limbo)
        finally:
            index.close()
    return found


def clear_limbo(ledgers: Iterable[int], indexes: Sequence[Path], *, map_bytes: int = 1 << 40) -> int:
    """Trust these ledgers again after they were recovered and their entries copied. Return how many were in limbo.

    They stay fenced. The bookie must be stopped.
    """
    wanted = set(ledgers)
    cleared = 0
    for path in indexes:
        records = _Records(path, map_bytes)
        try:
            for ledger in wanted & records.known.keys():
                if records.known[ledger].limbo:
                    records.put(records.known[ledger]._replace(limbo=False))
                    cleared += 1
            records.index.commit()
        finally:
            records.index.close()
    return cleared


class _Records:
    """The ledger records of one index, with an open write transaction."""

    def __init__(self, path: Path, map_bytes: int) -> None:
        make_directories(path)
        self.index = Index.open(path, map_bytes)
        self.known = {record.ledger: record for record in self.index.reader().ledgers()}
        self._put = 0
        self.index.begin()

    def distrust(self, ledger: int, metadata: LedgerMetadata, *, limbo: bool) -> bool:
        """Fence the ledger if it is not closed or has no record. Return whether it had none."""
        old = self.known.get(ledger)
        if old is None:
            # Metadata older than digests do not have the password; a key of zeros is replaced by the first key that a
            # client sends.
            is_known = metadata.digest_type is not None or metadata.password
            key = master_key(metadata.password) if is_known else bytes(KEY_BYTES)
            self.put(Ledger(ledger, key, fenced=True, limbo=limbo, lac=b""))
        elif limbo and not (old.fenced and old.limbo):
            self.put(old._replace(fenced=True, limbo=True))
        return old is None

    def put(self, record: Ledger) -> None:
        self.index.put_ledger(record.ledger, record.key, record.fenced, record.limbo, record.lac, record.quarantine)
        self._put += 1
        if self._put % RECORDS_A_COMMIT == 0:
            self.index.commit()
            self.index.begin()
