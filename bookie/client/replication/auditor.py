"""The auditor: one candidate of the cluster is elected, and looks for ledgers with too few replicas. Event loop.

It waits while replication is disabled. What it finds is marked in the metadata store. If an auditor dies, the next
one looks again, so only time is lost.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bookie.client.event_loop.together import together
from bookie.client.replication.audits import Audits
from bookie.client.replication.contracts import Environment
from bookie.client.replication.full_check import FullCheck
from bookie.client.replication.lost_bookies import LostBookies
from bookie.errors import BookKeeperError, ClientClosed
from bookie.metadata.records.replication import Check

__all__ = ["Auditor"]

DISABLED_POLL_S = 2.0
log = logging.getLogger(__name__)


class Auditor:
    """A candidate for the office of auditor. Call `run`, and cancel it to end."""

    def __init__(self, environment: Environment) -> None:
        self._bookie = environment.name
        self._queue = environment.queue
        self._cluster = environment.cluster
        self._metadata = environment.metadata
        self._settings = environment.settings
        self._counters = environment.counters
        self._now_ms = environment.epoch_ms
        self._audits = Audits(environment)
        self._full_check = FullCheck(environment)
        self._elected = False
        self._changed = asyncio.Event()
        self._look = asyncio.Event()
        self._grace_s = environment.config.session_timeout_s
        self._lost = LostBookies(self._grace_s)
        self._interruptions = 0
        self._delay_s: int | None = None
        self._check_requested = False

    async def run(self) -> None:
        """Stand for election, and be the auditor while elected. Raises ClientClosed.

        If an audit fails, the office is given up so that another candidate can take it; a while later this one stands
        again.
        """
        self._cluster.listeners.append(self._look.set)
        try:
            while True:
                try:
                    await self._hold_office()
                except ClientClosed:
                    raise
                except Exception:
                    log.exception("audit failed, giving up the office of auditor bookie=%s", self._bookie)
                    await asyncio.sleep(self._settings.backoff_s)
        finally:
            self._cluster.listeners.remove(self._look.set)

    async def _hold_office(self) -> None:
        """Be the auditor whenever elected. Raises the errors of the auditor's work."""
        candidacy = self._queue.stand(self._bookie, self._election_changed)
        try:
            while True:
                await self._changes()
                if self._elected:
                    await self._term()
        finally:
            self._elected = False
            self._counters.elected_now = 0
            candidacy.close()

    async def _term(self) -> None:
        duty = asyncio.ensure_future(self._duty())
        duty.add_done_callback(lambda _: self._changed.set())
        try:
            while self._elected:
                await self._changes()
                if duty.done():
                    duty.result()
        finally:
            duty.cancel()
            await asyncio.gather(duty, return_exceptions=True)

    async def _changes(self) -> None:
        """Wait for a change of the election, or for the end of the auditor's work."""
        await self._changed.wait()
        self._changed.clear()

    def _election_changed(self, won: bool) -> None:  # noqa: FBT001 - the signature of the listener
        self._elected = won
        self._counters.elected_now = int(won)
        self._counters.elections += won
        log.info("auditor elected=%s bookie=%s", won, self._bookie)
        self._changed.set()

    async def _duty(self) -> None:
        """Do all the work of an auditor, until cancelled."""
        settings = self._settings
        self._lost = LostBookies(self._grace_s)
        self._delay_s, self._check_requested = None, False
        await self._insist(
            lambda: self._queue.set_lost_bookie_delay_s(settings.lost_bookie_delay_s, only_if_unset=True)
        )
        watch = self._queue.watch_lost_bookie_delay(self._delay_changed)
        work = [
            self._follow_bookies(),
            self._check_bookies(),
            self._periodically(Check.ALL_LEDGERS, settings.check_interval_s, self._audits.check_all_ledgers),
            self._periodically(Check.PLACEMENT, settings.placement_check_interval_s, self._audits.check_placement),
            self._periodically(Check.REPLICAS, settings.replicas_check_interval_s, self._audits.check_replicas),
            self._periodically(Check.HOLES, settings.full_check_interval_s, self._full_check.run),
        ]
        try:
            await together(work)
        finally:
            watch.close()

    def _delay_changed(self, delay_s: int | None) -> None:
        """Handle that an operator wrote the delay. Writing the same value again, or 0, requests an audit now."""
        if self._delay_s is not None:
            self._check_requested |= delay_s in {self._delay_s, 0}
        self._delay_s = self._settings.lost_bookie_delay_s if delay_s is None else delay_s
        self._look.set()

    async def _follow_bookies(self) -> None:
        """Mark the ledgers of bookies that stay away."""
        loop = asyncio.get_running_loop()
        while True:
            self._look.clear()  # even while the delay is unknown, since waiting for an event that is set never yields
            if self._delay_s is not None:
                await self._until_enabled()
                self._lost.look(self._cluster.alive, loop.time())
                self._counters.bookies_lost_now = len(self._lost.missing)
                if self._interruptions != self._cluster.interruptions:
                    self._interruptions = self._cluster.interruptions
                    self._lost.interrupted(loop.time())
                if self._check_requested:
                    self._check_requested = False
                    self._lost.hurry()
                due = self._lost.due(self._delay_s, loop.time())
                if due:
                    await self._insist(lambda due=due: self._mark(due))  # type: ignore[misc]
                    continue
                if self._lost.waiting:
                    self._counters.audits_delayed += 1
            await self._wait_for_a_look()

    async def _wait_for_a_look(self) -> None:
        next_s = None if self._delay_s is None else self._lost.next_due_s(self._delay_s)
        try:
            async with asyncio.timeout_at(next_s):
                await self._look.wait()
        except TimeoutError:
            return

    async def _mark(self, lost: frozenset[str]) -> None:
        """Mark the ledgers of those bookies that are still away, according to the store itself.

        What is known of the cluster may be old: while the store cannot be reached, bookies that come back are not
        seen.
        """
        alive = await self._registered()
        if self._interruptions != self._cluster.interruptions:
            return  # the bookies get time to register again, and this is asked once more
        self._lost.look(alive, asyncio.get_running_loop().time())
        lost &= self._lost.missing
        if lost:
            count = await self._audits.mark_ledgers_of(lost)
            self._counters.bookie_audits += 1
            log.warning(
                "bookies are lost, their ledgers are marked bookies=%s ledgers=%d", ",".join(sorted(lost)), count
            )
        self._lost.audited(lost)

    async def _registered(self) -> frozenset[str]:
        """Read the registered bookies. A bookie that changes its mode is in both sets for a moment."""
        writable = await self._metadata.bookies(read_only=False)
        read_only = await self._metadata.bookies(read_only=True)
        return writable | read_only | await self._metadata.bookies(read_only=False)

    async def _check_bookies(self) -> None:
        """Find bookies that died while there was no auditor, and those whose marks were lost."""
        while True:
            await self._until_enabled()
            await self._insist(self._learn_bookies)
            self._look.set()
            if self._settings.bookie_check_interval_s <= 0:
                return
            await asyncio.sleep(self._settings.bookie_check_interval_s)

    async def _learn_bookies(self) -> None:
        self._lost.know(await self._audits.bookies_named())

    async def _periodically(self, check: Check, interval_s: float, run: Callable[[], Awaitable[None]]) -> None:
        """Run a check every `interval_s` seconds, counted from its last run by any auditor; never if that is 0."""
        if interval_s <= 0:
            return
        last_ms: int | None = None

        async def look_up() -> None:
            nonlocal last_ms
            last_ms = await self._queue.last_check_ms(check)

        await self._insist(look_up)
        wait_s = 0.0 if last_ms is None else interval_s - (self._now_ms() - last_ms) / 1000
        while True:
            await asyncio.sleep(max(wait_s, 0.0))
            await self._until_enabled()
            if self._lost.waiting:  # its ledgers will be marked soon, or it comes back
                log.info("check skipped, since a bookie is missing check=%s", check.name)
            else:
                began_ms = self._now_ms()
                await self._insist(run)
                await self._insist(lambda at_ms=began_ms: self._queue.set_last_check_ms(check, at_ms))  # type: ignore[misc]
            wait_s = interval_s

    async def _until_enabled(self) -> None:
        enabled = False

        async def ask() -> None:
            nonlocal enabled
            enabled = await self._queue.enabled()

        await self._insist(ask)
        while not enabled:
            await asyncio.sleep(DISABLED_POLL_S)
            await self._insist(ask)

    async def _insist(self, act: Callable[[], Awaitable[None]]) -> None:
        """Retry after errors that may pass, since an outage of the metadata store must not end an audit."""
        while True:
            try:
                await act()
            except ClientClosed:
                raise
            except BookKeeperError as error:
                log.warning("audit interrupted error=%s", error)
                await asyncio.sleep(self._settings.backoff_s)
            else:
                return
