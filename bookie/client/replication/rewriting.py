"""Write entries again to a live bookie that lacks them, or holds them damaged or different from the others. Event
loop.

The entries come from the other replicas. They are sent as recovery adds, as their writer stored them, and are read
back before they count. If the bookie refuses them, or returns them damaged, it is replaced in the ensemble as if it
were lost.
"""

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bookie.client.event_loop.together import together
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.ledgers.opening import digest_of
from bookie.client.ledgers.throttle import RateLimit
from bookie.client.replication.contracts import Environment
from bookie.client.replication.copier import Copier
from bookie.client.replication.fragments import fragments
from bookie.client.replication.sources import Sources
from bookie.client.replication.target import Target
from bookie.errors import BookKeeperError, ClientClosed, ReplicationError
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.plural import counted

__all__ = ["Rewriter", "Run", "Runs"]


class Run(NamedTuple):
    """Entries `first` to `last` that a bookie lacks, or returns damaged.

    With `differs` their digests are valid, but they differ from the other replicas, so they must not be copied from
    there.
    """

    first: int
    last: int
    differs: bool = False


Runs = Mapping[str, Sequence[Run]]
"""The runs of entries that each bookie lacks or has wrong, by its id."""
Written = tuple[int, NDArray[np.int64]]
"""The first of some entries that were sent, and the `lengths` of all of them."""

SENDERS = 4
BATCH_ENTRIES = 1000
log = logging.getLogger(__name__)


class Rewriter:
    """Writes entries again. One instance serves all ledgers of a task, so that its throttle applies to all of them.

    With `replace` nothing is written again; the bookies are replaced.
    """

    def __init__(self, environment: Environment, copier: Copier, *, replace: bool) -> None:
        self._environment = environment
        self._copier = copier
        self._replace = replace
        self._throttle = RateLimit(environment.config.replication_bytes_per_s)

    async def ledger(self, ledger: int, runs: Runs) -> str:
        """Repair one ledger.

        Returns `rewritten`, `copied` if a bookie was replaced, `complete` if no bookie must hold the entries any more,
        or `open`. Entries of the last part of an open ledger are only written again, since its writer replaces
        bookies. Raises NoSuchLedgerMetadata, and ReplicationError if no replica has an entry, after all others are
        done.
        """
        known = Known(ledger, await self._environment.metadata.read(ledger))
        last = known.metadata.last_entry
        if not known.closed:
            last = await self._environment.ledgers.last_confirmed(ledger, known.metadata)
        differ = {bookie: [run for run in some if run.differs] for bookie, some in runs.items()}
        wanted = {bookie: list(_due(known.metadata, last, bookie, some, differ)) for bookie, some in runs.items()}
        wanted = {bookie: pieces for bookie, pieces in wanted.items() if pieces}
        lost: list[str] = []
        refused = [
            bookie for bookie, pieces in wanted.items() if not await self._write(known, bookie, pieces, differ, lost)
        ]
        state = "rewritten" if len(refused) < len(wanted) else "complete"
        segments = {known.metadata.segment_of(piece.start) for one in refused for piece in wanted[one]}
        firsts = {segment.first_entry for segment in segments}
        bad = [part for part in fragments(known.metadata, last) if part.bookie in refused and part.first in firsts]
        closed = [part for part in bad if part.closed]
        await self._copier.replicate_all(known, closed)
        if lost:
            entries = counted(len(lost), "entry")
            raise ReplicationError(f"no valid replica is left of {entries}; the first one: {lost[0]}")
        if len(closed) < len(bad):
            return "open"
        return "copied" if closed else state

    async def _write(self, known: Known, bookie: str, pieces: Iterable[range], differ: Runs, lost: list[str]) -> bool:
        """Write entries again. Returns whether the bookie has them now; entries without any replica are added to
        `lost`.
        """
        if self._replace or bookie not in self._environment.cluster.alive:
            return False
        sources = Sources(self._environment, known.ledger, known.metadata)
        key = digest_of(known.metadata, self._environment.config).master_key
        target = Target(self._environment.bookies, bookie, known.ledger, key)
        written: list[Written] = []
        shared = iter(pieces)
        try:
            work = known.metadata, target, shared, differ
            await together(self._sender(sources, work, written, lost) for _ in range(SENDERS))
            await target.finish()
            for first, lengths in written:
                await _read_back(sources, bookie, first, lengths)
            if known.closed or bookie not in known.metadata.segments[-1].bookies:
                self._environment.bookies.announce_end(known.ledger, key, (bookie,))
        except ClientClosed:
            raise
        except BookKeeperError as error:
            log.warning("cannot write entries again ledger=%d bookie=%s error=%s", known.ledger, bookie, error)
            return False
        finally:
            target.close()
        return True

    async def _sender(
        self,
        sources: Sources,
        work: tuple[LedgerMetadata, Target, Iterator[range], Runs],
        written: list[Written],
        lost: list[str],
    ) -> None:
        metadata, target, shared, differ = work
        doubted = frozenset({target.bookie})
        for piece in shared:
            barred = [bookie for bookie, runs in differ.items() if any(_meet(run, piece) for run in runs)]
            entry = piece.start
            while entry < piece.stop:
                ensemble = metadata.segment_of(entry).bookies
                try:
                    got = await sources.read(entry, piece.stop - entry, ensemble, doubted, barred)
                except ReplicationError as error:
                    lost.append("" if lost else str(error))  # only the first one is shown, and there may be millions
                    entry += 1
                    continue
                await self._throttle.take(got.nbytes)
                end = entry + got.count
                await target.send(got.records, got.offsets, np.arange(entry, end, dtype=np.int64))
                self._environment.counters.entries += got.count
                self._environment.counters.bytes += got.nbytes
                written.append((entry, got.lengths))
                entry = end


async def _read_back(sources: Sources, bookie: str, first: int, lengths: NDArray[np.int64]) -> None:
    at = 0
    while at < len(lengths):
        got = await sources.ask(bookie, first + at, len(lengths) - at)
        if (got.lengths != lengths[at : at + got.count]).any():
            raise ReplicationError(f"entries from {first + at} on are not as they were written")
        at += got.count


def _due(metadata: LedgerMetadata, last: int, bookie: str, runs: Sequence[Run], differ: Runs) -> Iterator[range]:
    """Yield those parts of the runs that the bookie must hold now, each within one segment.

    A part is one entry where entries are striped, or where some bookie has one that differs.
    """
    firsts = [segment.first_entry for segment in metadata.segments]
    striped = metadata.ensemble_size != metadata.write_quorum
    for run, (low, high) in itertools.product(runs, itertools.pairwise([*firsts, last + 1])):
        ids = range(max(run.first, low), min(run.last + 1, high))
        alone = striped or any(_meet(one, ids) for some in differ.values() for one in some)
        for at in ids[:: 1 if alone else BATCH_ENTRIES]:
            if bookie in metadata.write_set(at):
                yield range(at, at + 1 if alone else min(at + BATCH_ENTRIES, ids.stop))


def _meet(run: Run, entries: range) -> bool:
    """Return whether a run and a range have an entry in common."""
    return run.first < entries.stop and entries.start <= run.last
