"""One run of a scenario: the client's policy places ledgers, bytes are counted, bookies fill up and join.

Time advances in steps of many ledgers. Within a step, weights are constant: clients know the free space of their last
poll. A full bookie stops being a candidate at the end of a step, and becomes one again when expired ledgers have freed
a twentieth of its disk. The bytes of a ledger count from the step in which it is created: ledgers are assumed to be
written faster than disks fill up. One thread. Memory is steps x bookies x 8 bytes if ledgers expire, else some tens of
bytes for each ledger of a step.
"""

import math
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bookie.client.placement.base import Policy
from bookie.client.placement.bulk import Bulk
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import NotEnoughBookies
from bookie.spark.simulation.scenario import Scenario

__all__ = ["simulate"]

Floats = NDArray[np.float64]
STEPS_MIN = 200
LEDGERS_A_STEP_MAX = 200_000
WINDOWS = 50
"""The number of time windows in which the course of a run is reported."""
BACK_BELOW = 0.05
DAY_S = 86400.0


class SimulatedCluster:
    """The state of a run: bookies, their disks, and what clients know about them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        topology = scenario.topology
        seeds = np.random.SeedSequence(scenario.seed).spawn(3)
        start, self.sizes, self.choices = (np.random.Generator(np.random.PCG64(one)) for one in seeds)
        self.disks = topology.disks()
        self.used = topology.used(start)
        self.here = np.arange(topology.bookies_max) < topology.bookies
        self.full = np.zeros(topology.bookies_max, dtype=bool)
        self.names = [f"b{at:06}" for at in range(topology.bookies_max)]
        self.place = {name: at for at, name in enumerate(self.names)}
        self.policy: Policy = scenario.placement(
            {name: self._rack(at % topology.racks) for at, name in enumerate(self.names)}
        )
        self.known = np.zeros(topology.bookies_max)
        """The free bytes of each bookie as of the last poll; 0: not known."""
        load = scenario.load
        mean = load.bytes_per_s * load.write_quorum / topology.bookies
        self.background = np.where(np.arange(topology.bookies_max) % 10 == 0, load.background * mean, 0.0)
        """The bytes per second that others add at each bookie."""
        self.brought = np.zeros(topology.bookies_max)
        """The bytes of ledgers since the last poll."""
        self.rates = np.full(topology.bookies_max, np.nan)
        """The bytes per second that each bookie told at the last poll."""
        self._bulk: Bulk | None = None
        self.members_changed()

    def _rack(self, at: int) -> str:
        """Return the rack of a bookie; policies with two levels get three regions or zones."""
        return f"/p{at % 3}/rack{at}" if self.scenario.policy in {"region", "zone"} else f"/rack{at}"

    def members_changed(self) -> None:
        """Update the candidates: clients see at once which bookies joined or became read-only, and poll new ones."""
        new = self.here & (self.known == 0)
        self.known[new] = (self.disks - self.used)[new]
        writable = frozenset(self.names[at] for at in np.flatnonzero(self.here & ~self.full))
        self.policy.bookies_changed(writable, frozenset(self.names[at] for at in np.flatnonzero(self.full)))
        self._tell()

    def poll(self, elapsed_s: float) -> None:
        """Let all clients poll the free space and the load of all bookies, which is the mean since the last poll."""
        self.rates = np.where(self.here, self.brought / elapsed_s + self.background, np.nan)
        self.brought[:] = 0
        self.known = np.where(self.here, np.maximum(self.disks - self.used, 1.0), 0.0)
        self._tell()

    def _tell(self) -> None:
        self.policy.info_changed({self.names[at]: self._told(int(at)) for at in np.flatnonzero(self.here)})
        self._bulk = None

    def _told(self, at: int) -> BookieInfo:
        rate = float(self.rates[at])
        return BookieInfo(int(self.disks[at]), int(self.known[at]), adds_per_s=None if math.isnan(rate) else rate)

    def step(self, ledgers: int) -> Floats:
        """Place a number of new ledgers and return the bytes that they add to each bookie.

        Raises:
            NotEnoughBookies: there are too few writable bookies.
        """
        load = self.scenario.load
        if self._bulk is None:
            self._bulk = Bulk(self.policy, self.choices)
        chosen = self._bulk.ensembles(ledgers, load.ensemble, load.write_quorum)
        sigma = load.spread
        sizes = self.sizes.lognormal(math.log(load.ledger_bytes) - sigma * sigma / 2, sigma, ledgers)
        share = np.repeat(sizes * load.write_quorum / load.ensemble, load.ensemble)
        counted = np.bincount(chosen.ravel(), weights=share, minlength=len(self._bulk.writable))
        brought = np.zeros(len(self.names))
        brought[[self.place[one] for one in self._bulk.writable]] = counted
        return brought

    def settle(self) -> bool:
        """Make full bookies read-only, and those with space again writable; return whether any changed."""
        at = self.scenario.topology.full_at
        share = self.used / self.disks
        full = (share >= at) | (self.full & (share >= at - BACK_BELOW))
        changed = bool((full != self.full).any())
        self.full = full
        return changed


class Course:
    """The course of a run, by time windows."""

    def __init__(self, world: SimulatedCluster) -> None:
        self.rows: list[dict[str, float]] = []
        self._world = world
        self._brought = np.zeros(len(world.names))
        self._since = 0.0
        self.first_full_s: float | None = None
        self.filled_at_first_full: float | None = None

    def took(self, brought: Floats) -> None:
        """Add the bytes of one step."""
        self._brought += brought

    def look(self, now: float) -> None:
        """Record the end of a window."""
        world = self._world
        here, topology = world.here, world.scenario.topology
        share = (world.used / world.disks)[here]
        open_ones = here & ~world.full
        mean = float(self._brought[open_ones].mean()) if open_ones.any() else 0.0
        load = (self._brought + world.background * (now - self._since))[open_ones]
        joined = open_ones & (np.arange(len(here)) >= topology.bookies)
        old = open_ones & ~joined
        old_mean = float(self._brought[old].mean()) if old.any() else 0.0
        self.rows.append({
            "day": now / DAY_S,
            "filled": float(world.used[here].sum() / world.disks[here].sum()),
            "filled_min": float(share.min()),
            "filled_max": float(share.max()),
            "spread": float(share.std()),
            "full": int(world.full.sum()),
            "hottest": float(self._brought[open_ones].max() / mean) if mean else 0.0,
            "load_spread": float(load.std() / load.mean()) if load.sum() else 0.0,
            "busiest": float(load.max() / load.mean()) if load.sum() else 0.0,
            "joined_over_old": float(self._brought[joined].mean() / old_mean) if joined.any() and old_mean else 0.0,
        })  # fmt: skip
        self._brought[:] = 0
        self._since = now

    def noted(self, now: float) -> None:
        """Record, after each step, when the first bookie became full."""
        world = self._world
        if self.first_full_s is None and world.full.any():
            self.first_full_s = now
            self.filled_at_first_full = float(world.used[world.here].sum() / world.disks[world.here].sum())


def simulate(scenario: Scenario, progress: Callable[[float], None] = lambda _share: None) -> dict[str, Any]:
    """Simulate a run; return its final figures, and its course in time windows. Days are modelled time."""
    world, load = SimulatedCluster(scenario), scenario.load
    course = Course(world)
    steps = max(STEPS_MIN, math.ceil(load.duration_s / scenario.poll_s), math.ceil(load.ledgers / LEDGERS_A_STEP_MAX))
    steps = min(steps, load.ledgers)
    joining = sorted(scenario.topology.growth, key=lambda one: one.after)
    joined = scenario.topology.bookies
    expiring: deque[tuple[float, Floats]] = deque()
    polled = now = 0.0
    stopped = ""
    written = 0
    for step in range(steps):
        count = load.ledgers * (step + 1) // steps - written
        while joining and written >= joining[0].after * load.ledgers:
            more = joining.pop(0).bookies
            world.here[joined : joined + more] = True
            joined += more
            world.members_changed()
        if now - polled >= scenario.poll_s:
            world.poll(now - polled)
            polled = now
        try:
            brought = world.step(count)
        except NotEnoughBookies as error:
            stopped = str(error)
            break
        written += count
        now = load.duration_s * written / load.ledgers
        world.used += brought
        world.brought += brought
        course.took(brought)
        if load.retention_s:
            expiring.append((now + load.retention_s, brought))
            while expiring and expiring[0][0] <= now:
                world.used -= expiring.popleft()[1]
        if world.settle():
            world.members_changed()
        course.noted(now)
        if (step + 1) * WINDOWS // steps != step * WINDOWS // steps:
            course.look(now)
            progress(written / load.ledgers)
    return {**_facts(scenario, course, written, now, stopped), "course": course.rows}


def _facts(scenario: Scenario, course: Course, written: int, now: float, stopped: str) -> dict[str, Any]:
    rows = course.rows
    grown = [row for row in rows if row["joined_over_old"]]
    return {
        "scenario": scenario.name,
        "ledgers": written,
        "days": now / DAY_S,
        "first_full_day": None if course.first_full_s is None else course.first_full_s / DAY_S,
        "filled_at_first_full": course.filled_at_first_full,
        "out_of_bookies_day": now / DAY_S if stopped else None,
        "filled_at_end": rows[-1]["filled"] if rows else None,
        "spread_at_end": rows[-1]["spread"] if rows else None,
        "hottest": max((row["hottest"] for row in rows), default=None),
        "load_spread": median(row["load_spread"] for row in rows) if rows else None,
        "busiest": median(row["busiest"] for row in rows) if rows else None,
        "joined_over_old": median(row["joined_over_old"] for row in grown) if grown else None,
        "full_at_end": rows[-1]["full"] if rows else None,
    }
