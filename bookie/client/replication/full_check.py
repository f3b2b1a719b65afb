"""Find holes inside the fragments of live bookies, by their own lists of entries, and fill them. Event loop.

The check of all ledgers reads the first and the last entry of a fragment, and so do Java's workers. A hole between
them is found here: every bookie of a ledger lists the entries that it holds, and what it lacks is written to it again
from the other replicas, under the ledger's lock. No mark is needed, which a Java worker would remove without having
seen the hole. Ledgers are visited one after the other at a slow pace.
"""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bookie.availability import AvailableEntries, encode
from bookie.client.ledgers.throttle import RateLimit
from bookie.client.replication.contracts import Environment
from bookie.client.replication.fragments import Fragment, fragments, held
from bookie.client.replication.restoring import rewrite
from bookie.client.replication.rewriting import Run
from bookie.client.replication.walking import each_ledger
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    IllegalOperation,
    MetadataStoreError,
    NoSuchEntry,
    NoSuchLedger,
    RequestTimeout,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["FullCheck"]

ENTRIES_AT_ONCE = 1 << 20
NOTHING = AvailableEntries.decode(encode(()))
log = logging.getLogger(__name__)


class FullCheck:
    """The check. `run` visits every ledger once."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._counters = environment.counters
        self._pace = RateLimit(environment.settings.full_check_lists_per_s)
        self._unlisted: set[str] = set()

    async def run(self) -> None:
        """Find and fill the holes of all ledgers. Raises MetadataStoreError or ClientClosed."""
        self._unlisted = set()
        filled = self._counters.holes_filled

        async def visit(ledger: int, metadata: LedgerMetadata) -> None:
            try:
                holes = await self.holes(ledger, metadata)
            except (ClientClosed, MetadataStoreError):
                raise
            except BookKeeperError as error:
                self._counters.checks_failed += 1
                log.warning("cannot check ledger for holes ledger=%d error=%s", ledger, error)
                return
            if holes:
                await self._fill(ledger, holes)

        await each_ledger(self._environment.metadata, visit, at_once=1)
        log.info("all ledgers checked for holes filled=%d", self._counters.holes_filled - filled)

    async def holes(self, ledger: int, metadata: LedgerMetadata) -> dict[str, list[Run]]:
        """Return the entries that live bookies lack. The last segment of an open ledger is left to its writer.

        Raises the errors of a bookie that refuses to list its entries. A bookie that does not support lists is left
        out.
        """
        closed = metadata.state is LedgerState.CLOSED
        last = metadata.last_entry if closed else metadata.segments[-1].first_entry - 1
        parts = [part for part in fragments(metadata, last) if part.closed and part.stored is not None]
        found: dict[str, list[Run]] = {}
        for bookie in dict.fromkeys(part.bookie for part in parts):
            listed = await self._listed(ledger, bookie)
            if listed is None:
                continue
            runs = [run for part in parts if part.bookie == bookie for run in _lacking(part, listed, metadata)]
            if runs:
                found[bookie] = runs
        return found

    async def _listed(self, ledger: int, bookie: str) -> AvailableEntries | None:
        if bookie not in self._environment.cluster.alive or bookie in self._unlisted:
            return None
        await self._pace.take()
        try:
            return await self._environment.bookies.list_entries(bookie, ledger)
        except (NoSuchLedger, NoSuchEntry):
            return NOTHING
        except (RequestTimeout, IllegalOperation) as error:
            self._unlisted.add(bookie)
            log.warning("bookie does not list its entries, so no hole in it is found bookie=%s error=%s", bookie, error)
            return None

    async def _fill(self, ledger: int, holes: dict[str, list[Run]]) -> None:
        lacking = sum(run.last - run.first + 1 for runs in holes.values() for run in runs)
        self._counters.holes_found += lacking
        log.warning("bookies lack entries ledger=%d entries=%d bookies=%s", ledger, lacking, ",".join(sorted(holes)))
        async for row in rewrite(self._environment, {ledger: holes}, replace=False):
            self._counters.holes_filled += row.entries
            if row.error or row.state not in {"rewritten", "copied", "complete", "deleted"}:
                self._counters.checks_failed += 1
                log.warning("holes are not filled ledger=%d state=%s error=%s", ledger, row.state, row.error)


def _lacking(part: Fragment, listed: AvailableEntries, metadata: LedgerMetadata) -> list[Run]:
    """Return the entries of a fragment that are not listed."""
    runs: list[Run] = []
    for start in range(part.first, part.last + 1, ENTRIES_AT_ONCE):
        entries = np.arange(start, min(start + ENTRIES_AT_ONCE, part.last + 1), dtype=np.int64)
        runs += _runs(entries[held(part, entries, metadata) & ~listed.mask(entries)])
    return runs


def _runs(entries: NDArray[np.int64]) -> Sequence[Run]:
    pieces = np.split(entries, np.flatnonzero(np.diff(entries) > 1) + 1)
    return [Run(int(piece[0]), int(piece[-1])) for piece in pieces if len(piece)]
