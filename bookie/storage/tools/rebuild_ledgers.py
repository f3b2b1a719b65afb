"""Rebuilds the complete index of one ledger directory, including ledger records, from entry logs and journals.

It is for an index that is lost, or whose ledger records cannot be read. The entry logs do not say which ledgers were
fenced, so every ledger found is restored as fenced: a writer that is stopped without need opens a new ledger, whereas
one that is let through could lose entries that a recovery has already counted. Limbo and deletions are forgotten;
garbage collection finds deleted ledgers again. Fences of deleted ledgers are carried over as far as they can be read
from the old index.
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
"""Returns a ledger's master key from its metadata (SHA-1 of "ledger" and the password), or None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One ledger directory among those of its bookie."""

    directory: Path
    """The `current` directory of the ledger directory."""
    index: Path
    journals: Sequence[Path]
    """The `current` directories of all journals of the bookie."""
    position: int = 0
    """Its index in the configured order of ledger directories."""
    count: int = 1
    """The number of ledger directories: ledger L is in the one at position L modulo this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgersRebuilt:
    """The new index: what the logs contributed, and where the keys came from."""

    index: IndexRebuilt
    ledgers: int
    keys_of_journal: int
    keys_of_metadata: int
    without_key: tuple[int, ...]
    """Ledgers that accept the first key that a client sends."""
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
    """Build an index and ledger records, and replace the old index with them at the end. The next start replays the
    journals.

    Raises ToolRefused or OSError, and exceptions of `key_of`; the old index is then unchanged.
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
