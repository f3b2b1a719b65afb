"""Learning about a cluster never blocks the event loop."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from bookie.client.bookies import MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.known_cluster import KnownCluster
from bookie.errors import NotEnoughBookies
from bookie.metadata import open_driver
from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint

ASKED: list[tuple[int, list[str]]] = []


class Somewhere:
    """A resolver with a single rack. It records the threads on which it was made and called."""

    by_name = True

    def __init__(self, _: ClientConfig) -> None:
        ASKED.append((threading.get_ident(), []))

    def resolve(self, hosts: Sequence[str]) -> list[str | None]:
        """Return the rack for each host."""
        ASKED.append((threading.get_ident(), list(hosts)))
        return ["/rack"] * len(hosts)


class ByHost:
    """A resolver that finds a rack for each host by its name."""

    by_name = True

    def __init__(self, _: ClientConfig) -> None:
        """Take no settings."""

    def resolve(self, hosts: Sequence[str]) -> list[str | None]:
        """Return the racks."""
        return [f"/rack-of-{host}" for host in hosts]


def test_bookies_with_ids_are_in_the_racks_of_their_hosts(tmp_path: Path) -> None:
    """The host is in the registration, and a ledger whose racks are enforced can be created on such bookies."""
    driver = open_driver(f"lmdb://{tmp_path}")
    driver.start()
    driver.cluster.initialize()

    async def main() -> None:
        store = await MetadataStore.open(driver)
        for bookie, host in (("one", "h1"), ("two", "h2"), ("three", "h1")):
            info = BookieServiceInfo((bookie_endpoint(host, 3181),)).to_bytes()
            await store.run(driver.registrations.register, bookie, info, read_only=False)
        config = ClientConfig(resolver=f"{__name__}:ByHost", racks_enforced=True)
        known = await KnownCluster.over(store, config, Random(1))
        await known.start()
        ensemble = known.context.placement.new_ensemble(2, 2, 2)
        assert "two" in ensemble
        with pytest.raises(NotEnoughBookies):
            known.context.placement.new_ensemble(2, 2, 2, excluded={"two"})
        await known.close()
        await store.close()

    asyncio.run(main())


def test_where_we_stand_is_asked_beside_the_loop(tmp_path: Path) -> None:
    """The client's own location is looked up off the event loop, since a script or a name server may take a minute."""
    driver = open_driver(f"lmdb://{tmp_path}")
    driver.start()
    driver.cluster.initialize()
    driver.stop()
    ASKED.clear()

    async def main() -> None:
        store = await MetadataStore.open(open_driver(f"lmdb://{tmp_path}"))
        known = await KnownCluster.over(store, ClientConfig(resolver=f"{__name__}:Somewhere"), Random(1))
        await known.close()
        await store.close()

    asyncio.run(main())
    assert [bool(hosts) for _, hosts in ASKED] == [False, True]
    assert threading.get_ident() not in {thread for thread, _ in ASKED}
