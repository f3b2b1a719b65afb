"""Recovery: settling where a ledger ends when its writer is gone, or must be kept from going on. Event loop.

1. The metadata says IN_RECOVERY: its writer cannot change the ensemble any more.
2. Every ack quorum of the last ensemble has a bookie that is fenced: its writer can have nothing acknowledged any more.
3. From the highest LAC on, entries are read forward. One that was acknowledged is held by a fenced bookie of every
   ack quorum, so it is missing only when so many replicas say so that the others are no ack quorum; errors and
   silence say nothing.
4. What is found is put again to its whole write set, so that everybody reads it from now on.
5. The metadata says CLOSED, with the last entry found. Of several recoveries the first that gets there decides.
"""

import asyncio
import logging
from collections import deque
from dataclasses import replace

from bookie.client.entries.digest import Digest, OpenedEntry
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.fencing import Fencing
from bookie.client.ledgers.metadata_loop import Known, change_metadata, closed_at, with_segment
from bookie.client.ledgers.race import MISSING, Patience, Race
from bookie.client.ledgers.writer import LedgerWriter, Recovered
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.client.wire.flags import Flags
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    DigestMismatch,
    LedgerRecoveryError,
    MetadataStoreError,
    NoSuchEntry,
    NoSuchLedgerMetadata,
    NotEnoughBookies,
    RequestTimeout,
    UnauthorizedAccess,
    ZooKeeperError,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["recover"]

log = logging.getLogger(__name__)

OF_THE_STORE = (ClientClosed, MetadataStoreError, NoSuchLedgerMetadata, ZooKeeperError)
"""The metadata need not be looked at again, or cannot be."""
OF_THE_BOOKIES = (RequestTimeout, UnauthorizedAccess)
"""Told as they are, unless somebody else closed the ledger meanwhile."""
READING = Flags.FENCE | Flags.HIGH_PRIORITY


async def recover(context: ClientContext, known: Known, digest: Digest) -> None:
    """Close a ledger behind its last entry. What somebody else closed meanwhile is as good: `known` tells the end.

    UnauthorizedAccess, RequestTimeout, NoSuchLedgerMetadata, MetadataStoreError, ClientClosed, else
    LedgerRecoveryError.
    """
    if (await change_metadata(context.metadata, known, _recovering)).state is LedgerState.CLOSED:
        return
    try:
        await _Recovery(context, known, digest).run()
    except OF_THE_STORE:
        raise
    except BookKeeperError as error:
        known.learn(await context.metadata.read(known.ledger))
        if known.closed:
            return
        if isinstance(error, OF_THE_BOOKIES):
            raise
        raise LedgerRecoveryError(f"ledger {known.ledger} could not be recovered: {error}") from error


def _recovering(metadata: LedgerMetadata) -> LedgerMetadata | None:
    return replace(metadata, state=LedgerState.IN_RECOVERY) if metadata.state is LedgerState.OPEN else None


class _Recovery:
    def __init__(self, context: ClientContext, known: Known, digest: Digest) -> None:
        self._context = context
        self._known = known
        self._ledger = known.ledger
        self._digest = digest
        self._metadata = known.metadata
        self._fencing = Fencing(context.bookies, known.ledger, known.metadata, digest)
        config = context.config
        self._patience = Patience(
            config.speculative_read_first_s, config.speculative_read_max_s, config.speculative_read_backoff
        )

    async def run(self) -> None:
        try:
            # Earlier segments are settled: the last one began behind an entry that was acknowledged.
            lac = max(await self._fencing.fence(), self._metadata.segments[-1].first_entry - 1)
            try:
                await self._settle(lac, self._context)
            except NotEnoughBookies as error:
                log.info("ledger %d: an ack quorum must do for what is put again: %s", self._ledger, error)
                config = replace(self._context.config, delay_ensemble_change=True)
                await self._settle(lac, replace(self._context, config=config))
        finally:
            await self._fencing.close()

    async def _settle(self, lac: int, context: ClientContext) -> None:
        writer = self._writer(lac, context)
        try:
            found = await self._put_again(writer, lac + 1)
            length = writer.confirmed_length if found else await self._length_at(lac)
            await self._close(writer, length)
        finally:
            writer.stop()

    def _writer(self, lac: int, context: ClientContext) -> LedgerWriter:
        known = self._known
        # It changes ensembles in what it knows, which nobody else may see before the ledger is closed.
        own = Known(known.ledger, known.stored)
        writer = LedgerWriter(own, self._digest, context, recovered=Recovered(lac, 0))
        writer.start()
        return writer

    async def _length_at(self, lac: int) -> int:
        """Payload bytes up to `lac`, which a fenced bookie holds. An entry that is lost keeps nobody from closing."""
        if lac < 0:
            return 0
        try:
            return (await self._read(lac)).length
        except (DigestMismatch, *MISSING) as error:
            log.warning("ledger %d: its last entry %d tells no length, taken for 0: %s", self._ledger, lac, error)
            return 0

    async def _put_again(self, writer: LedgerWriter, first: int) -> int:
        """Read forward from `first` until an entry is missing, and write what is found: how many."""
        reads: deque[asyncio.Task[OpenedEntry]] = deque()
        following = first
        try:
            while True:
                while len(reads) < self._context.config.recovery_read_batch:
                    reads.append(asyncio.ensure_future(self._read(following)))
                    following += 1
                try:
                    entry = await reads[0]
                except MISSING:
                    break
                reads.popleft()
                writer.expect_length(entry.length - len(entry.payload))
                await writer.append_async(entry.payload)
        finally:
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
        await writer.flush()
        return writer.last_add_confirmed + 1 - first

    async def _read(self, entry: int) -> OpenedEntry:
        """From any replica, fencing whoever is asked. NoSuchEntry, NoSuchLedger: it was never acknowledged."""
        metadata, ledger = self._metadata, self._ledger

        def judge(bookie: str, answer: ReadAnswer) -> OpenedEntry:
            if answer.stored is None:
                raise NoSuchEntry(f"ledger {ledger}, entry {entry}: {bookie} answered without it")
            return self._digest.open(answer.stored, ledger, entry)

        # Who did not answer so far is asked last: it may be hung.
        replicas = sorted(metadata.write_set(entry), key=lambda bookie: bookie not in self._fencing.fenced)
        return await Race(
            replicas,
            lambda bookie: self._context.bookies.read(
                bookie, ledger, entry, flags=READING, master_key=self._digest.master_key
            ),
            judge,
            self._patience,
            enough_missing=metadata.write_quorum - metadata.ack_quorum + 1,
        ).run()

    async def _close(self, writer: LedgerWriter, length: int) -> None:
        last = writer.last_add_confirmed

        def change(metadata: LedgerMetadata) -> LedgerMetadata | None:
            if metadata.state is LedgerState.CLOSED:
                return None
            for first_entry, bookies in writer.changed_segments.items():
                metadata = with_segment(metadata, first_entry, bookies)
            return closed_at(metadata, last, length)

        closed = await change_metadata(self._context.metadata, self._known, change)
        log.info("ledger %d: recovered, its last entry is %d", self._ledger, closed.last_entry)
