"""Announcements that ledgers get no more entries (BP-32), to bookies that listen for them. Event loop.

Nobody waits for an announcement, except that a client that is closed gives those under way a short time. They are only
a hint: a bookie that misses one closes the ledger's entry log later.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping

from bookie.errors import BookKeeperError
from bookie.metrics.family import Family, Kind, Sample

__all__ = ["Announcements"]

SETTLE_S = 1.0
"""How long a client that is closed waits for its announcements at most, in seconds."""
SUCCEEDED, PARTLY, FAILED = "succeeded", "partly", "failed"

log = logging.getLogger(__name__)

WriteClose = Callable[[str, int, bytes], Awaitable[bool]]
"""Sends a write close to a bookie, and returns whether the bookie listens for it."""


class Announcements:
    """The announcements of one client. `write_close` sends one to a bookie."""

    def __init__(self, write_close: WriteClose) -> None:
        self._write_close = write_close
        self._under_way: set[asyncio.Task[None]] = set()
        self._outcomes = dict.fromkeys((SUCCEEDED, PARTLY, FAILED), 0)

    def start(self, ledger: int, master_key: bytes, bookies: Collection[str]) -> None:
        """Announce the end of a ledger to these bookies, to all at once, without waiting."""
        task = asyncio.get_running_loop().create_task(self._announce(ledger, master_key, bookies))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settle(self) -> None:
        """Wait for the announcements under way, but not longer than SETTLE_S."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=SETTLE_S)

    async def _announce(self, ledger: int, master_key: bytes, bookies: Collection[str]) -> None:
        answers = await asyncio.gather(*(self._send(bookie, ledger, master_key) for bookie in bookies))
        failed = {bookie: error for bookie, error in zip(bookies, answers, strict=True) if isinstance(error, Exception)}
        well = sum(answer is True for answer in answers)
        if not well and not failed:
            return  # no bookie listens
        outcome = SUCCEEDED if not failed else PARTLY if well else FAILED
        self._outcomes[outcome] += 1
        if outcome == SUCCEEDED:
            log.debug("write close succeeded ledger=%d bookies=%d", ledger, well)
        elif outcome == PARTLY:
            log.info("write close succeeded partly ledger=%d failed at %s", ledger, _listed(failed))
        else:
            log.info("write close failed ledger=%d: %s", ledger, _listed(failed))

    async def _send(self, bookie: str, ledger: int, master_key: bytes) -> bool | BookKeeperError:
        try:
            return await self._write_close(bookie, ledger, master_key)
        except BookKeeperError as error:
            return error

    def family(self) -> Family:
        """Return the outcomes as a metric."""
        return Family(
            "bookie_client_write_closes_total",
            Kind.COUNTER,
            "Ledgers whose end was announced to the bookies that listen for it, by outcome.",
            tuple(Sample(count, (("outcome", outcome),)) for outcome, count in self._outcomes.items()),
        )


def _listed(failed: Mapping[str, Exception]) -> str:
    return ", ".join(f"{bookie} ({error})" for bookie, error in failed.items())
