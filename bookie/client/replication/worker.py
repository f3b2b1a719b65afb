"""The replication worker: it takes marked ledgers, one at a time, and copies what they lack. Event loop.

A ledger is locked in the metadata store while it is worked on, and also while it is held back, because it may still
be written to, or because the last rounds failed. The lock ends with the session, so that other workers take over the
ledgers of a worker that dies.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from bookie.client.contracts import Adherence
from bookie.client.event_loop.together import together
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.placement.adherence import mended
from bookie.client.replication.checker import LedgerChecker
from bookie.client.replication.contracts import Environment
from bookie.client.replication.copier import Copier
from bookie.client.replication.fragments import Fragment, fragments, missing_from_tail
from bookie.client.replication.pace import pause_s
from bookie.errors import BookKeeperError, ClientClosed, NoSuchLedgerMetadata, ReplicationError
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie.metadata.records.replication import Claim

__all__ = ["ReplicationWorker"]

IDLE_S_MAX = 60.0
"""An idle worker looks again after this time, in seconds, even if it was not notified."""
DOUBLINGS = 5
FAILURES_KEPT = 100_000
HELD_MAX = 10_000
"""How many ledgers a worker holds back at most; it takes no other one before one of them is let go."""
CLOSING_MAX = 32
"""How many of them it looks at again, and perhaps closes, at the same time."""
RELEASED_AT_ONCE = 4
log = logging.getLogger(__name__)


class ReplicationWorker:
    """The worker. Call `run`, and cancel it to end."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._queue = environment.queue
        self._ledgers = environment.ledgers
        self._placement = environment.placement
        self._cluster = environment.cluster
        self._settings = environment.settings
        self._counters = environment.counters
        self._checker = LedgerChecker(environment)
        self._copier = Copier(environment)
        self._failures: dict[int, int] = {}
        self._held: dict[asyncio.Task[None], Claim] = {}
        self._closing = asyncio.Semaphore(CLOSING_MAX)
        self._leaving = False

    async def run(self) -> None:
        """Replicate ledgers until cancelled, then release all locks."""
        wake = asyncio.Event()
        try:
            while True:
                while len(self._held) >= HELD_MAX:
                    await asyncio.wait(self._held, return_when=asyncio.FIRST_COMPLETED)
                wake.clear()
                try:
                    claim = await self._claim(wake)
                except ClientClosed:
                    raise
                except BookKeeperError as error:
                    log.warning("cannot take a ledger to replicate error=%s", error)
                    await asyncio.sleep(self._settings.backoff_s)
                    continue
                if claim is None:
                    await _wait(wake, IDLE_S_MAX)
                elif await self._work(claim):
                    await self._pause()
                else:
                    await asyncio.sleep(self._settings.backoff_s)
        finally:
            held = dict(self._held)
            self._leaving = True
            for task in held:
                task.cancel()
            await asyncio.gather(*held, return_exceptions=True)
            await self._release_all(held.values())

    async def _claim(self, wake: asyncio.Event) -> Claim | None:
        """Take a ledger. If cancelled while the lock is being acquired, release it again."""
        taking = asyncio.ensure_future(self._queue.claim(self._environment.name, self._environment.random, wake.set))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            await asyncio.shield(self._let_go(taking))  # even if we are cancelled a second time
            raise

    async def _let_go(self, taking: asyncio.Future[Claim | None]) -> None:
        with contextlib.suppress(BookKeeperError):
            late = await taking
            if late is not None:
                await self._release(late)

    async def _work(self, claim: Claim) -> bool:
        """Do one round with a ledger that we have locked. Returns whether it succeeded."""
        try:
            await self._round(claim)
        except BaseException as error:
            if not isinstance(error, BookKeeperError) or isinstance(error, ClientClosed):
                await self._release(claim)
                raise
            log.warning("cannot replicate ledger ledger=%d error=%s", claim.ledger, error)
            self._failed(claim)
        return claim.ledger not in self._failures

    async def _round(self, claim: Claim) -> None:
        """Do what a ledger needs, and finish the claim if the ledger was deleted."""
        try:
            await self._replicate(claim)
        except NoSuchLedgerMetadata:
            log.info("ledger was deleted ledger=%d", claim.ledger)
            await self._finish(claim)

    async def _replicate(self, claim: Claim) -> None:
        """Copy what can be copied, then finish the claim, or hold it for a while."""
        known, lac = await self._open(claim.ledger)
        bad = await self._lacking(claim.ledger, known.metadata, lac)
        unrecoverable = await self._copy(known, bad)
        lagging = [part for part in bad if not part.closed]
        gone = missing_from_tail(known.metadata, lac, self._cluster.alive)
        if lagging or gone:
            self._counters.ledgers_deferred += 1
            log.info("ledger is open, waiting ledger=%d seconds=%g", claim.ledger, self._settings.open_ledger_grace_s)
            self._hold(
                claim, self._settings.open_ledger_grace_s, lambda held: self._close_if_it_must_be(held, gone, lagging)
            )
            return
        left = await self._lacking(claim.ledger, known.metadata, lac) if bad else []
        if not left:
            log.info("ledger has all replicas ledger=%d", claim.ledger)
            await self._finish(claim)
            self._counters.ledgers += 1
        else:
            self._counters.ledgers_unrecoverable += unrecoverable
            self._failed(claim, hopeless=unrecoverable)

    async def _open(self, ledger: int) -> tuple[Known, int]:
        known = Known(ledger, await self._environment.metadata.read(ledger))
        if known.closed:
            return known, known.metadata.last_entry
        return known, await self._ledgers.last_confirmed(ledger, known.metadata)

    async def _lacking(self, ledger: int, metadata: LedgerMetadata, lac: int) -> list[Fragment]:
        bad = await self._checker.check(ledger, metadata, lac)
        if self._settings.repair_placement and metadata.state is LedgerState.CLOSED and not bad:
            bad = self._misplaced(metadata, lac)
        return bad

    def _misplaced(self, metadata: LedgerMetadata, lac: int) -> list[Fragment]:
        """Return, for each segment that violates the placement policy, the fewest fragments that can be moved to
        satisfy it.
        """
        found: list[Fragment] = []
        for first, parts in _by_segment(fragments(metadata, lac)):
            ensemble = [part.bookie for part in parts]
            quorums = metadata.write_quorum, metadata.ack_quorum
            if self._placement.adheres(ensemble, *quorums) is Adherence.FAIL:
                moves = mended(self._placement, ensemble, *quorums, custom=metadata.custom)
                found += [parts[index] for index in moves]
                if not moves:
                    log.info("segment violates the placement policy, and no replacement helps first=%d", first)
        return found

    async def _copy(self, known: Known, bad: list[Fragment]) -> bool:
        """Replicate each segment; one that fails stops no other. Returns whether some entry has no replica left."""
        unrecoverable = False
        for first, parts in _by_segment(part for part in bad if part.closed):
            try:
                await self._copier.replicate(known, parts)
            except (ClientClosed, NoSuchLedgerMetadata):
                raise
            except BookKeeperError as error:
                unrecoverable |= isinstance(error, ReplicationError) and self._nobody_left(known.metadata, parts)
                log.warning("cannot replicate segment ledger=%d first=%d error=%s", known.ledger, first, error)
        return unrecoverable

    def _nobody_left(self, metadata: LedgerMetadata, parts: list[Fragment]) -> bool:
        """OP1: return whether all replicas of some entry are on bookies that are gone, so that another try is
        useless now.
        """
        segment = next(one for one in metadata.segments if one.first_entry == parts[0].first)
        count = min(metadata.ensemble_size, parts[0].last - parts[0].first + 1)
        return any(
            not self._cluster.alive.intersection(metadata.write_set(entry))
            for entry in range(segment.first_entry, segment.first_entry + count)
        )

    async def _close_if_it_must_be(self, claim: Claim, gone: frozenset[str], lagging: Sequence[Fragment]) -> None:
        """Fence and close a ledger if bookies that were missing are still missing, or still lack the same entries.

        Its writer had time to replace them. `gone` and `lagging` are what the first look found. What only the second
        one finds is no reason: a healthy writer goes on, and one of its bookies may always be a little behind.
        """
        if not await self._queue.holds(claim):  # the lock ended with our session, and its new holder waits anew
            return
        known, lac = await self._open(claim.ledger)
        gone &= missing_from_tail(known.metadata, lac, self._cluster.alive)
        lacking = [] if gone else await self._checker.still_lack(claim.ledger, known.metadata, lac, lagging)
        if not gone and not lacking:
            return
        if gone:
            log.warning(
                "closing an open ledger, since its bookies are missing ledger=%d bookies=%s",
                claim.ledger,
                ",".join(sorted(gone)),
            )
        else:
            log.warning(
                "closing an open ledger, since bookies lack confirmed entries ledger=%d first=%d bookies=%s",
                claim.ledger,
                lacking[0].first,
                ",".join(part.bookie for part in lacking),
            )
        await self._ledgers.recover(claim.ledger)
        self._counters.ledgers_recovered += 1

    def _failed(self, claim: Claim, *, hopeless: bool = False) -> None:
        """Hold the lock for a while, which is longer after each failure."""
        failures = self._failures.get(claim.ledger, 0)
        if len(self._failures) < FAILURES_KEPT or failures:
            self._failures[claim.ledger] = failures + 1
        self._counters.ledgers_failed += 1
        doublings = DOUBLINGS if hopeless else min(failures, DOUBLINGS)
        delay_s = self._settings.failed_ledger_hold_s * 2 ** (doublings - DOUBLINGS)
        if hopeless:
            log.error(
                "an entry has no replica left ledger=%d: start a bookie that holds it, or delete the ledger",
                claim.ledger,
            )
        self._hold(claim, delay_s, None)

    def _hold(self, claim: Claim, delay_s: float, then: Callable[[Claim], Awaitable[None]] | None) -> None:
        async def hold() -> None:
            try:
                await asyncio.sleep(delay_s)
                if then is not None:
                    async with self._closing:
                        await then(claim)
            except NoSuchLedgerMetadata:  # the next round removes the mark
                return
            except BookKeeperError as error:
                log.warning("cannot close ledger ledger=%d error=%s", claim.ledger, error)
            finally:
                if not self._leaving:
                    await self._release(claim)

        task = asyncio.get_running_loop().create_task(hold(), name=f"held ledger {claim.ledger}")
        self._held[task] = claim
        task.add_done_callback(self._held.pop)

    async def _finish(self, claim: Claim) -> None:
        self._failures.pop(claim.ledger, None)
        if not await self._queue.finish(claim):
            log.info("the mark stays, since it was set again or the lock was lost ledger=%d", claim.ledger)

    async def _release(self, claim: Claim) -> bool:
        """Release a lock, and return whether the store has answered."""
        try:
            await asyncio.shield(self._queue.release(claim))
        except BookKeeperError as error:  # the lock ends with the session
            log.warning("cannot release lock ledger=%d error=%s", claim.ledger, error)
            return False
        return True

    async def _release_all(self, claims: Iterable[Claim]) -> None:
        """Release the locks of a worker that ends. If the store does not answer, each of them would take as long as a
        session, so the rest are left to its end.
        """
        rest = iter(claims)

        async def release() -> None:
            for claim in rest:
                if not await self._release(claim):
                    left = sum(1 for _ in rest)
                    log.warning("the other locks are left to the end of the session locks=%d", left)
                    return

        await together(release() for _ in range(RELEASED_AT_ONCE))

    async def _pause(self) -> None:
        """Wait, so that bookies with more free space go first."""
        seconds = pause_s(self._environment.name, self._cluster, self._environment.config)
        if seconds:
            self._counters.paused_ms += round(seconds * 1000)
            await asyncio.sleep(seconds)


def _by_segment(parts: Iterable[Fragment]) -> Iterator[tuple[int, list[Fragment]]]:
    for first, group in itertools.groupby(parts, key=lambda part: part.first):
        yield first, list(group)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
