"""The checks of an auditor. Each visits every ledger once, and marks those with too few replicas. Event loop."""

import logging
from collections.abc import Collection

import numpy as np

from bookie.availability import AvailableEntries
from bookie.client.contracts import Adherence
from bookie.client.replication.checker import LedgerChecker
from bookie.client.replication.contracts import Environment
from bookie.client.replication.fragments import fragments, held
from bookie.client.replication.walking import each_ledger
from bookie.errors import BookKeeperError, ClientClosed, MetadataStoreError, NoSuchEntry, NoSuchLedger
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["Audits"]

ENTRIES_AT_ONCE = 1 << 20
LISTS_AT_ONCE = 20
log = logging.getLogger(__name__)


class Audits:
    """The checks of one auditor."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._metadata = environment.metadata
        self._cluster = environment.cluster
        self._settings = environment.settings
        self._counters = environment.counters
        self._checker = LedgerChecker(environment)

    async def bookies_named(self) -> frozenset[str]:
        """Return every bookie that the metadata of some ledger name."""
        named: set[str] = set()

        async def visit(_ledger: int, metadata: LedgerMetadata) -> None:
            named.update(_members(metadata))

        await each_ledger(self._metadata, visit, at_once=self._settings.ledgers_at_once)
        return frozenset(named)

    async def mark_ledgers_of(self, lost: frozenset[str]) -> int:
        """Mark every ledger that has a bookie of `lost`, and return their number."""
        count = 0

        async def visit(ledger: int, metadata: LedgerMetadata) -> None:
            nonlocal count
            missing = lost & _members(metadata)
            if missing:
                count += 1
                await self._mark(ledger, sorted(missing))

        await each_ledger(self._metadata, visit, at_once=self._settings.ledgers_at_once)
        return count

    async def check_all_ledgers(self) -> None:
        """Ask the bookies of each ledger for entries that they should hold, and mark ledgers that lack some."""
        lacking = 0

        async def visit(ledger: int, metadata: LedgerMetadata) -> None:
            nonlocal lacking
            try:
                closed = metadata.state is LedgerState.CLOSED
                lac = (
                    metadata.last_entry if closed else await self._environment.ledgers.last_confirmed(ledger, metadata)
                )
                bad = await self._checker.check(ledger, metadata, lac)
            except (ClientClosed, MetadataStoreError):
                raise
            except BookKeeperError as error:
                self._counters.checks_failed += 1
                log.warning("cannot check ledger ledger=%d error=%s", ledger, error)
                return
            self._counters.ledgers_checked += 1
            lacking += len(bad)
            if bad:
                await self._mark(ledger, list(dict.fromkeys(part.bookie for part in bad)))

        await each_ledger(self._metadata, visit, at_once=self._settings.ledgers_at_once)
        self._counters.fragments_lacking = lacking
        log.info("all ledgers checked fragments_lacking=%d", lacking)

    async def check_placement(self) -> None:
        """Count the segments of closed ledgers by how well they satisfy the placement policy.

        If so configured, ledgers that violate it are marked.
        """
        misplaced = soft = 0

        async def visit(ledger: int, metadata: LedgerMetadata) -> None:
            nonlocal misplaced, soft
            if metadata.state is not LedgerState.CLOSED:
                return
            kept = [
                self._environment.placement.adheres(segment.bookies, metadata.write_quorum, metadata.ack_quorum)
                for segment in metadata.segments
            ]
            misplaced += kept.count(Adherence.FAIL)
            soft += kept.count(Adherence.MEETS_SOFT)
            if Adherence.FAIL in kept and self._settings.repair_placement:
                await self._mark(ledger, [])

        await each_ledger(self._metadata, visit, at_once=self._settings.ledgers_at_once)
        self._counters.segments_misplaced, self._counters.segments_placed_softly = misplaced, soft
        log.info("placement checked misplaced=%d soft=%d", misplaced, soft)

    async def check_replicas(self) -> None:
        """Count closed ledgers that have entries with too few replicas, according to the bookies' own lists of
        entries.
        """
        none = below_ack = below_write = 0

        async def visit(ledger: int, metadata: LedgerMetadata) -> None:
            nonlocal none, below_ack, below_write
            if metadata.state is not LedgerState.CLOSED or metadata.last_entry < 0:
                return
            fewest = await self._fewest_replicas(ledger, metadata)
            none += fewest == 0
            below_ack += fewest < metadata.ack_quorum
            below_write += fewest < metadata.write_quorum

        await each_ledger(self._metadata, visit, at_once=min(self._settings.ledgers_at_once, LISTS_AT_ONCE))
        self._counters.ledgers_without_replica = none
        self._counters.ledgers_below_ack_quorum = below_ack
        self._counters.ledgers_below_write_quorum = below_write
        log.info("replicas checked none=%d below_ack_quorum=%d below_write_quorum=%d", none, below_ack, below_write)

    async def _fewest_replicas(self, ledger: int, metadata: LedgerMetadata) -> int:
        """Return the number of replicas of the entry that has the fewest."""
        lists: dict[str, AvailableEntries | None] = {}
        parts = fragments(metadata, metadata.last_entry)
        for part in parts:
            if part.bookie not in lists:
                lists[part.bookie] = await self._entries_on(ledger, part.bookie)
        fewest = metadata.write_quorum
        for first in dict.fromkeys(part.first for part in parts):
            here = [part for part in parts if part.first == first]
            for start in range(first, here[0].last + 1, ENTRIES_AT_ONCE):
                entries = np.arange(start, min(start + ENTRIES_AT_ONCE, here[0].last + 1), dtype=np.int64)
                count = np.zeros(len(entries), np.int32)
                for part in here:
                    listed = lists[part.bookie]
                    if listed is not None:
                        count += listed.mask(entries) & held(part, entries, metadata)
                fewest = min(fewest, int(count.min()))
        return fewest

    async def _entries_on(self, ledger: int, bookie: str) -> AvailableEntries | None:
        if bookie not in self._cluster.alive:
            return None
        try:
            return await self._environment.bookies.list_entries(bookie, ledger)
        except (NoSuchLedger, NoSuchEntry):
            return None
        except ClientClosed:
            raise
        except BookKeeperError as error:
            self._counters.checks_failed += 1
            log.warning("cannot list the entries of a ledger ledger=%d bookie=%s error=%s", ledger, bookie, error)
            return None

    async def _mark(self, ledger: int, missing: Collection[str]) -> None:
        self._counters.marks += 1
        await self._environment.queue.mark(
            ledger, missing, self._environment.epoch_ms() if self._settings.mark_time_stored else None
        )


def _members(metadata: LedgerMetadata) -> set[str]:
    return {bookie for segment in metadata.segments for bookie in segment.bookies}
