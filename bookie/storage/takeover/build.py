"""Our index of a store that a Java bookie left: its ledgers as Java knew them, its entries by scanning the entry logs.

Main thread, at start, with RocksDB's locks held. The index is built beside its place and renamed when it is whole, so
that an end in the middle leaves nothing but a directory that the next start removes. Java's files are not changed.
"""

import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from bookie._fast.index_rebuild import Rebuild
from bookie._fast.index_view import Index, Ledger
from bookie.errors import StartRefused
from bookie.storage.takeover import idx, rocksdb
from bookie.storage.takeover.disks import Disks, entry_logs, write_taken_over
from bookie.storage.takeover.leftovers import adopt_orphans, remove_leftovers

__all__ = ["build_index", "LEDGERS_A_COMMIT", "Reached", "SCAN_BYTES", "ScanProgress"]

log = logging.getLogger(__name__)

ScanProgress = Callable[[int, int], None]
"""Called with (bytes of entry logs scanned, bytes in all)."""
Reached = Callable[[str], None]
"""Called with the name of a step that is done; tests end the process there."""

SCAN_BYTES = 16 << 20
"""Between two calls of the progress function."""
LEDGERS_A_COMMIT = 10_000


def build_index(
    disks: Disks,
    journal_dirs: list[Path],
    *,
    map_bytes: int,
    fence_all: bool,
    progress: ScanProgress,
    reached: Reached,
) -> None:
    """Make `disks.target`. StartRefused for what an operator must decide, OSError for what the system refuses."""
    part = disks.target.with_name(f"{disks.target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    begun = time.monotonic()
    ledgers = _known_ledgers(disks, fence_all=fence_all)
    adopt_orphans(disks.ledgers)
    reached("orphans adopted")
    part.mkdir()
    index = Index.open(part, map_bytes)
    try:
        entries, total, ledgers = _scan(index, disks, ledgers, progress)
        reached("scanned")
        _put_ledgers(index, ledgers)
    finally:
        index.close()
    reached("ledgers put")
    write_taken_over(part, journal_dirs)
    _sync(part / "taken-over")
    _sync(part)
    reached("built")
    if disks.target.exists():
        disks.target.rmdir()
    part.rename(disks.target)
    _sync(disks.target.parent)
    reached("renamed")
    remove_leftovers(disks.ledgers)
    reached("cleaned")
    fenced = sum(ledger.fenced for ledger in ledgers.values())
    seconds = time.monotonic() - begun
    facts = {"ledgers": len(ledgers), "fenced": fenced, "entries": entries, "bytes": total}
    log.info("a Java bookie's store taken over", extra={**facts, "store": disks.ledgers, "seconds": f"{seconds:.1f}"})


def _known_ledgers(disks: Disks, *, fence_all: bool) -> dict[int, Ledger] | None:
    """What Java's index says of the ledgers; None: of no use, every ledger found in the logs is to be fenced."""
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
            f"{disks.index} has neither a RocksDB `ledgers` nor .idx files, so which ledgers were fenced is lost: "
            "restore them; or set takeOverFencingAll=true to have every ledger fenced, which makes the writers of open "
            "ledgers begin new ones"
        )
    log.warning("every ledger is fenced, as takeOverFencingAll asks for store=%s", disks.ledgers)
    return None


def _merged(ledger: Ledger, other: Ledger | None) -> Ledger:
    """Two indexes know the ledger, after a conversion that was interrupted: fenced if either says so."""
    if other is None:
        return ledger
    fenced = ledger.fenced or other.fenced
    return ledger._replace(fenced=fenced, key=ledger.key or other.key, lac=ledger.lac or other.lac)


def _unreadable(path: Path, error: Exception) -> str:
    if not isinstance(error, ImportError):
        return str(error)
    return (
        f"{path} says which ledgers are fenced and by which keys they open, and reading it needs the package "
        "rocksdict: install bookie[java-disks]; or set takeOverFencingAll=true to do without it, which fences every "
        "ledger, makes the writers of open ledgers begin new ones and loses explicit LACs"
    )


def _scan(
    index: Index, disks: Disks, ledgers: Mapping[int, Ledger] | None, progress: ScanProgress
) -> tuple[int, int, dict[int, Ledger]]:
    """Put every run of the wanted ledgers; (entries, bytes scanned, the ledgers to put)."""
    logs = entry_logs(disks.ledgers)
    total = sum(path.stat().st_size for _, path in logs)
    wanted = None if ledgers is None else np.array(sorted(ledgers), np.int64)
    rebuild = Rebuild(index, wanted)
    done = 0
    try:
        for log_id, path in logs:
            _scan_log(rebuild, log_id, path, lambda at, before=done: progress(before + at, total))  # type: ignore[misc]
            done += path.stat().st_size
            progress(done, total)
        found, _ = rebuild.finish()
    finally:
        rebuild.abort()
    if rebuild.odd:
        log.warning("records with impossible ids passed over store=%s count=%d", disks.ledgers, rebuild.odd)
    if ledgers is None:
        ledgers = {ledger: Ledger(ledger, b"", True, False, b"") for ledger in found.tolist()}
    return rebuild.taken, total, dict(ledgers)


def _scan_log(rebuild: Rebuild, log_id: int, path: Path, progress: Callable[[int], None]) -> None:
    at, more, torn = 0, True, False
    while more:
        try:
            part = rebuild.scan(path, log_id, at, SCAN_BYTES)
        except ValueError as error:
            raise StartRefused(f"{error}, and the clients' other replicas serve what it held") from None
        at, more, torn = part.end, part.more, part.torn
        progress(at)
    if torn:
        log.warning("entry log ends in a torn record, what lay behind it is in the journal file=%s at=%d", path, at)


def _put_ledgers(index: Index, ledgers: Mapping[int, Ledger]) -> None:
    rows = list(ledgers.values())
    for begin in range(0, max(len(rows), 1), LEDGERS_A_COMMIT):
        index.begin()
        for row in rows[begin : begin + LEDGERS_A_COMMIT]:
            index.put_ledger(row.ledger, row.key, row.fenced, row.limbo, row.lac)
        index.commit()


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
