"""What a scenario needs of a client, be it the real one, or the small one that validates world and judge."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from bookie.client.config import ClientConfig
from bookie.client.entries.digest import DigestType
from tests.sim.world import World

__all__ = ["Client", "Following", "MakeClient", "Reader", "Writer"]


class Writer(Protocol):
    """An open ledger for writing."""

    @property
    def ledger(self) -> int: ...

    async def append(self, payload: bytes, entry: int = -1) -> "asyncio.Future[int]":
        """Add an entry, waiting only for room; its id comes later. `entry` is the id, for a writer that chooses ids."""
        ...

    async def force(self) -> int:
        """Make acknowledged entries durable, for a writer that defers syncs, and return the last of them."""
        ...

    async def close(self) -> tuple[int, int]:
        """Close the ledger, and return last entry and length."""
        ...


class Following(Protocol):
    """The entries of a ledger from the first one on, as they are acknowledged."""

    async def ready(self) -> Sequence[tuple[int, bytes]]:
        """Return the next entries, at least one; none at the end of the ledger."""
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
        """Wait until the LAC has passed `lac`, or the time is up, and return the LAC."""
        ...

    def follow(self) -> Following:
        """Follow the ledger from its first entry on."""
        ...


class Client(Protocol):
    """The client of one simulated process."""

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
        """Give the ledger new replicas whenever bookies come or go, until cancelled.

        `patience_s` is the grace time of an open ledger, in seconds.
        """
        ...

    async def close(self) -> None: ...


MakeClient = Callable[[World, str, ClientConfig, random.Random], Coroutine[Any, Any, Client]]
"""Makes a client that the world already knows by its name."""
