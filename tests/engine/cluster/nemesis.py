"""The faults of a cluster's world: each begins at a time, lasts a while, and is healed in the end."""

import asyncio
import random
from typing import TYPE_CHECKING

from tests.engine.cluster.bookies import Bookie
from tests.engine.cluster.draw import upgraded
from tests.engine.runtime import NEVER

if TYPE_CHECKING:
    from tests.engine.cluster.world import ClusterWorld

__all__ = ["ClusterNemesis"]

KINDS = (
    "kill", "kill", "kill", "power", "cut_off", "cut_off", "one_way", "pause", "full", "store_trouble", "store_away",
    "upgrade",
)  # fmt: skip
LOOK_S = 0.05
CLIENTS = 0
"""The process of the clients."""


class ClusterNemesis:
    """Schedules its faults when it is created."""

    def __init__(self, world: "ClusterWorld", rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._healing = False
        self._upgrading: asyncio.Task[None] | None = None
        kinds = world.draw.fault_kinds or tuple(rng.sample(KINDS, rng.randint(1, 4)))
        for _ in range(world.draw.faults):
            begin = world.first_s + rng.random() * world.draw.lasts_s
            length = rng.random() ** 2 * world.draw.lasts_s
            world.loop.call_later(begin, self._begin, rng.choice(kinds), length)

    def heal(self) -> None:
        """End all faults now, and start the bookies that are down."""
        self._healing = True
        world = self._world
        for bookie in world.bookies.values():
            for sides in ((CLIENTS, bookie.process), (bookie.process, CLIENTS)):
                world.runtime.cut_off(*sides, 0)
            world.runtime.pause(bookie.process, 0)
            world.runtime.fill(bookie.process, 0)
            world.runtime.kill(bookie.process, NEVER >> 1)
        world.paused_until.clear()
        world.restart_soon()
        for store in world.stores:
            store.fail_rate = store.lost_answer_rate = store.stall_rate = 0.0
            if store.alive:
                store.back()

    def _begin(self, kind: str, length: float) -> None:
        if not self._healing:
            getattr(self, f"_{kind}")(self._world.bookies[self._rng.choice(sorted(self._world.bookies))], length)

    def _kill(self, bookie: Bookie, length: float) -> None:
        """Kill the process at one of its next calls; it comes back after a while."""
        if bookie.up:
            self._world.down_s[bookie.name] = length
            self._world.runtime.kill(bookie.process, self._rng.randrange(1, 200))

    def _power(self, bookie: Bookie, length: float) -> None:
        """As a kill, and what is not synced is lost."""
        if bookie.up:
            self._world.powerless.add(bookie.name)
            self._kill(bookie, length)

    def _cut_off(self, bookie: Bookie, length: float) -> None:
        """Let nothing arrive in either direction."""
        self._block(bookie, length, to_bookie=True, to_client=True)

    def _one_way(self, bookie: Bookie, length: float) -> None:
        to_bookie = self._rng.random() < 0.5
        self._block(bookie, length, to_bookie=to_bookie, to_client=not to_bookie)

    def _pause(self, bookie: Bookie, length: float) -> None:
        """Let the whole process stand still."""
        runtime = self._world.runtime
        self._world.paused_until[bookie.name] = self._world.loop.time() + length
        runtime.pause(bookie.process, runtime.now() + int(length * 1e9))

    def _stall(self, _bookie: Bookie, length: float) -> None:
        """Let the process of the embedded store stand still, with all clients, for longer than a session."""
        runtime, draw = self._world.runtime, self._world.draw
        runtime.pause(CLIENTS, runtime.now() + int((2 * draw.session_s + 1 + length) * 1e9))

    def _full(self, bookie: Bookie, length: float) -> None:
        """Let the disk have no space."""
        runtime = self._world.runtime
        bookie.full_until_ns = runtime.now() + int(length * 1e9)
        runtime.fill(bookie.process, bookie.full_until_ns)

    def _store_trouble(self, _bookie: Bookie, length: float) -> None:
        store = self._rng.choice(self._world.stores)
        for name, rate in (("stall_rate", 0.5), ("fail_rate", 0.2), ("lost_answer_rate", 0.4)):
            setattr(store, name, rate * self._rng.random())
            self._world.loop.call_later(length, setattr, store, name, 0.0)
        store.stall_s = length

    def _store_away(self, _bookie: Bookie, length: float) -> None:
        """Cut a client off from the metadata store."""
        store = self._rng.choice(self._world.stores)
        store.away = True
        self._world.loop.call_later(length, store.back)

    def _upgrade(self, _bookie: Bookie, length: float) -> None:
        """Stop one bookie after the other, and start it with other settings."""
        if self._upgrading is None:
            self._upgrading = self._world.loop.create_task(self._upgrade_all(length / (1 + len(self._world.bookies))))

    async def _upgrade_all(self, pause_s: float) -> None:
        world = self._world
        for number, bookie in enumerate(world.bookies.values()):
            bookie.configure(upgraded(bookie.plan, world.seed * 31 + number, world.draw))
            world.down_s[bookie.name] = pause_s
            before = bookie.starts
            bookie.stop()
            while bookie.starts == before or not bookie.serving:
                if self._healing:
                    return
                await asyncio.sleep(LOOK_S)

    def _block(self, bookie: Bookie, length: float, *, to_bookie: bool, to_client: bool) -> None:
        cut_off = self._world.runtime.cut_off
        cut_off(CLIENTS, bookie.process, int(to_bookie))
        cut_off(bookie.process, CLIENTS, int(to_client))
        self._world.loop.call_later(length, cut_off, CLIENTS, bookie.process, 0)
        self._world.loop.call_later(length, cut_off, bookie.process, CLIENTS, 0)
