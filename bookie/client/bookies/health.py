"""Decide which bookies are quarantined: those whose requests fail too often are not chosen for writing.

It counts without timers: an interval ends with the first call after its end. Only its owner's thread uses it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

from bookie.client.config import ClientConfig
from bookie.errors import (
    BookieReadOnly,
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    DuplicateEntryId,
    LedgerExists,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLedger,
)

INNOCENT = {
    error.code
    for error in (
        BookieReadOnly,
        ClientClosed,
        DuplicateEntryId,
        LedgerExists,
        LedgerFenced,
        NoSuchEntry,
        NoSuchLedger,
    )
}
"""Codes of errors that say nothing about the bookie's health."""

log = logging.getLogger(__name__)


class Health:
    """Counts failures by bookie. `clock` returns monotonic seconds. It does nothing unless
    `bookieHealthCheckEnabled` is set.
    """

    def __init__(
        self,
        config: ClientConfig,
        chance: Random,
        clock: Callable[[], float],
        enabled: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`enabled` returns whether the cluster wants bookies to be quarantined; it is called before one is, on the
        event loop.
        """
        self._config = config
        self._enabled = enabled
        self._asking: set[asyncio.Task[None]] = set()
        self._chance = chance
        self._clock = clock
        self._ends = clock() + config.health_check_interval_s
        self._failures: Counter[str] = Counter()
        self._until: dict[str, float] = {}

    def failed(self, bookie: str, code: int, count: int = 1) -> None:
        """Count `count` requests that ended with the error of this code."""
        if not self._config.health_check_enabled or code in INNOCENT:
            return
        if code == BookieUnavailable.code and not self._config.health_counts_connect_errors:
            return
        self._roll()
        self._failures[bookie] += count

    def excluded(self) -> frozenset[str]:
        """Return the bookies that are in quarantine. If too few bookies are left without them, choose among all."""
        if not self._config.health_check_enabled:
            return frozenset()
        self._roll()
        now = self._clock()
        self._until = {bookie: until for bookie, until in self._until.items() if until > now}
        return frozenset(self._until)

    def release(self) -> None:
        """End all quarantines, and begin to count anew."""
        self._failures.clear()
        self._until.clear()

    def _roll(self) -> None:
        """At the end of an interval, judge the failures that were counted in it."""
        now = self._clock()
        if now < self._ends:
            return
        faulty = [one for one, count in sorted(self._failures.items()) if count >= self._config.health_errors_max]
        until = self._ends + self._config.quarantine_s
        self._failures.clear()
        self._ends = now + self._config.health_check_interval_s
        if faulty and self._enabled is not None:
            task = asyncio.ensure_future(self._ask(self._enabled, faulty, until))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        else:
            self._quarantine(faulty, until)

    async def _ask(self, enabled: Callable[[], Awaitable[bool]], faulty: list[str], until: float) -> None:
        try:
            wanted = await enabled()
        except BookKeeperError as error:
            log.warning("no bookie is quarantined: cannot read from the metadata store whether to error=%s", error)
            return
        if wanted:
            self._quarantine(faulty, until)
        else:
            log.info("no bookie is quarantined: health checks are disabled faulty=%s", ",".join(faulty))
            self.release()

    def _quarantine(self, faulty: list[str], until: float) -> None:
        for bookie in faulty:
            if self._chance.random() < self._config.quarantine_ratio:
                self._until[bookie] = until
