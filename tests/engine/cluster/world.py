"""A cluster's world: real bookies and real clients, with the scenario, the metadata store and the judge of tests/sim.

The clients run on one event loop in process 0, which also starts bookies, kills them and cuts their power.
"""

import asyncio
import logging
import os
import random
import shutil
import signal
import traceback
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from bookie.client.bookies.client import BookieClient
from bookie.client.config import ClientConfig
from bookie.errors import NoSuchEntry, NoSuchLedger
from tests.engine.cluster.bookies import Bookie
from tests.engine.cluster.client import RecordedBookies
from tests.engine.cluster.nemesis import ClusterNemesis
from tests.engine.plan import Plan, draw_plan
from tests.engine.runtime import NEVER, Runtime, Settings
from tests.sim.draw import Draw
from tests.sim.events import Event
from tests.sim.judge import judge
from tests.sim.model_store import ClientStore, ModelStore
from tests.sim.real_client import real_client
from tests.sim.scenario import Scenario
from tests.sim.world import World

__all__ = ["ClusterWorld", "Outcome", "play"]

SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")  # noqa: S108
LOOK_S = 0.005
"""How often dead processes are looked for, in simulated seconds."""
START_S = 120.0
REAL_SECONDS = 300


class WorldLoop(asyncio.SelectorEventLoop):
    """An event loop in simulated time. `problems` are exceptions that nobody handled."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.set_exception_handler(self._problem)

    def event(self, delay: float, callback: Any, *arguments: Any) -> asyncio.TimerHandle:
        """Call back after a delay in seconds."""
        return self.call_later(delay, callback, *arguments)

    def _problem(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.problems.append(f"{context.get('message')}: {context.get('exception')!r}")


class ClusterWorld(World):
    """What `Scenario` needs of a world, with processes for bookies."""

    loop: WorldLoop  # type: ignore[assignment]
    bookies: dict[str, Bookie]  # type: ignore[assignment]
    clients: dict[str, RecordedBookies]  # type: ignore[assignment]

    def __init__(self, runtime: Runtime, seed: int, root: Path) -> None:  # no call of the base class: its parts differ
        rng = random.Random(f"cluster-{seed}")
        self.runtime = runtime
        self.rng = rng
        self.draw = _draw(rng)
        self.loop = WorldLoop()
        self.history: list[Event] = []
        self.store = ModelStore(self.loop, self.history, lambda *_: None)  # type: ignore[arg-type]
        self.stores: list[ClientStore] = []
        self.clients = {}
        self.first_s = 6 * self.draw.store_s
        self.down_s: dict[str, float] = {}
        self.powerless: set[str] = set()
        self._serving: frozenset[str] = frozenset()
        self._complete = asyncio.Event()
        plan = _plan(seed)
        settings = _settings(rng, self.draw)
        made = [Bookie(runtime, plan, settings, at, root / f"disk-{at}") for at in range(1, self.draw.bookies + 1)]
        self.bookies = {bookie.name: bookie for bookie in made}

    async def start(self) -> None:
        """Start all bookies, and return when they serve."""
        for bookie in self.bookies.values():
            bookie.start()
        self._watcher = self.loop.create_task(self._watch())
        await self._all_serve()

    async def healed(self) -> None:
        await self._all_serve()

    async def _all_serve(self) -> None:
        """Wait until all bookies serve. Raises TimeoutError if one does not, long after it was started."""
        self._look()
        async with asyncio.timeout(START_S):
            await self._complete.wait()

    def nemesis(self, rng: random.Random) -> Any:
        return ClusterNemesis(self, rng)

    def restart_soon(self) -> None:
        """Let bookies that are down come back at once, from now on."""
        self.down_s = dict.fromkeys(self.bookies, 0.0)
        self.powerless.clear()
        for bookie in self.bookies.values():
            if not bookie.up:
                self._restart(bookie)

    def register(self) -> None:
        self.store.set_bookies(self._serving, frozenset())

    def connect(self, who: str, config: ClientConfig) -> None:
        store = ClientStore(self.store, self.loop, random.Random(self.rng.random()), who)  # type: ignore[arg-type]
        store.base_s = self.draw.store_s
        self.clients[who] = RecordedBookies(config, who, self.history)
        self.stores.append(store)

    async def collect(self) -> dict[str, dict[int, bytes]]:
        """Return what each bookie holds of the one ledger, for the judge."""
        await self._all_serve()
        ledgers = {event.ledger for event in self.history if event.what == "asked"}
        asked = sum(event.what == "asked" for event in self.history)
        client = BookieClient(replace(self.draw.config, read_timeout_s=START_S, connect_timeout_s=START_S))
        found: dict[str, dict[int, bytes]] = {name: {} for name in self.bookies}
        for ledger in ledgers:
            for name, held in found.items():
                for entry in range(asked):
                    with suppress(NoSuchEntry, NoSuchLedger):
                        held[entry] = (await client.read(name, ledger, entry)).stored or b""
        await client.close()
        return found

    async def _watch(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(LOOK_S)

    def _look(self) -> None:
        """Take note of bookies that have died or serve now, and let the dead come back after their time."""
        for bookie in self.bookies.values():
            if bookie.reap():
                if bookie.name in self.powerless:
                    self.powerless.discard(bookie.name)
                    bookie.cut_power(self.rng.getrandbits(60), self.rng.choice((0, 0, 1)))
                self.loop.call_later(self.down_s.get(bookie.name, 0.0), self._restart, bookie)
        serving = frozenset(bookie.name for bookie in self.bookies.values() if bookie.serving)
        if serving != self._serving:
            self._serving = serving
            self.register()
        if len(serving) == len(self.bookies):
            self._complete.set()
        else:
            self._complete.clear()

    def _restart(self, bookie: Bookie) -> None:
        if not bookie.up and not bookie.findings:
            bookie.start()


@dataclass(slots=True)
class Outcome:
    """What became of a world."""

    seed: int
    findings: list[str] = field(default_factory=list)
    fingerprint: int = 0
    steps: int = 0
    lines: list[str] = field(default_factory=list)


def play(runtime: Runtime, seed: int) -> Outcome:
    """Play the world of a seed in a process group of its own, and return what it found."""
    root = SCRATCH / f"bookie-cluster-{os.getpid()}"
    runtime.new_world(root, processes=8)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        _child(runtime, seed, root, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            lines = pipe.read().decode(errors="replace").splitlines()
        _, status = os.waitpid(child, 0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)
    outcome = Outcome(seed, steps=runtime.shared.steps, fingerprint=runtime.shared.hash, lines=lines)
    outcome.findings = [line.removeprefix("FINDING ") for line in lines if line.startswith("FINDING ")]
    code = os.waitstatus_to_exitcode(status)
    if code != 0 and not outcome.findings:
        outcome.findings.append(f"the clients' process ended with status {code}: {runtime.finding()}")
    return outcome


def _child(runtime: Runtime, seed: int, root: Path, output: int) -> NoReturn:
    signal.alarm(REAL_SECONDS)
    logging.disable(logging.CRITICAL)
    lines: list[str] = []
    status = 0
    rng = random.Random(f"clients-{seed}")
    try:
        runtime.begin(Settings(**_settings(rng, _draw(random.Random(f"cluster-{seed}")))))
        lines = _play(runtime, seed, root)
    except BaseException:  # noqa: BLE001 - the parent process reports it
        runtime.leave()
        text = traceback.format_exc()
        lines += [text, f"FINDING {text.strip().splitlines()[-1]}"]
        status = 1
    runtime.leave()
    with os.fdopen(output, "w") as out:
        out.write("\n".join(lines))
    os._exit(status)


def _play(runtime: Runtime, seed: int, root: Path) -> list[str]:
    world = ClusterWorld(runtime, seed, root)
    scenario = Scenario(world, real_client())
    asyncio.set_event_loop(world.loop)

    copies: dict[str, dict[int, bytes]] = {}

    async def run() -> None:
        await world.start()
        await scenario.run()
        copies.update(await world.collect())

    try:
        world.loop.run_until_complete(run())
    finally:
        findings = [found for bookie in world.bookies.values() for found in bookie.findings]
        runtime.leave()
        for bookie in world.bookies.values():
            bookie.end()
    crashed = any(not client.alive for client in world.clients.values())
    findings += [one for one in world.loop.problems if not (crashed and "pending" in one)]
    findings += [f"{one.invariant} at {one.at:.6f} s: {one.what}" for one in judge(world.history, copies, [])]
    return [repr(world.draw), *(event.line() for event in world.history), *(f"FINDING {one}" for one in findings)]


def _draw(rng: random.Random) -> Draw:
    """Return a draw of tests/sim that suits real bookies: at most seven, and patience for their real latencies."""
    draw = Draw.of(rng)
    while draw.bookies > 7:
        draw = Draw.of(rng)
    entries = rng.choice((5, 20, 60))
    timeout = max(draw.config.add_timeout_s, 0.05)
    config = replace(
        draw.config,
        add_timeout_s=timeout,
        read_timeout_s=timeout * rng.choice((0.5, 1, 3)),
        connect_timeout_s=timeout * 2,
    )
    return replace(draw, entries=entries, lasts_s=max(draw.lasts_s, 0.2), config=config)


def _plan(seed: int) -> Plan:
    plan = draw_plan(seed)
    return replace(plan, journal={**plan.journal, "group_wait_ms": 0.0})


def _settings(rng: random.Random, draw: Draw) -> dict[str, int]:
    return {
        "seed": rng.getrandbits(63),
        "kill_at": 0,
        "steps_max": NEVER,
        "preempt": rng.choice((0, 10, 100)),
        "priorities": 0,
        "spurious": 0,
        "disk_ns": rng.choice((2_000, 50_000)),
        "sync_ns": max(1000, int(rng.uniform(*draw.sync_s) * 1e9)),
        "short_io": rng.choice((0, 0, 100)),
        "socket_bytes": rng.choice((4, 64)) << 10,
        "pause_at": 0,
        "pause_ns": 0,
        "pause_all": 0,
        "full_from": NEVER,
        "full_to": NEVER,
    }
