"""Rebuild the whole index of one ledger directory, ledger records included, from entry logs and journals.

For an index that is lost, or whose ledger records cannot be read. That a ledger was fenced does not stand in the entry
logs, so every ledger that is found comes back fenced: a writer that is stopped for nothing opens a new ledger, one that
is let through could lose what a recovery has already counted. Limbo and a deletion are forgotten; garbage collection
finds deleted ledgers again. Fences of deleted ledgers are carried over as far as they can be read of the old index.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie._fast.base.file import Files
from bookie._fast.index.view import Ledger
from bookie.storage.tools.index_swap import new_index
from bookie.storage.tools.journal_facts import LedgerFacts, journal_facts
from bookie.storage.tools.log_files import entry_logs
from bookie.storage.tools.progress import Progress, Step, no_progress, no_step
from bookie.storage.tools.rebuild_index import (
    IndexRebuilt,
    RebuildOptions,
    fill_index,
    old_fences,
    put_fences,
    put_records,
)

__all__ = ["KeyOf", "LedgersRebuilt", "Place", "rebuild_ledgers"]

KeyOf = Callable[[int], bytes | None]
"""The master key of a ledger as its metadata has it (SHA-1 of "ledger" and the password); None when nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One ledger directory among those of its bookie."""

    directory: Path
    """Its `current` directory."""
    index: Path
    journals: Sequence[Path]
    """The `current` directories of all journals of the bookie."""
    position: int = 0
    """Which of the ledger directories it is, in their configured order."""
    count: int = 1
    """How many there are: ledger L lives in the one at L modulo this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgersRebuilt:
    """The new index: what the logs gave, and where the keys came from."""

    index: IndexRebuilt
    ledgers: int
    keys_of_journal: int
    keys_of_metadata: int
    without_key: tuple[int, ...]
    """These take the first key that a writer comes with."""
    fenced_in_journal: int
    lacs: int


def rebuild_ledgers(
    place: Place,
    *,
    key_of: KeyOf,
    options: RebuildOptions | None = None,
    files: Files | None = None,
    progress: Progress = no_progress,
    step: Step = no_step,
) -> LedgersRebuilt:
    """Build index and ledger records anew, and swap them in at the end; the journals are replayed by the next start.

    Raises ToolRefused or OSError, and what `key_of` raises; the old index is then untouched.
    """
    options = options or RebuildOptions()
    facts = journal_facts(place.journals, skip_unreadable=options.skip_unreadable)
    mine = {ledger: fact for ledger, fact in facts.items() if ledger % place.count == place.position}
    fences = old_fences(place.index)
    with new_index(place.index, map_bytes=options.map_bytes, step=step) as fresh:
        logs = entry_logs(place.directory)
        index = fill_index(fresh, logs, options=options, files=files, progress=progress)
        step("scanned")
        records, report = _records(index, mine, key_of)
        put_records(fresh, records)
        put_fences(fresh, fences)
    return report


def _records(index: IndexRebuilt, facts: dict[int, LedgerFacts], key_of: KeyOf) -> tuple[list[Ledger], LedgersRebuilt]:
    records = []
    by_journal = by_metadata = 0
    without = []
    for ledger in sorted({*index.ledgers, *facts}):
        fact = facts.get(ledger, LedgerFacts())
        key = fact.key
        if any(key or b""):
            by_journal += 1
        elif (known := key_of(ledger)) is not None:
            key = known
            by_metadata += 1
        else:
            without.append(ledger)
        records.append(Ledger(ledger, key or b"", fenced=True, limbo=False, lac=fact.lac))
    report = LedgersRebuilt(
        index=index,
        ledgers=len(records),
        keys_of_journal=by_journal,
        keys_of_metadata=by_metadata,
        without_key=tuple(without),
        fenced_in_journal=sum(fact.fenced for fact in facts.values()),
        lacs=sum(bool(record.lac) for record in records),
    )
    return records, report
