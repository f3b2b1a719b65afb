"""The clients of a cluster's world: those of tests/sim, and processes that run auto-recovery."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bookie.client.config import ClientConfig
from tests.sim.face import Client
from tests.sim.scenario import Scenario

if TYPE_CHECKING:
    from tests.engine.cluster.world import ClusterWorld

__all__ = ["ClusterScenario"]


class ClusterScenario(Scenario):
    """All clients of one world."""

    world: "ClusterWorld"
    patience_s = 400.0

    async def _actors(self) -> list[Coroutine[Any, Any, None]]:
        actors = await super()._actors()
        for number in range(self.world.draw.recoveries):
            who = f"recovery{number}"
            actors.append(self._recover_bookies(who, await self._client(who)))
        return actors

    async def _recover_bookies(self, who: str, client: Client) -> None:
        """Run auto-recovery while there are faults, and somewhat longer."""
        draw = self.world.draw
        ledger = await self._begin(who)
        with suppress(TimeoutError):
            async with asyncio.timeout(draw.begins_s + 2 * draw.lasts_s):
                await client.replicate(ledger, draw.lasts_s)
        self.waiting.discard(who)

    async def _client(self, who: str, config: ClientConfig | None = None) -> Client:
        world = self.world
        config = config or world.draw.config
        if not world.draw.deferred and world.rng.random() < world.draw.v2_share:
            config = replace(config, use_v2_wire_protocol=True)
        return await super()._client(who, config)
