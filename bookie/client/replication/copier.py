"""Copy the fragments of a segment to other bookies, and then change the metadata. Event loop.

Entries are copied as their writer stored them, after their digests were verified. A target gets exactly the entries
of the place that it takes over. The metadata are changed by compare-and-set, after every target has acknowledged
every entry; any failure before leaves them as they were.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bookie.client.event_loop.together import together
from bookie.client.ledgers.metadata_loop import Known, change_metadata
from bookie.client.ledgers.opening import digest_of
from bookie.client.ledgers.throttle import RateLimit
from bookie.client.replication.contracts import Environment
from bookie.client.replication.fragments import Fragment, holds
from bookie.client.replication.sources import Sources, Verified
from bookie.client.replication.target import Target
from bookie.client.replication.targets import Targets
from bookie.errors import BookKeeperError, ClientClosed, MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment

__all__ = ["Copier"]

BATCHES_IN_FLIGHT = 4
BATCH_ENTRIES = 1000
"""A batch is limited by its size in bytes; this limits how much is requested again from a bookie that has fewer
entries.
"""


class Copier:
    """Copies fragments. One instance serves all ledgers of a worker, so that its throttle applies to all of them."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._bookies = environment.bookies
        self._config = environment.config
        self._counters = environment.counters
        self._targets = Targets(environment.placement, environment.bookies, environment.config, environment.counters)
        self._throttle = RateLimit(environment.config.replication_bytes_per_s)

    async def replicate_all(self, known: Known, bad: Sequence[Fragment]) -> None:
        """Replicate the fragments of all segments. A segment that fails stops no other; the first error is raised in
        the end.

        ClientClosed and NoSuchLedgerMetadata are raised at once.
        """
        failures: list[BookKeeperError] = []
        for _, parts in itertools.groupby(bad, key=lambda part: part.first):
            try:
                await self.replicate(known, list(parts))
            except (ClientClosed, NoSuchLedgerMetadata):
                raise
            except BookKeeperError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    async def replicate(self, known: Known, bad: Sequence[Fragment]) -> None:
        """Copy fragments of one segment to new bookies, and put these into the metadata.

        Raises ReplicationError if no replica has a valid entry, NotEnoughBookies if there are no targets, and errors
        of a target. The metadata are then unchanged.
        """
        metadata = known.metadata
        segment = next(one for one in metadata.segments if one.first_entry == bad[0].first)
        doubted = frozenset(part.bookie for part in bad)
        chosen = await self._targets.choose(metadata, segment.bookies, bad, doubted)
        key = digest_of(metadata, self._config).master_key
        targets = {
            part.index: Target(self._bookies, chosen[part.index], known.ledger, key)
            for part in bad
            if part.stored is not None
        }
        sources = Sources(self._environment, known.ledger, metadata)
        try:
            await self._copy(sources, metadata, segment, targets, bad[0].last, doubted)
            for target in targets.values():
                await target.finish()
        finally:
            for target in targets.values():
                target.close()
        await self._take_over(known, segment, chosen, bad)
        self._counters.fragments += len(bad)
        self._bookies.announce_end(known.ledger, key, tuple(chosen.values()))

    async def _copy(
        self,
        sources: Sources,
        metadata: LedgerMetadata,
        segment: Segment,
        targets: dict[int, Target],
        last: int,
        doubted: frozenset[str],
    ) -> None:
        """Send every entry to every target that must hold it, with a bounded number of reads in flight."""
        size, quorum = metadata.ensemble_size, metadata.write_quorum
        wanted = range(segment.first_entry, last + 1)
        if sources.batched(segment.bookies, doubted):
            step, senders = BATCH_ENTRIES, BATCHES_IN_FLIGHT
        else:
            step, senders = 1, max(self._config.rereplication_entries, 1)

        def pieces() -> Iterator[range]:
            for start in wanted[::step]:
                yield range(start, min(start + step, wanted.stop))

        async def work(shared: Iterator[range]) -> None:
            for piece in shared:
                takers = [t for i, t in targets.items() if size == quorum or holds(i, piece.start, size, quorum)]
                entry = piece.start if takers else piece.stop
                while entry < piece.stop:
                    got = await sources.read(entry, piece.stop - entry, segment.bookies, doubted)
                    await self._send(got, takers)
                    entry += got.count

        shared = pieces()
        await together(work(shared) for _ in range(min(senders, len(wanted))))

    async def _send(self, got: Verified, takers: Sequence[Target]) -> None:
        entries = np.arange(got.first, got.first + got.count, dtype=np.int64)
        for target in takers:
            await self._throttle.take(got.nbytes)
            await target.send(got.records, got.offsets, entries)
            self._counters.entries += got.count
            self._counters.bytes += got.nbytes

    async def _take_over(self, known: Known, segment: Segment, chosen: dict[int, str], bad: Sequence[Fragment]) -> None:
        """L11: change the metadata only now. Raises MetadataVersionConflict if another client changed them
        differently.

        They are read again first. If the ledger was deleted during the copy, and its id was used again, the version
        alone may not tell.
        """
        known.learn(await self._environment.metadata.read(known.ledger))
        lost = {part.index: part.bookie for part in bad}

        def taken_over(metadata: LedgerMetadata) -> LedgerMetadata | None:
            now = next((one for one in metadata.segments if one.first_entry == segment.first_entry), None)
            if now is None or any(now.bookies[index] not in {lost[index], chosen[index]} for index in chosen):
                raise MetadataVersionConflict(
                    f"ledger {known.ledger}: another client changed the segment at entry {segment.first_entry}"
                    " while it was copied; the copies are not used"
                )
            bookies = tuple(chosen.get(index, bookie) for index, bookie in enumerate(now.bookies))
            if bookies == now.bookies:
                return None
            changed = Segment(segment.first_entry, bookies)
            return replace(metadata, segments=tuple(changed if one is now else one for one in metadata.segments))

        await change_metadata(self._environment.metadata, known, taken_over)
