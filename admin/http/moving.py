"""Bookies that are being emptied: each in a thread of its own, followed until nothing is left on it, or the plane ends.

The work is done by the cluster's replicators (`bookie.client.replication.decommission`); whoever breaks it off here
loses nothing.
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
    """How far one is. Written by its thread, read by anybody. Times in milliseconds since the epoch."""

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
    """All of them. Any thread."""

    def __init__(self, driver: MetadataDriver) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._moves: dict[str, Move] = {}  # guarded by _lock, as is the rest
        self._running: dict[str, tuple[threading.Thread, Stop]] = {}
        self._ended = False

    def start(self, bookie: str, *, delete_cookie: bool) -> None:
        """Begin. IllegalOperation while it is registered, unknown, moved already, or too many are; and after `stop`."""
        if is_registered(self._driver.bookies, bookie):
            raise IllegalOperation(f"bookie {bookie} is registered: stop it first, then decommission it")
        if bookie not in self._driver.bookies.known():
            raise IllegalOperation(f"bookie {bookie} has no cookie in this cluster; look at the list of bookies")
        with self._lock:
            if self._ended:
                raise IllegalOperation(f"bookie {bookie} is not emptied from here: this bookie stops; ask another one")
            if bookie in self._running:
                raise IllegalOperation(f"bookie {bookie} is being emptied already; wait for that")
            if len(self._running) >= AT_ONCE_MAX:
                raise IllegalOperation(f"{AT_ONCE_MAX} bookies are being emptied already; wait for one of them")
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
        """Those that run and the last that ended, oldest first."""
        with self._lock:
            return [asdict(one) for one in self._moves.values()]

    def stop(self) -> None:
        """Break all off and wait for their threads. Idempotent."""
        with self._lock:
            self._ended = True
            running = list(self._running.values())
        for thread, stop in running:
            stop.set()
            thread.join()

    def _run(self, move: Move, stop: Stop, delete_cookie: bool) -> None:  # noqa: FBT001 - the target of a thread
        try:
            asyncio.run(stop.run(self._follow(move)))
            if delete_cookie and not move.blocked:
                self._driver.cookies.remove(move.bookie)
                move.cookie_deleted = True
            log.info("bookie emptied", extra={"bookie": move.bookie, "blocked": len(move.blocked or {})})
        except BookKeeperError as error:
            move.error = str(error)
            log.error("a bookie could not be emptied", extra={"bookie": move.bookie, "error": str(error)})
        except asyncio.CancelledError:
            move.error = "broken off: this bookie stops"
        except Exception as error:
            move.error = f"{type(error).__name__}: {error}"
            log.exception("a bookie could not be emptied", extra={"bookie": move.bookie})
        finally:
            move.ended_ms = _now_ms()
            with self._lock:
                self._running.pop(move.bookie, None)

    async def _follow(self, move: Move) -> None:
        """Until nothing is left."""
        from bookie.client.replication.decommission import decommission  # noqa: PLC0415
        from bookie.client.replication.hosting import Shared  # noqa: PLC0415
        from bookie.client.replication.service import opened  # noqa: PLC0415

        async with opened("http", Shared(self._driver), {}) as world:
            async for look in decommission(world, move.bookie):
                move.remaining, move.total, move.paused = len(look.remaining), look.total, look.paused
                move.per_s, move.eta_s = look.per_s, look.eta_s
                move.blocked = {str(ledger): why for ledger, why in list(look.blocked.items())[:BLOCKED_SHOWN]}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
