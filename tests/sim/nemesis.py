"""The faults of a world, as drawn for its seed: each begins, lasts a while, and is healed in the end.

The bookies that may lose data are chosen beforehand, one fewer than an ack quorum, which is what the protocol
survives.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim.draw import Draw
from tests.sim.model_bookie import ModelBookie
from tests.sim.network import Link

if TYPE_CHECKING:
    from tests.sim.world import World

__all__ = ["Nemesis"]


class Nemesis:
    """Schedules its faults when it is created."""

    def __init__(self, world: "World", draw: Draw, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._healing = False
        names = sorted(world.bookies)
        self._may_lose = rng.sample(names, max(0, min(len(names), draw.sizes[2] - 1)))
        for _ in range(draw.faults):
            kind = rng.choice(draw.kinds)
            begin = world.first_s + rng.random() * draw.lasts_s
            length = rng.random() ** 2 * draw.lasts_s
            world.loop.event(begin, self._begin, kind, length)

    def heal(self) -> None:
        """End all faults now."""
        self._healing = True
        for bookie in self._world.bookies.values():
            if not bookie.up:
                self._start(bookie)
            bookie.resume()
            bookie.slowed_s = 0.0
            bookie.eio_rate = bookie.rot_rate = bookie.refuse_rate = 0.0
            bookie.read_only = bookie.lies = False
        self._world.register()
        for link in self._world.links():
            link.heal()
        for store in self._world.stores:
            store.fail_rate = store.lost_answer_rate = store.stall_rate = 0.0
            if store.alive:
                store.back()

    def _begin(self, kind: str, length: float) -> None:
        if not self._healing:
            getattr(self, f"_{kind}")(length)

    # The faults, by the names of `draw.KINDS`.

    def _crash(self, length: float) -> None:
        self._down(self._bookie(), length)

    def _wipe(self, length: float) -> None:
        if self._may_lose and not self._healing:
            bookie = self._world.bookies[self._rng.choice(self._may_lose)]
            self._down(bookie, length)
            bookie.wipe()

    def _lie(self, length: float) -> None:
        """Let syncs keep nothing, and crash the bookie, which makes that visible."""
        if self._may_lose:
            bookie = self._world.bookies[self._rng.choice(self._may_lose)]
            bookie.lies = True
            self._world.loop.event(length, self._down, bookie, length)

    def _block(self, length: float) -> None:
        link = self._link()
        link.block(to_bookie=True, to_client=True, lossy=False)
        self._later(length, link.heal)

    def _one_way(self, length: float) -> None:
        link = self._link()
        to_bookie = self._rng.random() < 0.5
        link.block(to_bookie=to_bookie, to_client=not to_bookie, lossy=False)
        self._later(length, link.heal)

    def _lossy(self, length: float) -> None:
        link = self._link()
        way = self._rng.randrange(3)
        link.block(to_bookie=way != 0, to_client=way != 1, lossy=True)
        link.notice_s = length * 2 * self._rng.random()
        self._later(length, link.heal)

    def _cut_off(self, length: float) -> None:
        """Cut a client off from all bookies."""
        links = self._rng.choice(self._world.links_by_client())
        lossy = self._rng.random() < 0.5
        for link in links:
            link.block(to_bookie=True, to_client=True, lossy=lossy)
            self._later(length, link.heal)

    def _reset(self, _: float) -> None:
        self._link().reset()

    def _slow(self, length: float) -> None:
        link = self._link()
        before = link.base_s, link.jitter_s
        link.base_s += length * self._rng.random()
        link.jitter_s += length * self._rng.random()

        def back() -> None:
            link.base_s, link.jitter_s = before

        self._later(length, back)

    def _pause(self, length: float) -> None:
        bookie = self._bookie()
        if bookie.up:
            bookie.pause()
            self._later(length, bookie.resume)

    def _slow_disk(self, length: float) -> None:
        bookie = self._bookie()
        more_s = length * self._rng.random()
        bookie.slowed_s += more_s
        self._later(length, self._speed_up, bookie, more_s)

    def _speed_up(self, bookie: ModelBookie, by_s: float) -> None:
        bookie.slowed_s = max(0.0, bookie.slowed_s - by_s)

    def _eio(self, length: float) -> None:
        for bookie in self._some_bookies():
            self._while(length, bookie, "eio_rate", self._rng.choice((0.3, 1.0)))

    def _rot(self, length: float) -> None:
        for bookie in self._some_bookies():
            self._while(length, bookie, "rot_rate", self._rng.choice((0.3, 1.0)))

    def _refuse(self, length: float) -> None:
        self._while(length, self._bookie(), "refuse_rate", self._rng.choice((0.3, 1.0)))

    def _read_only(self, length: float) -> None:
        bookie = self._bookie()
        bookie.read_only = True
        self._later(length * self._rng.random(), self._world.register)

        def back() -> None:
            bookie.read_only = False
            self._world.register()

        self._later(length, back)

    def _store_away(self, length: float) -> None:
        """Let a client have no session."""
        store = self._rng.choice(self._world.stores)
        store.away = True
        self._later(length, store.back)

    def _store_trouble(self, length: float) -> None:
        store = self._rng.choice(self._world.stores)
        for name, rate in (("stall_rate", 0.5), ("fail_rate", 0.2), ("lost_answer_rate", 0.4)):
            setattr(store, name, rate * self._rng.random())
            self._later(length, setattr, store, name, 0.0)
        store.stall_s = length

    # Inside.

    def _bookie(self) -> ModelBookie:
        return self._world.bookies[self._rng.choice(sorted(self._world.bookies))]

    def _some_bookies(self) -> list[ModelBookie]:
        names = sorted(self._world.bookies)
        return [self._world.bookies[name] for name in self._rng.sample(names, self._rng.randint(1, len(names)))]

    def _link(self) -> Link:
        return self._rng.choice(self._rng.choice(self._world.links_by_client()))

    def _later(self, delay: float, what: Callable[..., object], *args: object) -> None:
        self._world.loop.event(delay, lambda: None if self._healing else what(*args))

    def _while(self, length: float, bookie: ModelBookie, name: str, value: float) -> None:
        setattr(bookie, name, value)
        self._later(length, setattr, bookie, name, 0.0)

    def _down(self, bookie: ModelBookie, length: float) -> None:
        if not bookie.up or self._healing:
            return
        bookie.crash()
        for link in self._world.links():
            if link.bookie is bookie:
                link.reset()
        self._later(length * self._rng.random(), self._world.register)
        self._later(length, self._start, bookie)

    def _start(self, bookie: ModelBookie) -> None:
        if not bookie.up:
            bookie.start(self._world.store.served(bookie.name))
            bookie.lies = False
            self._world.register()
