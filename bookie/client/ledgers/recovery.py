"""Recovery: determine where a ledger ends and close it, when its writer is gone or must be stopped. Event loop.

1. Set the metadata to IN_RECOVERY, so that the writer cannot change the ensemble any more.
2. Fence a bookie in every ack quorum of the last ensemble, so that no add of the writer can be acknowledged any more.
3. Read entries from the highest LAC on. Every ack quorum has a fenced bookie that holds each acknowledged entry. An
   entry is therefore missing only if so many replicas say so that the others are no ack quorum; errors and missing
   answers prove nothing. Entries behind it may have been read ahead: they are not part of the ledger.
4. Write each entry that was found to its whole write set again, so that all readers see it from now on. The LAC in
   these entries is the one of step 3: if this recovery dies, the next one must not trust what only this one knew.
5. Set the metadata to CLOSED, with the last entry found. If there are several recoveries, the first to do so decides.
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
from bookie.client.ledgers.read_ahead import ReadAhead
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
"""Errors after which reading the metadata again is useless or impossible."""
OF_THE_BOOKIES = (RequestTimeout, UnauthorizedAccess)
"""Errors that are raised as they are, unless another client has closed the ledger in the meantime."""
READING = Flags.FENCE | Flags.HIGH_PRIORITY


async def recover(context: ClientContext, known: Known, digest: Digest) -> None:
    """Close a ledger after its last entry. If another client closes it in the meantime, that counts as success.

    `known` then has the end of the ledger. Raises UnauthorizedAccess, RequestTimeout, NoSuchLedgerMetadata,
    MetadataStoreError, ClientClosed, or else LedgerRecoveryError.
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
            # Earlier segments need no recovery: the last one began after an entry that was acknowledged.
            lac = max(await self._fencing.fence(), self._metadata.segments[-1].first_entry - 1)
            try:
                await self._settle(lac, self._context)
            except NotEnoughBookies as error:
                log.info("ledger %d: recovered entries are written to an ack quorum only: %s", self._ledger, error)
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
        # The writer changes ensembles in its own `Known`, which no one else may see before the ledger is closed.
        own = Known(known.ledger, known.stored)
        writer = LedgerWriter(own, self._digest, context, recovered=Recovered(lac, 0))
        writer.start()
        return writer

    async def _length_at(self, lac: int) -> int:
        """Return the payload bytes up to `lac`, or 0 if that entry is lost or damaged.

        A fenced bookie holds it, unless the last segment is empty: then it is in the one before, where no bookie may
        be left. It is acknowledged, so the ledger can be closed without it.
        """
        if lac < 0:
            return 0
        try:
            return (await self._read(lac)).length
        except ClientClosed:
            raise
        except BookKeeperError as error:
            if lac >= self._metadata.segments[-1].first_entry and not isinstance(error, (DigestMismatch, *MISSING)):
                raise
            log.warning("ledger %d: cannot read the length from last entry %d, using 0: %s", self._ledger, lac, error)
            return 0

    async def _put_again(self, writer: LedgerWriter, first: int) -> int:
        """Read entries from `first` on until one is missing, and write them again. Returns how many were found."""
        reads: deque[asyncio.Task[OpenedEntry]] = deque()
        ahead = ReadAhead(self._context.config)
        following = first
        try:
            while True:
                while len(reads) < ahead.count:
                    reads.append(asyncio.ensure_future(self._read(following)))
                    following += 1
                try:
                    entry = await reads[0]
                except MISSING:
                    break
                reads.popleft()
                ahead.found(len(entry.payload))
                writer.expect_length(entry.length - len(entry.payload))
                await writer.append_async(entry.payload)
        finally:
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
        await writer.flush()
        return writer.last_complete + 1 - first

    async def _read(self, entry: int) -> OpenedEntry:
        """Read an entry from any replica, fencing each that is asked. NoSuchEntry or NoSuchLedger: it was never
        acknowledged.
        """
        metadata, ledger = self._metadata, self._ledger

        def judge(bookie: str, answer: ReadAnswer) -> OpenedEntry:
            if answer.stored is None:
                raise NoSuchEntry(f"ledger {ledger}, entry {entry}: the response of {bookie} lacks it")
            return self._digest.open(answer.stored, ledger, entry)

        # Bookies that are not fenced yet are asked last, since they may hang.
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
        last = writer.last_complete

        def change(metadata: LedgerMetadata) -> LedgerMetadata | None:
            if metadata.state is LedgerState.CLOSED:
                return None
            for first_entry, bookies in writer.changed_segments.items():
                metadata = with_segment(metadata, first_entry, bookies)
            return closed_at(metadata, last, length)

        closed = await change_metadata(self._context.metadata, self._known, change)
        # A fence ends the ledger at the other bookies; those that joined hold only entries of this recovery.
        joined = {bookie for bookies in writer.changed_segments.values() for bookie in bookies}
        joined -= {*self._metadata.segments[-1].bookies}
        if joined:
            self._context.bookies.announce_end(self._ledger, self._digest.master_key, sorted(joined))
        log.info("ledger %d: recovered, its last entry is %d", self._ledger, closed.last_entry)
