"""The clients of a world: one writes, others recover, read and tail; in the end a patient one opens what is left.

Every outcome goes into the history. `play` runs one seed from its beginning to its last read.
"""

import asyncio
import random
from collections.abc import Collection, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from bookie.client.config import ClientConfig
from bookie.errors import BookKeeperError, MetadataStoreError
from tests.sim.draw import Draw
from tests.sim.events import Event
from tests.sim.face import Client, MakeClient, Reader, Writer
from tests.sim.loop import Stuck
from tests.sim.world import World

__all__ = ["Outcome", "play", "Scenario"]

PATIENT_S = 10_000.0
ROUNDS = 12
OPENS_MAX = 5
AWAITED = 0.8
"""The share of direct adds that the writer awaits before it goes on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is left of a world. `problems` are errors other than violations of invariants."""

    world: World
    history: list[Event]
    problems: list[str]


def play(
    seed: int, make: MakeClient, bugs: Collection[str] = (), draw: Draw | None = None, followers: int = 0
) -> Outcome:
    """Run the world of this seed from beginning to end. `bugs` are planted in its bookies."""
    rng = random.Random(seed)
    draw = draw or Draw.of(rng)
    world = World(draw, rng, bugs)
    run = Scenario(world, make, followers)
    problems: list[str] = []
    try:
        world.loop.run(run.run(), steps_max=200_000)
    except Stuck as stuck:
        problems.append(f"stuck: {stuck}; waiting: {', '.join(sorted(run.waiting)) or 'the last reader'}")
    if run.waiting and not problems:
        problems.append(f"calls without an end: {', '.join(sorted(run.waiting))}")
    world.loop.cancel_all()
    # The tasks of a crashed client do not continue, and are garbage-collected.
    crashed = any(not client.alive for client in world.clients.values())
    problems += [one for one in world.loop.problems if not (crashed and "destroyed but it is pending" in one)]
    return Outcome(world, world.history, problems)


class Scenario:
    """The clients of one world, `run` from the first add to the last read. `waiting` are clients with open calls."""

    patience_s = PATIENT_S
    """How long a call may take when all faults have ended, in simulated seconds."""

    def __init__(self, world: World, make: MakeClient, followers: int = 0) -> None:
        self.world = world
        self.waiting: set[str] = set()
        self._make = make
        self._followers = followers
        self._handles = 0
        self._ledger: asyncio.Future[int] = world.loop.create_future()

    async def run(self) -> None:
        """Run all clients."""
        world, draw, rng = self.world, self.world.draw, self.world.rng
        actors = await self._actors()
        nemesis = world.nemesis(random.Random(rng.random()))
        tasks = [world.loop.create_task(actor) for actor in actors]
        await asyncio.wait(tasks, timeout=world.first_s + 3 * draw.lasts_s + draw.begins_s)
        nemesis.heal()
        await world.healed()
        if not self._ledger.done():
            await asyncio.wait([tasks[0]], timeout=self.patience_s)
        if not self._ledger.done():
            self._ledger.cancel()  # nobody has anything to wait for
        await asyncio.wait(tasks, timeout=self.patience_s)
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception():
                task.result()
        if self._ledger.done() and not self._ledger.cancelled():
            await self._finish(self._ledger.result())

    # The clients.

    async def _actors(self) -> list[Coroutine[Any, Any, None]]:
        """Return what the clients do, the writer first."""
        draw = self.world.draw
        actors = [self._write(await self._client("writer"))]
        for number in range(draw.recoverers):
            actors.append(self._recover(f"recover{number}", await self._client(f"recover{number}")))
        for number in range(draw.readers):
            actors.append(self._look(f"reader{number}", await self._client(f"reader{number}")))
        for number in range(draw.tails):
            actors.append(self._tail(f"tail{number}", await self._client(f"tail{number}")))
        if draw.replicator:
            actors.append(self._replicate("replicator", await self._client("replicator")))
        for number in range(self._followers):
            actors.append(self._follow(f"follow{number}", await self._client(f"follow{number}")))
        return actors

    async def _write(self, client: Client) -> None:
        world, draw, rng = self.world, self.world.draw, random.Random(self.world.rng.random())
        who = "writer"
        self.waiting.add(who)
        crash_at = rng.randrange(draw.entries) if draw.writer == "crashes" else -1
        writer = await self._created(client, draw)
        if writer is None:
            self.waiting.discard(who)
            return
        self._ledger.set_result(writer.ledger)
        results: list[asyncio.Future[int]] = []
        for count, entry in enumerate(_ids(draw, rng)):
            payload = entry.to_bytes(2, "big") + rng.randbytes(rng.randint(0, draw.payload_max))
            payload = payload if draw.payload_max else b""
            world.say(who, "asked", writer.ledger, number=entry, value=payload)
            try:
                result = await writer.append(payload, entry if draw.advanced else -1)
            except BookKeeperError as error:
                world.say(who, "failed", writer.ledger, number=entry, code=error.code)
                continue
            self._note(result, writer.ledger, entry, payload)
            results.append(result)
            if draw.direct_s and rng.random() < AWAITED:
                await asyncio.wait([result])
            if count == crash_at:
                await asyncio.sleep(draw.base_s[1] * rng.choice((0, 1, 3)) * rng.random())
                world.crash(who)
                self.waiting.discard(who)
                return
            if (count + 1) % draw.burst == 0:
                await asyncio.sleep(rng.random() * draw.pace_s * 2)
            if draw.deferred and rng.random() < 0.3:
                await self._force(writer)
        if rng.random() < 0.7 and results:
            await asyncio.wait(results)
            if draw.deferred:
                await self._force(writer)
        if draw.writer == "closes":
            await self._close(writer)
        if results:
            await asyncio.wait(results)
        self.waiting.discard(who)

    async def _created(self, client: Client, draw: Draw) -> Writer | None:
        for _ in range(3):
            try:
                return await client.create(
                    draw.sizes, draw.digest, draw.password, advanced=draw.advanced, deferred=draw.deferred
                )
            except BookKeeperError as error:
                self.world.say("writer", "gave_up", code=error.code, value=f"create: {error}")
                await asyncio.sleep(draw.begins_s)
        return None

    def _note(self, result: "asyncio.Future[int]", ledger: int, count: int, payload: bytes) -> None:
        def done(result: "asyncio.Future[int]") -> None:
            if result.cancelled():
                return
            error = result.exception()
            if isinstance(error, BookKeeperError):
                self.world.say("writer", "failed", ledger, number=count, code=error.code)
            elif error is None:
                what = "taken" if self.world.draw.deferred else "acked"
                self.world.say("writer", what, ledger, result.result(), number=count, value=payload)

        result.add_done_callback(done)

    async def _force(self, writer: Writer) -> None:
        try:
            last = await writer.force()
        except BookKeeperError as error:
            self.world.say("writer", "gave_up", writer.ledger, code=error.code, value=f"force: {error}")
        else:
            self.world.say("writer", "forced", writer.ledger, last)

    async def _close(self, writer: Writer) -> None:
        try:
            last, length = await writer.close()
        except BookKeeperError as error:
            self.world.say("writer", "gave_up", writer.ledger, code=error.code, value=f"close: {error}")
        else:
            self.world.say("writer", "closed", writer.ledger, last, number=length)

    async def _recover(self, who: str, client: Client) -> None:
        ledger = await self._begin(who)
        if self.world.draw.dies_s:
            task = asyncio.current_task()
            assert task is not None
            self.world.loop.event(self.world.draw.dies_s * self.world.rng.random(), self._die, who, task)
        reader = await self._open(who, client, ledger, recovery=True)
        if reader is not None:
            self.world.say(who, "opened", ledger, reader.lac, number=reader.length)
            await self._read(who, reader, ledger)
        self.waiting.discard(who)

    def _die(self, who: str, task: "asyncio.Task[None]") -> None:
        """End a client's process in the middle of what it does."""
        if who in self.waiting:
            self.world.crash(who)
            self.waiting.discard(who)
            task.cancel()

    async def _look(self, who: str, client: Client) -> None:
        """Open the ledger without recovery, and read it now and then."""
        ledger = await self._begin(who)
        rng = random.Random(self.world.rng.random())
        reader = await self._open(who, client, ledger, recovery=False)
        if reader is not None:
            handle = self._handle(who, ledger, reader.lac)
            for _ in range(ROUNDS // 3):
                await asyncio.sleep(rng.random() * self.world.draw.base_s[1] * 10)
                try:
                    self._show(who, ledger, await reader.read_lac(), handle)
                except BookKeeperError as error:
                    self.world.say(who, "gave_up", ledger, code=error.code, value=f"read of the LAC: {error}")
                await self._read(who, reader, ledger)
                if reader.closed:
                    break
        self.waiting.discard(who)

    async def _tail(self, who: str, client: Client) -> None:
        """Follow the LAC, and read each entry once."""
        ledger = await self._begin(who)
        reader = await self._open(who, client, ledger, recovery=False)
        if reader is not None:
            handle = self._handle(who, ledger, reader.lac)
            at = 0
            for _ in range(ROUNDS):
                try:
                    lac = await reader.wait(at - 1, self.world.draw.base_s[1] * 20)
                except BookKeeperError as error:
                    self.world.say(who, "gave_up", ledger, code=error.code, value=f"wait: {error}")
                    await asyncio.sleep(self.world.draw.base_s[1] * 5)
                    continue
                self._show(who, ledger, lac, handle)
                try:
                    if lac >= at:
                        self._got(who, ledger, await reader.read(at, lac), range(at, lac + 1))
                        at = lac + 1
                except BookKeeperError as error:
                    self._not_read(who, ledger, at, error)
                    await asyncio.sleep(self.world.draw.base_s[1] * 5)
                if reader.closed and at > reader.lac:
                    break
        self.waiting.discard(who)

    async def _follow(self, who: str, client: Client) -> None:
        """Follow the ledger as long as there are faults: each entry comes once, in order, and none is left out."""
        ledger, draw = await self._begin(who), self.world.draw
        reader = await self._open(who, client, ledger, recovery=False)
        at = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(draw.begins_s + 3 * draw.lasts_s):
                following = reader.follow() if reader is not None else None
                try:
                    while following is not None and (found := await following.ready()):
                        self._got(who, ledger, found, range(at, at + len(found)))
                        at += len(found)
                except BookKeeperError as error:
                    self._not_read(who, ledger, at, error)
        self.waiting.discard(who)

    async def _replicate(self, who: str, client: Client) -> None:
        """Run auto-recovery as long as there are faults."""
        ledger, draw = await self._begin(who), self.world.draw
        try:
            async with asyncio.timeout(draw.begins_s + 3 * draw.lasts_s):
                await client.replicate(ledger, draw.grace_s)
        except TimeoutError:
            pass
        except BookKeeperError as error:
            self.world.say(who, "gave_up", ledger, code=error.code, value=f"replicate: {error}")
        self.waiting.discard(who)

    async def _opened(self, client: Client, ledger: int) -> Reader:
        """Open a ledger with recovery. A thread that gets no processor makes even a sound metadata store late."""
        for _ in range(OPENS_MAX - 1):
            with suppress(MetadataStoreError):
                return await client.open(ledger, self.world.draw.password, recovery=True)
        return await client.open(ledger, self.world.draw.password, recovery=True)

    async def _finish(self, ledger: int) -> None:
        """After all faults are healed, open the ledger with a patient client, which must be able to read it."""
        limit_s = self.patience_s
        config = replace(
            self.world.draw.config, add_timeout_s=limit_s, read_timeout_s=limit_s, connect_timeout_s=limit_s
        )
        client = await self._client("finish", config)
        self.waiting.add("finish")
        reader = await self._opened(client, ledger)
        self.world.say("finish", "opened", ledger, reader.lac, number=reader.length)
        if reader.lac >= 0:
            self._got("finish", ledger, await reader.read(0, reader.lac), range(reader.lac + 1))
        self.waiting.discard("finish")

    # Helpers.

    async def _client(self, who: str, config: ClientConfig | None = None) -> Client:
        config = config or self.world.draw.config
        self.world.connect(who, config)
        return await self._make(self.world, who, config, random.Random(self.world.rng.random()))

    async def _begin(self, who: str) -> int:
        delay = self.world.rng.random() * self.world.draw.begins_s
        ledger = await asyncio.shield(self._ledger)
        await asyncio.sleep(delay)
        self.waiting.add(who)
        return ledger

    async def _open(self, who: str, client: Client, ledger: int, *, recovery: bool) -> Reader | None:
        for _ in range(2):
            try:
                return await client.open(ledger, self.world.draw.password, recovery=recovery)
            except BookKeeperError as error:
                self.world.say(who, "gave_up", ledger, code=error.code, value=f"open: {error}")
                await asyncio.sleep(self.world.draw.base_s[1] * 10)
        return None

    def _handle(self, who: str, ledger: int, lac: int) -> int:
        self._handles += 1
        self._show(who, ledger, lac, self._handles)
        return self._handles

    def _show(self, who: str, ledger: int, lac: int, handle: int) -> None:
        self.world.say(who, "lac", ledger, lac, number=handle)

    async def _read(self, who: str, reader: Reader, ledger: int) -> None:
        """Read all entries up to the LAC, in one range or in batches."""
        last = reader.lac
        at = 0
        try:
            while at <= last:
                if self.world.draw.config.batch_read_enabled:
                    found = await reader.batch_read(at, 3, 1 << 20)
                    self._got(who, ledger, found, range(at, min(at + 3, reader.lac + 1)), loose=True)
                else:
                    found = await reader.read(at, last)
                    self._got(who, ledger, found, range(at, last + 1))
                at += len(found)
        except BookKeeperError as error:
            self._not_read(who, ledger, at, error)

    def _got(
        self, who: str, ledger: int, found: Collection[tuple[int, bytes]], wanted: range, *, loose: bool = False
    ) -> None:
        """Record entries; they must be those requested, or with `loose` the first of them."""
        ids = [entry for entry, _ in found]
        if ids != list(wanted)[: len(ids)] or not ids or (len(ids) < len(wanted) and not loose):
            self.world.loop.problems.append(f"{who} asked for entries {wanted} and got {ids}")
        for entry, payload in found:
            self.world.say(who, "read", ledger, entry, value=payload)

    def _not_read(self, who: str, ledger: int, entry: int, error: BookKeeperError) -> None:
        self.world.say(who, "unread", ledger, entry, code=error.code, value=str(error))


def _ids(draw: Draw, rng: random.Random) -> list[int]:
    """Return entry ids in the order of their adds, in which a missing id is never far behind."""
    ids = list(range(draw.entries))
    if not draw.advanced or draw.config.outstanding_max < 4:
        return ids
    parts = [ids[at : at + 3] for at in range(0, len(ids), 3)]
    return [entry for part in parts for entry in rng.sample(part, len(part))]
