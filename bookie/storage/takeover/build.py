"""Building our index for a store that a Java bookie left: its ledgers as Java knew them, its entries by scanning the
entry logs.

Main thread, at start, with RocksDB's locks held. The index is built in a directory beside its final place and swapped
in when it is complete, so after an interruption the next start begins again. Java's own files are not changed.
"""

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from bookie._fast.entrylog.map import read_map
from bookie._fast.index.salvage import put_doubts
from bookie._fast.index.view import Index, Ledger
from bookie.errors import StartRefused
from bookie.storage.index_repair import TAIL_BYTES
from bookie.storage.takeover import idx, rocksdb
from bookie.storage.takeover.disks import Disks, note_journals
from bookie.storage.takeover.journals import with_journals
from bookie.storage.takeover.leftovers import adopt_orphans, remove_leftovers
from bookie.storage.tools.index_swap import new_index
from bookie.storage.tools.log_files import entry_logs
from bookie.storage.tools.progress import Progress, Step
from bookie.storage.tools.rebuild_index import IndexRebuilt, RebuildOptions, fill_index, put_records

__all__ = ["build_index"]

log = logging.getLogger(__name__)


def build_index(
    disks: Disks, journal_dirs: list[Path], *, map_bytes: int, fence_all: bool, progress: Progress, step: Step
) -> None:
    """Build `disks.target`. Raises StartRefused for a decision that an operator must make, and OSError for a failed
    system call.

    Steps: those of `new_index`, and orphans adopted, noted, scanned, cleaned.
    """
    begun = time.monotonic()
    known = _known_ledgers(disks, fence_all=fence_all)
    adopt_orphans(disks.ledgers)
    step("orphans adopted")
    note_journals(disks.target, journal_dirs)
    step("noted")
    with new_index(disks.target, map_bytes=map_bytes, step=step) as fresh:
        report = _scan(fresh, disks, known, progress)
        step("scanned")
        if known is None:
            known = {ledger: Ledger(ledger, b"", True, False, b"") for ledger in report.ledgers}
        known = with_journals(known, journal_dirs)
        put_records(fresh, known.values())
        doubtful = _doubtful(report, known)
        put_doubts(fresh, doubtful)
    remove_leftovers(disks.ledgers)
    step("cleaned")
    fenced = sum(ledger.fenced for ledger in known.values())
    facts = {
        "ledgers": len(known),
        "fenced": fenced,
        "doubtful": len(doubtful),
        "entries": report.entries,
        "entry_logs": len(report.logs),
    }
    seconds = f"{time.monotonic() - begun:.1f}"
    log.info("the store of a Java bookie was taken over", extra={"store": disks.ledgers, **facts, "seconds": seconds})


def _known_ledgers(disks: Disks, *, fence_all: bool) -> dict[int, Ledger] | None:
    """Return the ledgers in Java's index, or None if it is of no use and every ledger found is to be fenced."""
    known: dict[int, Ledger] = {}
    readable = disks.idx or disks.whole_journal
    if disks.idx:
        known = idx.read_ledgers(disks.index)
    if disks.rocksdb:
        try:
            found = rocksdb.ledgers_of(rocksdb.read_pairs(disks.rocksdb), disks.rocksdb)
        except (ImportError, StartRefused) as error:
            readable = disks.whole_journal
            if not readable and not fence_all:
                raise StartRefused(_unreadable(disks.rocksdb, error)) from None
        else:
            readable = True
            known = {**known, **{ledger.ledger: _merged(ledger, known.get(ledger.ledger)) for ledger in found.values()}}
    if readable:
        return known
    if not fence_all:
        raise StartRefused(
            f"{disks.index} has neither a RocksDB database `ledgers` nor .idx files, so it is unknown which ledgers "
            "were fenced: restore them; or set takeOverFencingAll=true to fence every ledger, which makes writers of "
            "open ledgers begin new ones"
        )
    log.warning("every ledger is fenced, because takeOverFencingAll=true store=%s", disks.ledgers)
    return None


def _merged(ledger: Ledger, other: Ledger | None) -> Ledger:
    """Merge a ledger that two indexes have, after an interrupted conversion: it is fenced if either says so."""
    if other is None:
        return ledger
    fenced = ledger.fenced or other.fenced
    return ledger._replace(fenced=fenced, key=ledger.key or other.key, lac=ledger.lac or other.lac)


def _unreadable(path: Path, error: Exception) -> str:
    if not isinstance(error, ImportError):
        return str(error)
    return (
        f"{path} holds the fences and master keys of the ledgers, and reading it needs the package rocksdict: install "
        "bookie[java-disks]; or set takeOverFencingAll=true to start without it, which fences every ledger, makes the "
        "writers of open ledgers begin new ones and loses explicit LACs"
    )


def _scan(fresh: Index, disks: Disks, known: Mapping[int, Ledger] | None, progress: Progress) -> IndexRebuilt:
    options = RebuildOptions(skip_unreadable=True)
    ledgers = None if known is None else sorted(known)
    report = fill_index(fresh, entry_logs(disks.ledgers), ledgers=ledgers, options=options, progress=progress)
    for taken in report.logs:
        if taken.refused:
            raise StartRefused(f"{taken.refused}; the other replicas have its entries")
    if report.odd:
        log.warning("records with impossible ids are skipped store=%s count=%d", disks.ledgers, report.odd)
    return report


def _doubtful(report: IndexRebuilt, known: Mapping[int, Ledger]) -> list[int]:
    """Return the known ledgers of which a damaged log may hide entries; a search while serving judges that.

    What a crash leaves at the end of a log that was not closed is no damage: the journal has the rest.
    """
    found: set[int] = set()
    for taken in report.torn:
        path = Path(taken.path)
        try:
            held = read_map(path)
            crashed = held is None and path.stat().st_size - taken.end <= TAIL_BYTES
        except OSError:
            held, crashed = None, False
        if crashed:
            log.warning("an entry log is torn; the journal has the rest file=%s at=%d", path, taken.end)
            continue
        found |= known.keys() if held is None else known.keys() & set(held.ledgers.tolist())
        log.error("a damaged entry log may hide entries file=%s at=%d ledgers=%d", path, taken.end, len(found))
    return sorted(found)
