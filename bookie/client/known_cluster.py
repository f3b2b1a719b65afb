"""What a client knows about its cluster: the registered bookies, their network locations and their free space.

Each client has one instance, and so has auto-recovery. It runs on the event loop.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Self

from bookie.client.bookies.client import BookieClient
from bookie.client.bookies.quarantine import WithoutQuarantined
from bookie.client.bookies.stores import MetadataStore
from bookie.client.config import ClientConfig
from bookie.client.contracts import Placement
from bookie.client.features import Features
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.members import Members
from bookie.client.placement.bookie_info import BookieInfoReader
from bookie.client.placement.factory import placement_for
from bookie.client.placement.newcomers import Newcomers

__all__ = ["KnownCluster"]

Listener = Callable[[frozenset[str], frozenset[str]], None]
"""Called with the writable and the read-only bookies."""


class KnownCluster:
    """The bookies of a cluster, kept up to date, with all that depends on them. Create it with `over`."""

    def __init__(
        self,
        store: MetadataStore,
        config: ClientConfig,
        random: Random,
        placement: Placement,
        features: Features,
        listener: Listener | None,
    ) -> None:
        """Use `over` instead. `placement` is the policy that is informed of changes, `features` has its switches."""
        self.store = store
        self.bookies = BookieClient(config, store.info, health_checks=store.health_checks)
        self._newcomers = Newcomers(placement, store.info)
        self._listener = listener
        self.writable: frozenset[str] = frozenset()
        self.read_only: frozenset[str] = frozenset()
        if config.health_check_enabled:
            placement = WithoutQuarantined(placement, self.bookies.excluded)
        self.context = ClientContext(config, self.bookies, store, placement, random, features=features)
        self.info = BookieInfoReader(config, self.bookies, placement)
        self._members = Members(store, self._changed)

    @classmethod
    async def over(
        cls, store: MetadataStore, config: ClientConfig, random: Random, listener: Listener | None = None
    ) -> Self:
        """Create an instance over an open metadata store, which the caller keeps open and closes.

        The placement policy asks the network location resolver for our own location. Since that may take a while, it
        is done on a thread of the store. `listener` is called after the policy was informed of a change. Raises
        ConfigurationError.
        """
        features = Features.named(config.features)
        clock = asyncio.get_running_loop().time
        placement = await store.run(placement_for, config, random, clock, features=features)
        return cls(store, config, random, placement, features, listener)

    async def start(self) -> None:
        """Learn which bookies are registered, and wait until the placement policy knows all of them.

        Raises MetadataStoreError, after which it can be called again.
        """
        await self._members.start()
        await self._newcomers.settled()
        self.info.start()

    async def close(self) -> None:
        """Stop watching and polling, and fail all outstanding requests with ClientClosed. Further calls do nothing."""
        await self.info.stop()
        self._members.close()
        self._newcomers.close()
        await self.bookies.close()

    def _changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        self.writable, self.read_only = writable, read_only
        self._newcomers(writable, read_only)
        self.info.members_changed(writable)
        if self._listener is not None:
            self._listener(writable, read_only)
