"""Close a ledger by force, where a recovery cannot end because bookies that it needs are gone for good. Event loop.

A recovery waits for ever if it cannot fence enough bookies, or if no replica tells whether an entry exists. An
operator who knows that these bookies never come back may close the ledger after the last entry that a bookie still
has. Everything else that was acknowledged is lost, so a plan says beforehand what that is.
"""

import asyncio
import logging
from dataclasses import dataclass, replace

from bookie.client.entries.digest import OpenedEntry
from bookie.client.ledgers.coverage import Coverage
from bookie.client.ledgers.metadata_loop import Known, change_metadata, closed_at
from bookie.client.ledgers.opening import digest_of
from bookie.client.ledgers.race import MISSING
from bookie.client.replication.contracts import Environment
from bookie.client.replication.sources import Sources
from bookie.client.wire.flags import LAST_ENTRY, Flags
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    DigestMismatch,
    IllegalOperation,
    LedgerRecoveryError,
    ReplicationError,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["close_by_force", "Loss", "what_is_lost"]

READS_IN_FLIGHT = 100
READING = Flags.FENCE | Flags.HIGH_PRIORITY
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loss:
    """What closing one ledger by force means.

    Attributes:
        ledger: The id of the ledger.
        gone: The bookies of the last ensemble that are not registered.
        last_confirmed: The highest LAC that a bookie knows; entries up to it were acknowledged.
        last_entry: The last entry that the closed ledger has, -1 if it is empty.
        length: Payload bytes up to and including that entry.
        lost: The entries up to `last_confirmed` and `last_entry`, as ranges from first to last, of which no bookie has
            a valid replica. Those of earlier segments are looked at only if nothing is left of the last one.
        more_possible: Whether entries after these may have been acknowledged by bookies that are gone.
    """

    ledger: int
    gone: tuple[str, ...]
    last_confirmed: int
    last_entry: int
    length: int
    lost: tuple[tuple[int, int], ...]
    more_possible: bool


async def what_is_lost(environment: Environment, ledger: int) -> Loss:
    """Return what would be lost, and change nothing.

    Raises IllegalOperation if the ledger is closed, if a recovery could close it, or if a registered bookie does not
    answer: it is not gone for good.
    """
    known = Known(ledger, await environment.metadata.read(ledger))
    _refuse_closed(known)
    return await _Look(environment, known, fence=False).loss()


async def close_by_force(environment: Environment, confirmed: Loss) -> Loss:
    """Fence the ledger on the bookies that are left, close it after the last entry found, and mark it.

    Auto-recovery then copies what is left to other bookies. Raises the errors of `what_is_lost`, and
    LedgerRecoveryError if more is lost than was `confirmed`; the ledger is then fenced and not closed.
    """
    known = Known(confirmed.ledger, await environment.metadata.read(confirmed.ledger))
    _refuse_closed(known)
    await change_metadata(environment.metadata, known, _recovering)
    _refuse_closed(known)
    loss = await _Look(environment, known, fence=True).loss()
    if loss.last_entry < confirmed.last_entry or not set(_each(loss.lost)) <= set(_each(confirmed.lost)):
        raise LedgerRecoveryError(
            f"ledger {confirmed.ledger}: more is lost than was confirmed: it would end at entry {loss.last_entry}"
            f" instead of {confirmed.last_entry}; look at it again"
        )

    def close(metadata: LedgerMetadata) -> LedgerMetadata | None:
        if metadata.state is LedgerState.CLOSED:
            raise IllegalOperation(f"ledger {known.ledger}: another client closed it at entry {metadata.last_entry}")
        return closed_at(metadata, loss.last_entry, loss.length)

    await change_metadata(environment.metadata, known, close)
    log.warning(
        "ledger was closed by force ledger=%d last_entry=%d lost=%s gone=%s",
        known.ledger,
        loss.last_entry,
        list(loss.lost),
        ",".join(loss.gone),
    )
    at_ms = environment.epoch_ms() if environment.settings.mark_time_stored else None
    await environment.queue.mark(known.ledger, loss.gone, at_ms)
    return loss


def _refuse_closed(known: Known) -> None:
    if known.closed:
        raise IllegalOperation(f"ledger {known.ledger} is closed already, at entry {known.metadata.last_entry}")


def _recovering(metadata: LedgerMetadata) -> LedgerMetadata | None:
    return replace(metadata, state=LedgerState.IN_RECOVERY) if metadata.state is LedgerState.OPEN else None


class _Look:
    """One look at a ledger: which bookies answer, and which entries they have. With `fence`, each is fenced first."""

    def __init__(self, environment: Environment, known: Known, *, fence: bool) -> None:
        self._bookies = environment.bookies
        self._alive = environment.cluster.alive
        self._ledger = known.ledger
        self._metadata = known.metadata
        self._digest = digest_of(known.metadata, environment.config)
        self._sources = Sources(environment, known.ledger, known.metadata)
        self._flags = READING if fence else Flags.NONE
        self._gate = asyncio.Semaphore(READS_IN_FLIGHT)

    async def loss(self) -> Loss:
        """Return what is lost. Raises IllegalOperation."""
        metadata = self._metadata
        segment = metadata.segments[-1]
        gone = tuple(bookie for bookie in segment.bookies if bookie not in self._alive)
        coverage = Coverage(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        answers = await asyncio.gather(*(self._last(one) for one in segment.bookies if one not in gone))
        for index, bookie in enumerate(segment.bookies):
            if bookie not in gone:
                coverage.take(index)
        lac = max([segment.first_entry - 1, *(one.lac for one in answers if one)])
        end, possible = await self._end(lac, max([lac, *(one.entry for one in answers if one)]))
        last, sure = (None, True) if end < 0 else await self._read(end)
        if coverage.holds and sure and not possible:
            raise IllegalOperation(
                f"ledger {self._ledger}: a recovery can close it; open it with recovery, for example by: bkadmin"
                f" readledger {self._ledger} -r"
            )
        missing: list[int] = []
        while last is None and end >= 0:
            missing.append(end)
            end -= 1
            last = (await self._read(end))[0] if end >= 0 else None
        missing += await self._holes(segment.first_entry, end)
        length = 0 if last is None else last.length
        return Loss(
            self._ledger, gone, lac, end, length, _ranges(missing), more_possible=possible or not coverage.holds
        )

    async def _end(self, lac: int, highest: int) -> tuple[int, bool]:
        """Return the last entry from `lac` on that a bookie has, or `lac`, and whether bookies that are gone may have
        had others.

        An entry that was certainly never acknowledged ends the ledger.
        """
        end, possible = lac, False
        for entry in range(lac + 1, highest + 2):
            found, sure = await self._read(entry)
            if found is not None:
                end = entry
            elif sure:
                break
            else:
                possible = True
        return end, possible

    async def _holes(self, first: int, end: int) -> list[int]:
        """Return the entries up to `end` that no bookie has. They are all in the last segment."""
        ensemble = self._metadata.segments[-1].bookies
        found: list[int] = []
        at = first
        while at <= end:
            try:
                if self._sources.batched(ensemble, frozenset()):
                    at += (await self._sources.read(at, end + 1 - at, ensemble, frozenset())).count
                    continue
            except ReplicationError:
                pass  # the reads of the single entries tell why
            entries = range(at, min(at + READS_IN_FLIGHT, end + 1))
            answers = await asyncio.gather(*map(self._read, entries))
            found += [entry for entry, (one, _) in zip(entries, answers, strict=True) if one is None]
            at = entries.stop
        return found

    async def _last(self, bookie: str) -> OpenedEntry | None:
        """Return the last entry of a registered bookie. Raises IllegalOperation if it does not answer."""
        try:
            answer = await self._bookies.read(
                bookie, self._ledger, LAST_ENTRY, flags=self._flags & Flags.FENCE, master_key=self._digest.master_key
            )
            return None if answer.stored is None else self._digest.open(answer.stored, self._ledger)
        except MISSING:
            return None
        except ClientClosed:
            raise
        except BookKeeperError as error:
            raise self._not_gone(bookie, error) from error

    async def _read(self, entry: int) -> tuple[OpenedEntry | None, bool]:
        """Return an entry, or None if no bookie has it, and whether a recovery would know as much."""
        metadata = self._metadata
        missing = 0
        for bookie in metadata.write_set(entry):
            if bookie not in self._alive:
                continue
            try:
                async with self._gate:
                    answer = await self._bookies.read(
                        bookie, self._ledger, entry, flags=self._flags, master_key=self._digest.master_key
                    )
                if answer.stored is not None:
                    return self._digest.open(answer.stored, self._ledger, entry), True
                missing += 1
            except MISSING:
                missing += 1
            except DigestMismatch as error:
                log.warning("replica is damaged ledger=%d entry=%d bookie=%s: %s", self._ledger, entry, bookie, error)
            except ClientClosed:
                raise
            except BookKeeperError as error:
                raise self._not_gone(bookie, error) from error
        return None, missing > metadata.write_quorum - metadata.ack_quorum

    def _not_gone(self, bookie: str, error: BookKeeperError) -> IllegalOperation:
        return IllegalOperation(
            f"ledger {self._ledger}: bookie {bookie} is registered and may have entries that look lost, but it does not"
            f" answer ({error}): mend it, or stop it for good, first"
        )


def _ranges(entries: list[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for entry in sorted(entries):
        if found and found[-1][1] == entry - 1:
            found[-1] = found[-1][0], entry
        else:
            found.append((entry, entry))
    return tuple(found)


def _each(ranges: tuple[tuple[int, int], ...]) -> list[int]:
    return [entry for first, last in ranges for entry in range(first, last + 1)]
