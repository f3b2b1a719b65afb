"""Learning about a cluster never blocks the event loop."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random

from bookie.client.bookies import MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.known_cluster import KnownCluster
from bookie.metadata import open_driver

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
