"""Replacement of a damaged location index at start: readable rows go into a new index, and a search while serving
finds the rest.

Nothing has the index open yet. A ledger whose record cannot be read, but which an entry log names, is restored as
fenced and in limbo: it is better to stop a writer without need than to deny that a ledger exists. For the same reason
all ledgers are fenced if the records are those of an earlier commit, which may be older than a fence. Main thread.
"""

import logging
from contextlib import suppress
from pathlib import Path

from bookie._fast.entrylog.map import read_map, scan_ledgers
from bookie._fast.index.codec import unpack_ledger
from bookie._fast.index.doubts import unpack_doubt
from bookie._fast.index.salvage import put_doubts, salvage_file
from bookie._fast.index.view import Ledger
from bookie.errors import StartRefused
from bookie.storage.tools.index_swap import new_index
from bookie.storage.tools.log_files import entry_logs
from bookie.storage.tools.rebuild_index import old_fences, put_fences, put_records
from bookie.storage.tools.verify_index import older_tables, table_values

__all__ = ["mend_index"]

EVERY_LEDGER = (0, 2**63 - 1)

log = logging.getLogger(__name__)


def mend_index(directory: Path, index: Path, map_bytes: int) -> None:
    """Replace the index of the `current` directory, and mark the ledgers that may have lost runs as in doubt.

    Raises StartRefused if the file does not even tell where its tables begin, and OSError if a new one cannot be
    written.
    """
    facts: dict[str, object] = {"directory": directory, "index": index}
    log.error("the location index is damaged; its readable part is copied into a new index", extra=facts)
    records, whole = _records(index)
    fences = old_fences(index)
    older = older_tables(index)
    with new_index(index, map_bytes=map_bytes) as fresh:
        try:
            facts["runs"], lost, ranges = salvage_file(str(index / "data.mdb"), fresh)
        except ValueError as error:
            raise StartRefused(
                f"{error}; nothing was changed: restore the index, or rebuild it from the entry logs and journals"
                " (bkadmin rebuild-db-ledgers-index)"
            ) from error
        facts["lost"] = lost
        doubts, all_doubts = _doubts(index)
        if b"doubts" in older or not all_doubts:
            ranges = [EVERY_LEDGER]
        elif whole and not lost and not table_values(index, b"fences")[1]:
            # All that is there is sound, so something is missing: a page may be of an earlier commit, and with it
            # whole tables.
            ranges = [EVERY_LEDGER]
        if b"ledgers" in older:
            facts["fenced"] = len(records)
            records = [record._replace(fenced=True) for record in records]
        known = {record.ledger for record in records}
        if not whole or EVERY_LEDGER in ranges:
            deleted = {ledger for ledger, _ in fences}
            unknown = sorted(_in_logs(directory) - known - deleted)
            records += [Ledger(ledger, b"", fenced=True, limbo=True, lac=b"") for ledger in unknown]
            known.update(unknown)
            facts["ledgers_without_record"] = len(unknown)
        doubtful = {ledger for ledger in known if any(first <= ledger <= last for first, last in ranges)}
        doubtful |= doubts & known
        put_records(fresh, sorted(records))
        put_fences(fresh, fences)
        put_doubts(fresh, sorted(doubtful))
    facts["doubtful"] = len(doubtful)
    log.warning("the location index was replaced by its readable part", extra=facts)


def _records(index: Path) -> tuple[list[Ledger], bool]:
    """Return the ledger records that can be read, and whether these are all."""
    values, problems = table_values(index, b"ledgers")
    found = []
    for key, value in values:
        with suppress(ValueError):  # `problems` lists it
            ledger, fenced, limbo, master_key, lac, why = unpack_ledger(key, value)
            found.append(Ledger(ledger, master_key, fenced, limbo, lac, why))
    return found, not problems


def _doubts(index: Path) -> tuple[set[int], bool]:
    """Return the ledgers in doubt that can be read, and whether these are all."""
    values, problems = table_values(index, b"doubts")
    found = set()
    for key, value in values:
        with suppress(ValueError):
            found.add(unpack_doubt(key, value)[0])
    return found, not problems


def _in_logs(directory: Path) -> set[int]:
    """Return every ledger that an entry log names."""
    found: set[int] = set()
    for file in entry_logs(directory):
        try:
            held = read_map(file.path) or scan_ledgers(file.path)
        except (OSError, ValueError) as error:
            log.error("the ledgers of an entry log cannot be listed", extra={"file": file.path, "error": error})
            continue
        found.update(held.ledgers.tolist())
    return found
