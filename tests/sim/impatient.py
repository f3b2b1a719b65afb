"""A client whose calls are cancelled at any await, and made again: what a cancelled call has done must do no harm.

After some cancellations a call is left alone, so that it ends.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from bookie.client.config import ClientConfig
from bookie.client.entries.digest import DigestType
from tests.sim.face import Client, Following, MakeClient, Reader, Writer
from tests.sim.loop import VirtualLoop
from tests.sim.world import World

__all__ = ["impatient"]

T = TypeVar("T")
CANCELS_MAX = 5
STEPS_EXPONENT = 2.5


def impatient(make: MakeClient) -> MakeClient:
    """Return clients like those of `make`, whose calls are cancelled."""

    async def made(world: World, who: str, config: ClientConfig, rng: random.Random) -> Client:
        client = await make(world, who, config, rng)
        return _Client(client, _Patience(random.Random(rng.random()), world.loop))

    return made


class _Patience:
    """Cancels calls, each after a number of callbacks of the loop: these may be its own or those of others."""

    def __init__(self, rng: random.Random, loop: VirtualLoop) -> None:
        self._rng = rng
        self._loop = loop

    async def call(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a call that was perhaps cancelled before, or raise its error."""
        for _ in range(self._rng.choice((0, 1, 1, CANCELS_MAX))):
            task = asyncio.ensure_future(make())
            self._loop.after_steps(int(10 ** self._rng.uniform(0, STEPS_EXPONENT)), task.cancel)
            await asyncio.wait([task])
            if not task.cancelled():
                return task.result()
        return await make()


class _Client:
    def __init__(self, client: Client, patience: _Patience) -> None:
        self._client = client
        self._patience = patience

    async def create(
        self,
        sizes: tuple[int, int, int],
        digest: DigestType,
        password: bytes,
        *,
        advanced: bool = False,
        deferred: bool = False,
    ) -> Writer:
        """Create a ledger. This call is not cancelled, since another attempt would create a second ledger."""
        writer = await self._client.create(sizes, digest, password, advanced=advanced, deferred=deferred)
        return _Writer(writer, self._patience)

    async def open(self, ledger: int, password: bytes, *, recovery: bool) -> Reader:
        reader = await self._patience.call(lambda: self._client.open(ledger, password, recovery=recovery))
        return _Reader(reader, self._patience)

    async def replicate(self, ledger: int, patience_s: float) -> None:
        await self._client.replicate(ledger, patience_s)

    async def close(self) -> None:
        await self._client.close()


class _Writer:
    def __init__(self, writer: Writer, patience: _Patience) -> None:
        self._writer = writer
        self._patience = patience

    @property
    def ledger(self) -> int:
        return self._writer.ledger

    async def append(self, payload: bytes, entry: int = -1) -> "asyncio.Future[int]":
        """Add an entry. A call that was cancelled while it waited for room has added nothing, so it is made again."""
        return await self._patience.call(lambda: self._writer.append(payload, entry))

    async def force(self) -> int:
        return await self._patience.call(self._writer.force)

    async def close(self) -> tuple[int, int]:
        return await self._patience.call(self._writer.close)


class _Reader:
    def __init__(self, reader: Reader, patience: _Patience) -> None:
        self._reader = reader
        self._patience = patience

    @property
    def lac(self) -> int:
        return self._reader.lac

    @property
    def closed(self) -> bool:
        return self._reader.closed

    @property
    def length(self) -> int:
        return self._reader.length

    async def read(self, first: int, last: int) -> Sequence[tuple[int, bytes]]:
        return await self._patience.call(lambda: self._reader.read(first, last))

    async def batch_read(self, first: int, count: int, size: int) -> Sequence[tuple[int, bytes]]:
        return await self._patience.call(lambda: self._reader.batch_read(first, count, size))

    async def read_lac(self) -> int:
        return await self._patience.call(self._reader.read_lac)

    async def wait(self, lac: int, timeout_s: float) -> int:
        return await self._patience.call(lambda: self._reader.wait(lac, timeout_s))

    def follow(self) -> Following:
        return _Following(self._reader.follow(), self._patience)


class _Following:
    def __init__(self, following: Following, patience: _Patience) -> None:
        self._following = following
        self._patience = patience

    async def ready(self) -> Sequence[tuple[int, bytes]]:
        """Wait for the next entries. A call that was cancelled has taken none."""
        return await self._patience.call(self._following.ready)
