"""All operations on one of our bookies, in both protocols, and what happens when no bookie is there."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bookie.client import Flags
from bookie.client.bookies import BookieClient, MetadataStore
from bookie.client.config import ClientConfig
from bookie.errors import (
    BookieUnavailable,
    ClientClosed,
    IllegalOperation,
    IncorrectParameter,
    LedgerFenced,
    NoSuchEntry,
    NoSuchLedger,
    UnauthorizedAccess,
)
from bookie.metadata import open_driver
from bookie.metadata.bookies.service_info import OUR_PROPERTIES, BookieServiceInfo, bookie_endpoint
from tests.client.bookies.senders import DIGEST, Owner, records, sealed
from tests.fixtures.bookies import BookieProcess
from tests.hostile.local import local_bookie

KEY = DIGEST.master_key
Bookies = Callable[..., list[BookieProcess]]


@pytest.fixture(params=["V2", "V3"])
def config(request: pytest.FixtureRequest) -> ClientConfig:
    """The settings, for either protocol."""
    return ClientConfig(use_v2_wire_protocol=request.param == "V2", read_timeout_s=60, add_timeout_s=60)


@dataclass(frozen=True)
class Here:
    """A bookie in this process, as if it were registered."""

    id: str
    port: int

    async def registered(self, _: str) -> bytes:
        """Return what our bookies publish."""
        return BookieServiceInfo((bookie_endpoint("127.0.0.1", self.port),), OUR_PROPERTIES).to_bytes()


@pytest.fixture
def bookie(tmp_path: Path) -> Iterator[Here]:
    """A bookie whose id is not its address."""
    with local_bookie(tmp_path) as bookie:
        yield Here("bookie-one", bookie.address[1])


def with_client(config: ClientConfig, bookie: Here, work: Callable[[BookieClient], Coroutine[Any, Any, None]]) -> None:
    """Run `work` with a client."""

    async def main() -> None:
        async with BookieClient(config, bookie.registered) as client:
            await work(client)

    asyncio.run(main())


def test_a_ledgers_life(bookie: Here, config: ClientConfig) -> None:
    """Adds in bulk from two senders, single adds, single reads and batch reads, a fence, and refusals all work."""

    async def work(client: BookieClient) -> None:
        one, two = Owner(), Owner()
        senders = [client.adds(bookie.id, 7, KEY, one), client.adds(bookie.id, 8, KEY, two)]
        for start in range(0, 3000, 100):
            for sender, ledger in zip(senders, (7, 8), strict=True):
                sender.send(*records(ledger, range(start, start + 100)))
        await asyncio.gather(one.until(3000), two.until(3000))
        for owner in (one, two):
            assert owner.codes == {entry: [0] for entry in range(3000)}
            assert not owner.errors
        await client.add(bookie.id, 7, 3000, sealed(7, 3000, b"last"), KEY)
        assert client.batches(bookie.id)
        batch = await client.batch_read(bookie.id, 7, 10, 500, 1 << 20)
        batch.verify(DIGEST)
        assert [bytes(payload).rstrip(b".") for _, payload in batch.payloads(DIGEST)] == [
            str(entry).encode() for entry in range(10, 510)
        ]
        assert (batch.lac is None) == config.use_v2_wire_protocol
        answer = await client.read(bookie.id, 7, 3)
        assert (answer.entry, answer.stored) == (3, sealed(7, 3, b"3".ljust(100, b".")))
        assert (await client.read(bookie.id, 7, -1)).entry == 3000
        with pytest.raises(NoSuchEntry, match=f"{bookie.id}: read of ledger 7, entry 5000"):
            await client.read(bookie.id, 7, 5000)
        with pytest.raises(NoSuchLedger, match="ledger 99"):
            await client.batch_read(bookie.id, 99, 0, 10, 1000)
        with pytest.raises(UnauthorizedAccess):
            await client.add(bookie.id, 7, 3001, sealed(7, 3001, b""), b"x" * 20)
        fenced = await client.read(bookie.id, 7, -1, flags=Flags.FENCE | Flags.HIGH_PRIORITY, master_key=KEY)
        assert fenced.entry == 3000
        with pytest.raises(LedgerFenced, match="ledger 7, entry 3001"):
            await client.add(bookie.id, 7, 3001, sealed(7, 3001, b""), KEY)
        senders[0].send(*records(7, [3001, 3002]))
        await one.until(3002)
        assert one.codes[3001] == one.codes[3002] == [LedgerFenced.code]
        await client.add(bookie.id, 7, 3001, sealed(7, 3001, b""), KEY, flags=Flags.RECOVERY_ADD)
        assert client.pending(bookie.id) == 0

    with_client(config, bookie, work)


def test_what_only_v3_has(bookie: Here, config: ClientConfig) -> None:
    """With V2 configured, V3 operations use another connection; a long poll in V2 is a read of the last entry."""

    async def work(client: BookieClient) -> None:
        for entry in range(3):
            await client.add(bookie.id, 7, entry, sealed(7, entry, b"x"), KEY)
        packet = DIGEST.seal_lac(7, 2)
        await client.write_lac(bookie.id, 7, 2, packet, KEY)
        assert await client.read_lac(bookie.id, 7) == (packet, sealed(7, 2, b"x"))
        await client.force(bookie.id, 7)
        await client.write_close(bookie.id, 7, KEY)
        info = await client.bookie_info(bookie.id)
        assert info.total > info.free > 0
        assert (info.adds, info.read_only) == (3, False)
        assert info.uptime_ms is not None
        assert info.uptime_ms > 0
        assert (await client.list_entries(bookie.id, 7)).count() == 3
        polled = await client.wait_for_lac(bookie.id, 7, 1, 10_000)
        assert polled.entry == 2
        if config.use_v2_wire_protocol:
            with pytest.raises(IllegalOperation, match="deferred sync"):
                client.adds(bookie.id, 7, KEY, Owner(), deferred_sync=True)
            return
        owner = Owner()
        client.adds(bookie.id, 9, KEY, owner, deferred_sync=True).send(*records(9, range(10)))
        await owner.until(10)
        assert set(map(tuple, owner.codes.values())) == {(0,)}
        await client.force(bookie.id, 9)

    with_client(config, bookie, work)


def test_nobody_there(config: ClientConfig) -> None:
    """An address without a listener, an invalid id and a request that is too large raise errors and end the sender."""

    async def main() -> None:
        async with BookieClient(config) as client:
            owner = Owner()
            sender = client.adds("127.0.0.1:1", 7, KEY, owner)
            sender.send(*records(7, range(5)))
            with pytest.raises(
                BookieUnavailable, match=r"127\.0\.0\.1:1: read of ledger 7, entry 0: .*the bookie is down"
            ):
                await client.read("127.0.0.1:1", 7, 0)
            await owner.until(1)
            assert [type(error) for error in owner.errors] == [BookieUnavailable]
            sender.send(*records(7, range(5)))
            with pytest.raises(BookieUnavailable, match="registered"):
                await client.read("some-bookie", 7, 0)
            with pytest.raises(IncorrectParameter, match="ledger 7, entry 0: its frame has"):
                await client.add("127.0.0.1:1", 7, 0, bytes(6 << 20), KEY)
            assert client.pending("127.0.0.1:1") == 0

    asyncio.run(main())


@pytest.mark.parametrize("config", ["V3"], indirect=True)
def test_closing(bookie: Here, config: ClientConfig) -> None:
    """Outstanding requests fail with ClientClosed, and so does every later one."""

    async def work(client: BookieClient) -> None:
        await client.add(bookie.id, 7, 0, sealed(7, 0, b"x"), KEY)
        owner = Owner()
        client.adds(bookie.id, 7, KEY, owner).send(*records(7, range(1, 5)))
        reads = [asyncio.ensure_future(client.read(bookie.id, 7, entry)) for entry in range(5)]
        await asyncio.sleep(0)
        await client.close()
        for result in await asyncio.gather(*reads, return_exceptions=True):
            assert isinstance(result, ClientClosed)
        assert [type(error) for error in owner.errors] == [ClientClosed]
        with pytest.raises(ClientClosed):
            await client.read(bookie.id, 7, 0)
        with pytest.raises(ClientClosed):
            client.adds(bookie.id, 7, KEY, owner)
        await client.close()

    with_client(config, bookie, work)


@pytest.mark.thorough
def test_a_bookie_that_goes_and_comes_back(bookies: Bookies) -> None:
    """When a registered bookie stops, outstanding requests fail once; the next request connects again."""
    store_owner, bookie = bookies(2)
    uri = f"grpc://127.0.0.1:{store_owner.settings['adminPort']}"

    async def work(client: BookieClient) -> None:
        owner = Owner()
        sender = client.adds(bookie.id, 7, KEY, owner)
        sender.send(*records(7, range(100)))
        await owner.until(100)
        assert len(await client.batch_read(bookie.id, 7, 0, 100, 1 << 20)) == 100
        await asyncio.to_thread(bookie.stop)  # after a kill its registration would last as long as its session
        sender.send(*records(7, range(100, 1000)))
        with pytest.raises(BookieUnavailable, match="ledger 7"):
            await client.read(bookie.id, 7, 0)
        await owner.until(1000)
        assert [type(error) for error in owner.errors] == [BookieUnavailable]
        await asyncio.to_thread(bookie.start)
        assert (await client.read(bookie.id, 7, 0)).entry == 0
        with pytest.raises(BookieUnavailable, match="nobody: the bookie is down: it is not registered"):
            await client.read("nobody", 7, 0)

    async def main() -> None:
        store = await MetadataStore.open(open_driver(uri))
        try:
            async with BookieClient(ClientConfig(), store.info) as client:
                await work(client)
        finally:
            await store.close()

    asyncio.run(main())
