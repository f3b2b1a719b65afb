"""Entries that a live bookie lacks, or holds damaged, written to it again from the other replicas. Event loop.

They are written as a recovery writes, as their writer stored them, and read back before they count. What the bookie
does not take, or gives back bad, it shall not keep: another one takes its place in the ensemble, as when it is lost.
"""

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from bookie.client.ledgers.metadata_loop import Known
from bookie.client.ledgers.opening import digest_of
from bookie.client.replication.contracts import World
from bookie.client.replication.copier import Copier
from bookie.client.replication.fragments import fragments
from bookie.client.replication.sources import Sources
from bookie.client.replication.target import Target
from bookie.client.replication.throttle import Throttle
from bookie.client.together import together
from bookie.errors import BookKeeperError, ClientClosed, ReplicationError
from bookie.metadata.ledger_metadata import LedgerMetadata

__all__ = ["Rewriter", "Runs"]

Runs = Mapping[str, Sequence[tuple[int, int]]]
"""First and last entries of runs, by the bookie that is said to lack them."""

LANES = 4
BATCH_ENTRIES = 1000
log = logging.getLogger(__name__)


class Rewriter:
    """Shared by all ledgers of a task: its throttle is for all of them. `replace`: nothing is written to them again."""

    def __init__(self, world: World, copier: Copier, *, replace: bool) -> None:
        self._world = world
        self._copier = copier
        self._replace = replace
        self._throttle = Throttle(world.config.replication_bytes_per_s)

    async def ledger(self, ledger: int, runs: Runs) -> str:
        """`rewritten`, `copied` where a bookie was replaced, `whole` where it is nobody's duty any more, or `open`.

        Entries of the last part of an open ledger are only written again: its writer replaces bookies.
        NoSuchLedgerMetadata; ReplicationError when no replica gives an entry, after all others are done.
        """
        known = Known(ledger, await self._world.metadata.read(ledger))
        last = known.metadata.last_entry
        if not known.closed:
            last = await self._world.ledgers.last_confirmed(ledger, known.metadata)
        wanted = {bookie: list(_due(known.metadata, last, bookie, ranges)) for bookie, ranges in runs.items()}
        wanted = {bookie: pieces for bookie, pieces in wanted.items() if pieces}
        lost: list[str] = []
        refused = [bookie for bookie, pieces in wanted.items() if not await self._write(known, bookie, pieces, lost)]
        state = "rewritten" if len(refused) < len(wanted) else "whole"
        segments = {known.metadata.segment_of(piece.start) for one in refused for piece in wanted[one]}
        firsts = {segment.first_entry for segment in segments}
        bad = [part for part in fragments(known.metadata, last) if part.bookie in refused and part.first in firsts]
        closed = [part for part in bad if part.closed]
        await self._copier.replicate_all(known, closed)
        if lost:
            raise ReplicationError(f"{len(lost)} entries are on no replica; the first: {lost[0]}")
        if len(closed) < len(bad):
            return "open"
        return "copied" if closed else state

    async def _write(self, known: Known, bookie: str, pieces: Iterable[range], lost: list[str]) -> bool:
        """Whether the bookie has them now, those apart that no replica gives: they are told in `lost`."""
        if self._replace or bookie not in self._world.cluster.alive:
            return False
        sources = Sources(self._world, known.ledger, known.metadata)
        key = digest_of(known.metadata, self._world.config).master_key
        target = Target(self._world.bookies, bookie, known.ledger, key)
        written: list[range] = []
        shared = iter(pieces)
        try:
            await together(self._lane(sources, known.metadata, target, shared, written, lost) for _ in range(LANES))
            await target.finish()
            for piece in written:
                await _read_back(sources, bookie, piece)
        except ClientClosed:
            raise
        except BookKeeperError as error:
            log.warning("entries not taken again ledger=%d bookie=%s error=%s", known.ledger, bookie, error)
            return False
        finally:
            target.close()
        return True

    async def _lane(
        self,
        sources: Sources,
        metadata: LedgerMetadata,
        target: Target,
        shared: Iterator[range],
        written: list[range],
        lost: list[str],
    ) -> None:
        doubted = frozenset({target.bookie})
        for piece in shared:
            entry = piece.start
            while entry < piece.stop:
                ensemble = metadata.segment_of(entry).bookies
                try:
                    got = await sources.read(entry, piece.stop - entry, ensemble, doubted)
                except ReplicationError as error:
                    lost.append(str(error))
                    entry += 1
                    continue
                await self._throttle.take(got.nbytes)
                end = entry + got.count
                await target.send(got.records, got.offsets, np.arange(entry, end, dtype=np.int64))
                self._world.counters.entries += got.count
                self._world.counters.bytes += got.nbytes
                written.append(range(entry, end))
                entry = end


async def _read_back(sources: Sources, bookie: str, piece: range) -> None:
    entry = piece.start
    while entry < piece.stop:
        entry += (await sources.ask(bookie, entry, piece.stop - entry)).count


def _due(metadata: LedgerMetadata, last: int, bookie: str, ranges: Sequence[tuple[int, int]]) -> Iterator[range]:
    """What of the runs the bookie has to hold, now: in pieces of one segment, one entry each where they are striped."""
    firsts = [segment.first_entry for segment in metadata.segments]
    striped = metadata.ensemble_size != metadata.write_quorum
    for (first, end), (low, high) in itertools.product(ranges, itertools.pairwise([*firsts, last + 1])):
        for at in range(max(first, low), min(end + 1, high), 1 if striped else BATCH_ENTRIES):
            if bookie in metadata.write_set(at):
                yield range(at, at + 1 if striped else min(at + BATCH_ENTRIES, end + 1, high))
