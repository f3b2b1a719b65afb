"""A cluster's world: real bookies and real clients, with the scenario, the metadata store and the judge of tests/sim.

The clients run on one event loop in process 0, which also starts bookies, kills them and cuts their power.
"""

import asyncio
import gc
import heapq
import logging
import os
import random
import shutil
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from bookie.client.bookies.client import BookieClient
from bookie.client.config import ClientConfig
from bookie.errors import NoSuchEntry, NoSuchLedger
from bookie.metadata.key_value.keys import KeyExists, SessionExpired
from tests.engine.cluster.bookies import Bookie
from tests.engine.cluster.client import RecordedBookies, connected_client
from tests.engine.cluster.draw import ClusterDraw, engine_plan, world_settings
from tests.engine.cluster.nemesis import ClusterNemesis
from tests.engine.cluster.placed import lacking
from tests.engine.cluster.planted import NOTHING, Planted
from tests.engine.cluster.recovering import misjudged, record_lost
from tests.engine.cluster.scenario import ClusterScenario
from tests.engine.cluster.store import Connection, Store
from tests.engine.runtime import Runtime, Settings
from tests.engine.scratch import scratch
from tests.sim.events import Event
from tests.sim.impatient import impatient
from tests.sim.judge import judge
from tests.sim.world import World

__all__ = ["ClusterWorld", "Outcome", "play"]

LOOKS = 200
"""How often dead processes are looked for in the time of the faults."""
KEEP_ALIVES = 4
"""How often a bookie's session is kept alive within its timeout."""
START_S = 120.0
SIMULATED_S_MAX = 500.0
"""A world with longer timeouts goes on for so long that it is left unfinished."""
UNFINISHED = "UNFINISHED"
CPU_SECONDS = 60
REAL_SECONDS = 150
LONG_STEPS = 1_000_000
"""A world that has made so many calls when its time is over is long; with fewer calls something goes round without any.
"""
"""How long the clients' process may compute; whoever takes longer goes round without an end."""


class WorldLoop(asyncio.SelectorEventLoop):
    """An event loop in simulated time. `problems` are exceptions that nobody handled."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._turns = self._number = 0
        self._after: list[tuple[int, int, Callable[[], object]]] = []
        self.set_exception_handler(self._problem)

    def event(self, delay: float, callback: Any, *arguments: Any) -> asyncio.TimerHandle:
        """Call back after a delay in seconds."""
        return self.call_later(delay, callback, *arguments)

    def after_steps(self, count: int, callback: Callable[[], object]) -> None:
        """Call back after this many turns of the loop."""
        self._number += 1
        heapq.heappush(self._after, (self._turns + count, self._number, callback))

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]
        self._turns += 1
        while self._after and self._after[0][0] < self._turns:
            heapq.heappop(self._after)[2]()

    def _problem(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.problems.append(f"{context.get('message')}: {context.get('exception')!r}")


class ClusterWorld(World):
    """What `Scenario` needs of a world, with processes for bookies."""

    loop: WorldLoop  # type: ignore[assignment]
    bookies: dict[str, Bookie]  # type: ignore[assignment]
    clients: dict[str, RecordedBookies]  # type: ignore[assignment]
    store: Store  # type: ignore[assignment]
    stores: list[Connection]  # type: ignore[assignment]
    draw: ClusterDraw

    def __init__(self, runtime: Runtime, seed: int, root: Path, planted: Planted, *, traced: bool) -> None:
        # The constructor of the base class is not called, because its parts differ.
        rng = random.Random(f"cluster-{seed}")
        self.runtime = runtime
        self.seed = seed
        self.rng = rng
        self.draw = planted.drawn(ClusterDraw.of(rng))
        self.loop = WorldLoop()
        self.history: list[Event] = []
        self.store = Store(root / "disk-0", self.history, random.Random(rng.random()))
        self.stores = []
        self.clients = {}
        self.first_s = 6 * self.draw.store_s
        self.down_s: dict[str, float] = {}
        self.powerless: set[str] = set()
        self.paused_until: dict[str, float] = {}
        self._sessions: dict[str, int] = {}
        self._kept_alive: dict[str, float] = {}
        self._serving: frozenset[str] = frozenset()
        self._serves_since: dict[str, float] = {}
        self._complete = asyncio.Event()
        plan = engine_plan(seed, self.draw)
        settings = world_settings(rng, self.draw) | {"traced": traced}
        made = [Bookie(runtime, plan, settings, at, root / f"disk-{at}") for at in range(1, self.draw.bookies + 1)]
        self.bookies = {bookie.name: bookie for bookie in made}
        record_lost(self.history, self.serves_since)

    async def start(self) -> None:
        """Start the store and all bookies, and return when they serve."""
        self.store.start()
        for bookie in self.bookies.values():
            bookie.start()
        self._watcher = self.loop.create_task(self._watch())
        await self._all_serve()

    async def healed(self) -> None:
        await self._all_serve()

    async def _all_serve(self) -> None:
        """Wait until all bookies serve. Raises TimeoutError if one does not, long after it was started."""
        self._look()
        try:
            async with asyncio.timeout(START_S):
                await self._complete.wait()
        except TimeoutError:
            found = [finding for bookie in self.bookies.values() for finding in bookie.findings]
            raise TimeoutError("; ".join(found)) from None

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
        """Keep the sessions of bookies that serve alive, and register those that have none.

        A session of a bookie that has died or stands still ends by itself, and its registration with it.
        """
        now = self.loop.time()
        for name in self._serving:
            if now < self.paused_until.get(name, 0.0):
                continue
            if now - self._kept_alive.get(name, -1e9) < self.draw.session_s / KEEP_ALIVES:
                continue
            try:
                self.store.keep_alive(self._sessions.get(name, 0))
            except SessionExpired:
                self._sessions[name] = self.store.open_session(int(self.draw.session_s * 1000))
            with suppress(KeyExists):
                self.store.put(f"bookies/writable/{name}", b"", None, self._sessions[name])
            self._kept_alive[name] = now

    def serves_since(self, bookie: str) -> float:
        """Return since when a bookie serves without an interruption of its own; the present if it does not."""
        since = self._serves_since.get(bookie, self.loop.time())
        return max(since, self.paused_until.get(bookie, 0.0))

    def connect(self, who: str, config: ClientConfig) -> None:
        self.clients[who] = RecordedBookies(config, who, self.history)
        self.stores.append(self.store.connect(who, random.Random(self.rng.random()), self.draw.store_s))

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
            await asyncio.sleep(self.draw.lasts_s / LOOKS)

    def _look(self) -> None:
        """Take note of bookies that have died or serve now, and let the dead come back after their time."""
        for bookie in self.bookies.values():
            if bookie.reap():
                self._sessions.pop(bookie.name, None)
                if bookie.name in self.powerless:
                    self.powerless.discard(bookie.name)
                    bookie.cut_power(self.rng.getrandbits(60), self.rng.choice((0, 0, 1)))
                self.loop.call_later(self.down_s.get(bookie.name, 0.0), self._restart, bookie)
        serving = frozenset(bookie.name for bookie in self.bookies.values() if bookie.serving)
        self._kept_alive = {name: at for name, at in self._kept_alive.items() if name in serving}
        self._serving = serving
        self._serves_since = {name: self._serves_since.get(name, self.loop.time()) for name in serving}
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
    unfinished: bool = False
    """Whether it was ended because it takes too long, so that nothing is known about it."""
    lines: list[str] = field(default_factory=list)


def play(runtime: Runtime, seed: int, planted: Planted = NOTHING, *, traced: bool = False) -> Outcome:
    """Play the world of a seed in a process group of its own, and return what it found."""
    root = scratch("cluster")
    runtime.new_world(root, processes=8)
    reading, writing = os.pipe()
    child = runtime.child()
    if child == 0:
        os.close(reading)
        os.setsid()
        _child(runtime, seed, root, writing, planted, traced=traced)
    os.close(writing)
    limit = threading.Timer(REAL_SECONDS, os.killpg, (child, signal.SIGKILL))
    limit.start()
    try:
        with os.fdopen(reading, "rb") as pipe:
            lines = pipe.read().decode(errors="replace").splitlines()
        _, status = os.waitpid(child, 0)
    finally:
        limit.cancel()
        limit.join()
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)
    outcome = Outcome(seed, steps=runtime.shared.steps, fingerprint=runtime.shared.hash, lines=lines)
    outcome.findings = [line.removeprefix("FINDING ") for line in lines if line.startswith("FINDING ")]
    code = os.waitstatus_to_exitcode(status)
    outcome.unfinished = UNFINISHED in lines
    if code in (-signal.SIGPROF, -signal.SIGKILL) and outcome.steps > LONG_STEPS and not runtime.finding():
        outcome.unfinished = True
        outcome.findings.clear()
    elif code != 0 and not outcome.findings:
        outcome.findings.append(f"the clients' process ended with status {code}: {runtime.finding()}")
    return outcome


def _child(runtime: Runtime, seed: int, root: Path, output: int, planted: Planted, *, traced: bool) -> NoReturn:
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    gc.disable()  # it would touch, and so copy, all memory that is shared with the parent process
    logging.disable(logging.CRITICAL)
    lines: list[str] = []
    status = 0
    rng = random.Random(f"clients-{seed}")
    try:
        settings = world_settings(rng, planted.drawn(ClusterDraw.of(random.Random(f"cluster-{seed}"))))
        runtime.begin(Settings(**settings | {"traced": traced}))
        with planted.patch():
            lines = _play(runtime, seed, root, output, planted, traced=traced)
    except BaseException:  # noqa: BLE001 - the parent process reports it
        runtime.leave()
        text = traceback.format_exc()
        lines += [text, f"FINDING {text.strip().splitlines()[-1]}"]
        status = 1
    runtime.leave()
    with os.fdopen(output, "w") as out:
        out.write("\n".join(lines))
    os._exit(status)


def _play(runtime: Runtime, seed: int, root: Path, output: int, planted: Planted, *, traced: bool) -> list[str]:
    world = ClusterWorld(runtime, seed, root, planted, traced=traced)
    for bookie in world.bookies.values():
        bookie.inherited = output
    cancels = world.draw.cancels
    scenario = ClusterScenario(world, impatient(connected_client) if cancels else connected_client, followers=cancels)
    asyncio.set_event_loop(world.loop)

    copies: dict[str, dict[int, bytes]] = {}

    async def run() -> None:
        await world.start()
        await scenario.run()
        copies.update(await world.collect())

    world.loop.call_later(SIMULATED_S_MAX, world.loop.stop)
    running = world.loop.create_task(run())
    try:
        world.loop.run_until_complete(running)
    except RuntimeError:
        if running.done():
            raise
        return [UNFINISHED]
    finally:
        findings = [found for bookie in world.bookies.values() for found in bookie.findings]
        runtime.leave()
        for bookie in world.bookies.values():
            bookie.end()
    crashed = any(not client.alive for client in world.clients.values())
    findings += [one for one in world.loop.problems if not (crashed and "pending" in one)]
    findings += [f"{one.invariant} at {one.at:.6f} s: {one.what}" for one in judge(world.history, copies, [])]
    findings += lacking(world.history, copies)
    findings += misjudged(world.history, world.draw)
    if scenario.waiting:
        findings.append(f"calls without an end: {', '.join(sorted(scenario.waiting))}")
    return [repr(world.draw), *(event.line() for event in world.history), *(f"FINDING {one}" for one in findings)]
