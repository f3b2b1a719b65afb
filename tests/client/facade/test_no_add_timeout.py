"""Adds without a time limit to bookies that accept connections and never answer: whoever gives up is not held."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from bookie.client import BookKeeper as ThreadsBookKeeper
from bookie.client.aio import BookKeeper
from bookie.client.bookies.client import BookieClient
from bookie.errors import ClientClosed, LedgerClosed, NoSuchEntry, NoSuchLedger
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.thorough

WIRE = pytest.mark.parametrize("v2", [False, True], ids=["v3", "v2"])
WAIT_S = 20


@pytest.fixture
def silent(cluster: list[BookieProcess]) -> Iterator[None]:
    """Two of the bookies do not answer; the first one has the metadata store."""
    for bookie in cluster[1:]:
        bookie.freeze()
    yield
    for bookie in cluster[1:]:
        bookie.thaw()


async def stored(bookie: str, ledger: int, entry: int) -> None:
    """Wait until the bookie that answers has an entry, which was sent to the others at the same time."""
    async with BookieClient() as client, asyncio.timeout(WAIT_S):
        while True:
            with contextlib.suppress(NoSuchLedger, NoSuchEntry):
                await client.read(bookie, ledger, entry)
                return


@WIRE
@pytest.mark.parametrize("how", ["close", "cancel", "stop"])
@pytest.mark.usefixtures("silent")
def test_asyncio(uri: str, cluster: list[BookieProcess], v2: bool, how: str) -> None:
    """Closing the ledger or the client ends pending adds; a cancelled add ends at once, and neither close waits."""

    async def scenario() -> None:
        bk = BookKeeper(uri, addEntryTimeoutSec=0, useV2WireProtocol=v2)
        await bk.start()
        ledger = await bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2)
        adds = [asyncio.ensure_future(ledger.append(b"0")), ledger.append_async(b"1")]
        await stored(cluster[0].id, ledger.id, 1)
        assert not any(add.done() for add in adds)
        async with asyncio.timeout(WAIT_S):
            if how == "cancel":
                for add in adds:
                    add.cancel()
                await asyncio.wait(adds)
            if how != "stop":
                await ledger.close()
            await bk.close()
            expected = {"close": LedgerClosed, "cancel": asyncio.CancelledError, "stop": ClientClosed}[how]
            for error in await asyncio.gather(*adds, return_exceptions=True):
                assert isinstance(error, expected)

    asyncio.run(scenario())


@WIRE
@pytest.mark.parametrize("how", ["close", "stop"])
@pytest.mark.usefixtures("silent")
def test_threads(uri: str, v2: bool, how: str) -> None:
    """The same for the client for threads."""
    bk = ThreadsBookKeeper(uri, addEntryTimeoutSec=0, useV2WireProtocol=v2)
    bk.start()
    ledger = bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2)
    add = ledger.append_async(b"0")
    if how == "close":
        ledger.close(timeout=WAIT_S)
    bk.close()
    with pytest.raises(LedgerClosed if how == "close" else ClientClosed):
        add.result(WAIT_S)
