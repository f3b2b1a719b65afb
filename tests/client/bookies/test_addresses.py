"""Where bookies are found while the metadata store fails or hangs."""

import asyncio

import pytest

from bookie.client.bookies.addresses import STORE_WAIT_S, resolver
from bookie.errors import BookieUnavailable, MetadataStoreError
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint
from tests.sim.loop import VirtualLoop

PROPERTIES = {"pybk.v3.ext": "batchRead"}


class Store:
    """A store that can fail or hang, with one bookie."""

    def __init__(self) -> None:
        self.port = 3181
        self.trouble = ""

    async def registered(self, _: str) -> bytes | None:
        """Return what the bookie publishes."""
        if self.trouble == "hangs":
            await asyncio.get_running_loop().create_future()
        if self.trouble == "fails":
            raise MetadataStoreError("no answer")
        if not self.port:
            return None
        return BookieServiceInfo((bookie_endpoint("10.0.0.1", self.port),), PROPERTIES).to_bytes()


@pytest.mark.parametrize("trouble", ["fails", "hangs"])
def test_a_bookie_that_was_found_before_is_found_again(trouble: str) -> None:
    """Without the store the last known registration counts, after a second; with it, the present one."""
    loop = VirtualLoop()

    async def scenario() -> None:
        store = Store()
        find = resolver(store.registered)
        found = await find("bookie-one")
        store.port, store.trouble = 4000, trouble
        began = loop.time()
        assert await find("bookie-one") == found
        assert loop.time() - began <= STORE_WAIT_S + 0.01
        store.trouble = ""
        again = await find("bookie-one")
        end = again.info.client_endpoint()
        assert end is not None
        assert (end.port, again.read) == (4000, True)
        store.port = 0
        with pytest.raises(BookieUnavailable, match="is down: it is not registered"):
            await find("bookie-one")

    loop.run(scenario())


@pytest.mark.parametrize("trouble", ["fails", "hangs"])
def test_a_bookie_that_was_never_found(trouble: str) -> None:
    """Without the store the id is the address, if it is one, but nothing is known about extensions."""
    loop = VirtualLoop()

    async def scenario() -> None:
        store = Store()
        store.trouble = trouble
        find = resolver(store.registered)
        found = await find("10.0.0.2:3181")
        end = found.info.client_endpoint()
        assert end is not None
        assert (end.host, end.port, found.read) == ("10.0.0.2", 3181, False)
        if trouble == "fails":
            with pytest.raises(MetadataStoreError):
                await find("bookie-two")

    loop.run(scenario())
