"""What a story asks of a client, whichever it is: the real one, or the small one that proves world and judge."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from bookie.client.config import ClientConfig
from bookie.client.entries.digest import DigestType
from tests.sim.world import World

__all__ = ["Client", "MakeClient", "Reader", "Writer"]


class Writer(Protocol):
    """An open ledger of one's own."""

    @property
    def ledger(self) -> int: ...

    async def append(self, payload: bytes, entry: int = -1) -> "asyncio.Future[int]":
        """Waits for room only; the entry's id comes later. `entry`: the id, of a writer that chooses them."""
        ...

    async def force(self) -> int:
        """Of a writer that defers syncs: make durable what was acknowledged; the last entry that is."""
        ...

    async def close(self) -> tuple[int, int]:
        """Last entry and length."""
        ...


class Reader(Protocol):
    """A ledger that was opened."""

    @property
    def lac(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def length(self) -> int: ...

    async def read(self, first: int, last: int) -> Sequence[tuple[int, bytes]]: ...

    async def batch_read(self, first: int, count: int, size: int) -> Sequence[tuple[int, bytes]]: ...

    async def read_lac(self) -> int: ...

    async def wait(self, lac: int, timeout_s: float) -> int:
        """Until the LAC has passed `lac`, or the time is up; the LAC."""
        ...


class Client(Protocol):
    """One process."""

    async def create(
        self,
        sizes: tuple[int, int, int],
        digest: DigestType,
        password: bytes,
        *,
        advanced: bool = False,
        deferred: bool = False,
    ) -> Writer: ...

    async def open(self, ledger: int, password: bytes, *, recovery: bool) -> Reader: ...

    async def replicate(self, ledger: int, patience_s: float) -> None:
        """Give it new replicas whenever bookies come or go, until cancelled. An open ledger has `patience_s`."""
        ...

    async def close(self) -> None: ...


MakeClient = Callable[[World, str, ClientConfig, random.Random], Coroutine[Any, Any, Client]]
"""Of a client that the world knows already, by its name."""
