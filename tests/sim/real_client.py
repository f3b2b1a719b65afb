"""The client under test in a modelled world: its writers, recoveries and readers, none of them replaced."""

import asyncio
import contextlib
import random
from collections.abc import Sequence

from bookie.client.aio.reading import Batches
from bookie.client.aio.scope import Scope
from bookie.client.config import ClientConfig
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.creating import NewLedger, create_ledger
from bookie.client.ledgers.members import Members
from bookie.client.ledgers.opening import Credentials, open_reader
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.ledgers.writer import LedgerWriter
from bookie.client.placement.factory import placement_for
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigest
from tests.sim.client_bookies import ClientBookies
from tests.sim.direct import DirectWriter
from tests.sim.face import Client, MakeClient
from tests.sim.planted import NOTHING, Planted
from tests.sim.replicator import replicate
from tests.sim.world import World

__all__ = ["real_client", "RealClient"]


def real_client(planted: Planted = NOTHING) -> MakeClient:
    """Return a real client, for `play`."""

    async def make(world: World, who: str, config: ClientConfig, rng: random.Random) -> Client:
        if planted.between is not None:
            planted.between(world.clients[who], world.store_of(who), world.draw.sizes)
        bookies, store = world.clients[who], world.store_of(who)
        placement = placement_for(config, rng, world.loop.time)
        context = ClientContext(config, bookies, store, placement, rng, lambda: int(world.loop.time() * 1000))
        await Members(store, placement.bookies_changed).start()
        return RealClient(context, bookies, world.draw.direct_s if who == "writer" else 0.0)

    return make


class RealClient:
    """What the public client adds to the protocol, without its driver and sockets.

    With modelled bookies and `direct_s`, adds are direct.
    """

    def __init__(self, context: ClientContext, bookies: ClientBookies | None = None, direct_s: float = 0.0) -> None:
        self._context = context
        self._bookies = bookies
        self._direct_s = direct_s

    async def create(
        self,
        sizes: tuple[int, int, int],
        digest: DigestType,
        password: bytes,
        *,
        advanced: bool = False,
        deferred: bool = False,
    ) -> "_Writer":
        ensemble, write, ack = sizes
        wanted = NewLedger(
            ensemble_size=ensemble,
            write_quorum=write,
            ack_quorum=ack,
            digest_type=StoredDigest(digest),
            password=password,
        )
        known = await create_ledger(self._context, wanted)
        writer = LedgerWriter(
            known, Digest.of(digest, password), self._context, advanced=advanced, deferred_sync=deferred
        )
        writer.start()
        direct = None
        if self._bookies is not None and self._direct_s and writer.plain:
            direct = DirectWriter(writer, self._bookies, self._direct_s)
        return _Writer(writer, direct)

    async def open(self, ledger: int, password: bytes, *, recovery: bool) -> "_Reader":
        context = self._context
        reader = await open_reader(context, ledger, Credentials(password), recovery=recovery)
        return _Reader(reader, context.config.read_timeout_s)

    async def replicate(self, ledger: int, patience_s: float) -> None:
        await replicate(self._context, ledger, patience_s)

    async def close(self) -> None:
        await self._context.bookies.close()
        await self._context.metadata.close()


class _Writer:
    def __init__(self, writer: LedgerWriter, direct: DirectWriter | None) -> None:
        self._writer = writer
        self._direct = direct

    @property
    def ledger(self) -> int:
        return self._writer.ledger

    async def append(self, payload: bytes, entry: int = -1) -> "asyncio.Future[int]":
        add = None if self._direct is None else await self._direct.append(payload)
        if add is None:
            add = await self._writer.append_async(payload, entry)

        pending = add

        async def outcome() -> int:
            return await pending

        return asyncio.ensure_future(outcome())

    async def force(self) -> int:
        await self._writer.force()
        return self._writer.last_add_confirmed

    async def close(self) -> tuple[int, int]:
        metadata = await self._writer.close()
        return metadata.last_entry, metadata.length


class _Reader:
    def __init__(self, reader: LedgerReader, limit_s: float) -> None:
        self._reader = reader
        self._limit_s = limit_s

    @property
    def lac(self) -> int:
        return self._reader.view.lac

    @property
    def closed(self) -> bool:
        return self._reader.view.closed

    @property
    def length(self) -> int:
        return self._reader.view.length

    async def read(self, first: int, last: int) -> Sequence[tuple[int, bytes]]:
        return [(entry.id, bytes(entry.data)) for entry in await self._reader.read(first, last)]

    async def batch_read(self, first: int, count: int, size: int) -> Sequence[tuple[int, bytes]]:
        return [(entry.id, bytes(entry.data)) for entry in await self._reader.batch_read(first, count, size)]

    async def read_lac(self) -> int:
        return await self._reader.read_last_add_confirmed()

    async def wait(self, lac: int, timeout_s: float) -> int:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                found = await self._reader.read_last_add_confirmed_and_entry(
                    lac + 1, int(min(timeout_s, self._limit_s / 2) * 1000)
                )
                return found.lac
        return self.lac

    def follow(self) -> "_Following":
        return _Following(Batches(Scope(), self._reader.follow(0)))


class _Following:
    """The public iterator of a read handle."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    async def ready(self) -> Sequence[tuple[int, bytes]]:
        return [(entry.id, bytes(entry.data)) for batch in await self._batches.ready() for entry in batch]
