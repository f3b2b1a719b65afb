"""Decommissions of bookies. Each runs in a thread of its own until no ledger is left on the bookie, or the plane
stops.

The replication workers of the cluster do the work (`bookie.client.replication.decommission`); stopping to follow it
here loses nothing.
"""

import asyncio
import logging
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from bookie.client.event_loop.stop import Stop
from bookie.errors import BookKeeperError, IllegalOperation
from bookie.metadata.bookies.states import is_registered
from bookie.metadata.driver import MetadataDriver

__all__ = ["Movers"]

AT_ONCE_MAX = 4
KEPT_MAX = 16
BLOCKED_SHOWN = 100
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Move:
    """The progress of a decommission. Written by its thread, read by any thread. Times are in milliseconds since
    1970.
    """

    bookie: str
    begun_ms: int
    ended_ms: int = 0
    remaining: int | None = None
    total: int | None = None
    per_s: float = 0.0
    eta_s: float | None = None
    paused: bool = False
    blocked: dict[str, str] | None = None
    cookie_deleted: bool = False
    error: str = ""


class Movers:
    """The decommissions of this process. Any thread."""

    def __init__(self, driver: MetadataDriver) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._moves: dict[str, Move] = {}  # guarded by _lock, as are the following
        self._running: dict[str, tuple[threading.Thread, Stop]] = {}
        self._ended = False

    def start(self, bookie: str, *, delete_cookie: bool) -> None:
        """Start to decommission a bookie.

        Args:
            bookie: its id.
            delete_cookie: delete its cookie at the end.

        Raises:
            IllegalOperation: the bookie is registered, unknown or already being decommissioned; too many are; or this
                process is stopping.
        """
        if is_registered(self._driver.bookies, bookie):
            raise IllegalOperation(f"bookie {bookie} is registered: stop it first, then decommission it")
        if bookie not in self._driver.bookies.known():
            raise IllegalOperation(
                f"bookie {bookie} has no cookie in this cluster; check its id in the list of bookies"
            )
        with self._lock:
            if self._ended:
                raise IllegalOperation(
                    f"bookie {bookie} cannot be decommissioned from here: this bookie is stopping; use another one"
                )
            if bookie in self._running:
                raise IllegalOperation(f"bookie {bookie} is already being decommissioned; wait until that ends")
            if len(self._running) >= AT_ONCE_MAX:
                raise IllegalOperation(
                    f"{AT_ONCE_MAX} bookies are already being decommissioned; wait until one of them ends"
                )
            move, stop = Move(bookie, _now_ms()), Stop()
            thread = threading.Thread(
                target=self._run, args=(move, stop, delete_cookie), name=f"empty-{bookie}", daemon=True
            )
            thread.start()
            self._running[bookie] = thread, stop
            self._moves.pop(bookie, None)
            while len(self._moves) >= KEPT_MAX:
                self._moves.pop(next(one for one in self._moves if one not in self._running))
            self._moves[bookie] = move

    def seen(self) -> list[dict[str, Any]]:
        """Return those in progress and the last ones that ended, oldest first."""
        with self._lock:
            return [asdict(one) for one in self._moves.values()]

    def stop(self) -> None:
        """Stop following all decommissions and wait for their threads. Idempotent."""
        with self._lock:
            self._ended = True
            running = list(self._running.values())
        for _, stop in running:  # all of them first, since each may wait for the metadata store
            stop.set()
        for thread, _ in running:
            thread.join()

    def _run(self, move: Move, stop: Stop, delete_cookie: bool) -> None:  # noqa: FBT001 - the target of a thread
        try:
            asyncio.run(stop.run(self._follow(move)))
            if delete_cookie and not move.blocked:
                self._driver.cookies.remove(move.bookie)
                move.cookie_deleted = True
            log.info("bookie decommissioned", extra={"bookie": move.bookie, "blocked": len(move.blocked or {})})
        except BookKeeperError as error:
            move.error = str(error)
            log.error("a bookie could not be decommissioned", extra={"bookie": move.bookie, "error": str(error)})
        except asyncio.CancelledError:
            move.error = "interrupted: this bookie is stopping"
        except Exception as error:
            move.error = f"{type(error).__name__}: {error}"
            log.exception("a bookie could not be decommissioned", extra={"bookie": move.bookie})
        finally:
            move.ended_ms = _now_ms()
            with self._lock:
                self._running.pop(move.bookie, None)

    async def _follow(self, move: Move) -> None:
        """Follow the decommission until no ledger is left."""
        from bookie.client.replication.decommission import decommission  # noqa: PLC0415
        from bookie.client.replication.hosting import Shared  # noqa: PLC0415
        from bookie.client.replication.service import opened  # noqa: PLC0415

        async with opened("http", Shared(self._driver), {}) as environment:
            async for look in decommission(environment, move.bookie):
                move.remaining, move.total, move.paused = len(look.remaining), look.total, look.paused
                move.per_s, move.eta_s = look.per_s, look.eta_s
                move.blocked = {str(ledger): why for ledger, why in list(look.blocked.items())[:BLOCKED_SHOWN]}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
