"""Waiting for the rate limit and for room, on a loop without a clock."""

import asyncio
import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client.write_window import WriteWindow
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.ledgers.adds import Adds
from bookie.client.ledgers.line import Line
from bookie.client.ledgers.throttle import Backpressure, RateLimit
from bookie.errors import TooManyRequests
from tests.sim.loop import VirtualLoop


def test_rate() -> None:
    """After a pause, one second's worth of turns comes at once, and then turns come evenly."""
    loop = VirtualLoop()

    async def turns() -> list[float]:
        rate = RateLimit(10, burst=10)
        assert rate.limited
        start, times = loop.time(), []
        for _ in range(25):
            await rate.take()
            times.append(round(loop.time() - start, 6))
        return times

    assert loop.run(turns()) == [0.0] * 10 + [round(k / 10, 6) for k in range(1, 16)]
    assert not RateLimit(0).limited
    assert not RateLimit(-1).limited


def test_cancelled_callers_give_their_time_back() -> None:
    """Those behind a caller that gave up come earlier, wherever it was in the line, and newcomers do, too."""
    loop = VirtualLoop()

    async def scenario() -> dict[int, float]:
        rate = RateLimit(1)
        times: dict[int, float] = {}
        await rate.take()

        async def take(number: int) -> None:
            await rate.take()
            times[number] = round(loop.time() - start, 6)

        start = loop.time()
        tasks = [asyncio.ensure_future(take(k)) for k in range(6)]
        await asyncio.sleep(0.5)
        for k in (0, 2, 5):
            tasks[k].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await take(6)
        return times

    assert loop.run(scenario()) == {1: 1, 3: 2, 4: 3, 6: 4}


class Acknowledged(Adds):
    """A writer whose bookies acknowledge each entry at once; it records the time of each."""

    def __init__(self, loop: VirtualLoop, per_s: int, count_max: int) -> None:
        self.ledger = 7
        self._window = WriteWindow(
            Digest.of(DigestType.CRC32C, b"").digester, 7, (1, 1, 1), lambda _, error: error, count_max=count_max
        )
        self._rate = RateLimit(per_s, burst=per_s)
        self._backpressure = Backpressure()
        self._line = Line(self._backpressure, 1 << 20)
        self._loop = loop
        self._scheduled = False
        self.times: list[float] = []

    def _send(self) -> None:
        assert self._loop is not None
        self._scheduled = False
        first = self._window.next - self._window.unsent
        entries = np.arange(first, first + self._window.take(self._loop.time()), dtype=np.int64)
        self._window.answered(0, entries, np.zeros(len(entries), dtype=np.int32))
        for entry, _ in self._window.quorate():
            self._window.complete(entry)
        self._window.release()
        self.times += [round(self._loop.time(), 6)] * len(entries)
        self._backpressure.made()


class Slow(Adds):
    """A writer whose bookies acknowledge the oldest entries one by one, each after a second."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, count_max: int, bytes_max: int = 1 << 20, *, advanced: bool = False
    ) -> None:
        self.ledger = 7
        digester = Digest.of(DigestType.CRC32C, b"").digester
        self._window = WriteWindow(
            digester, 7, (1, 1, 1), lambda _, e: e, count_max=count_max, bytes_max=bytes_max, advanced=advanced
        )
        self._rate = RateLimit(0)
        self.room = self._backpressure = Backpressure(in_order=not advanced)
        self._line = Line(self.room, 1 << 20)
        self._loop = loop
        self._scheduled = False
        self._unanswered: list[int] = []

    def _send(self) -> None:
        assert self._loop is not None
        self._scheduled = False
        while self._window.take(self._loop.time(), 1):
            records = self._window.batch(0)
            assert records is not None
            if not self._unanswered:
                self._loop.call_later(1, self._answer)
            self._unanswered += records[2].tolist()

    def _answer(self) -> None:
        entries = np.array([self._unanswered.pop(0)], dtype=np.int64)
        self._window.answered(0, entries, np.zeros(1, dtype=np.int32))
        if self._window.release():
            self._backpressure.made(None if self._window.count == 0 or self._window.stuck else 1)
        if self._unanswered:
            assert self._loop is not None
            self._loop.call_later(1, self._answer)

    def answer_all(self) -> None:
        """Acknowledge everything now."""
        self._send()
        while self._unanswered:
            self._answer()


def test_adds_in_line_go_on_together() -> None:
    """All for which there is room are added in one turn of the loop, in which others behind them wake for nothing."""
    loop, count = VirtualLoop(), 400
    writer = Slow(loop, count)

    async def scenario() -> int:
        for _ in range(2 * count):
            writer.append_soon(b"")
        await asyncio.sleep(0)
        writer.answer_all()
        await asyncio.sleep(0)
        return writer._window.next

    assert loop.run(scenario()) == 2 * count


def test_entries_that_are_added_together_keep_to_the_rate() -> None:
    """When a number of entries is added at once, those before them have had their time: beyond the burst and one
    window, no entry is early.
    """
    loop, per_s, window = VirtualLoop(), 10, 20
    writer = Acknowledged(loop, per_s, window)
    offsets = np.arange(101, dtype=np.int64)
    assert loop.run(writer.append_all(bytes(100), offsets)) == 99
    assert len(writer.times) == 100
    for k, at in enumerate(writer.times):
        assert k < at * per_s + per_s + window, f"entry {k} was added after {at} s"


def test_room() -> None:
    """Callers are woken in the order of their calls; those that gave up are skipped."""
    loop = VirtualLoop()

    async def scenario() -> list[int]:
        room, served = Backpressure(), []
        free: list[int] = []

        async def wait(number: int) -> None:
            await room.turn(lambda: free.pop() if free else None)
            served.append(number)

        tasks = [asyncio.ensure_future(wait(k)) for k in range(5)]
        await asyncio.sleep(1)
        tasks[1].cancel()
        await asyncio.sleep(1)
        free += [0] * 2
        room.made(2)
        await asyncio.sleep(1)
        assert served == [0, 2]
        free += [0] * 2
        room.made()
        await asyncio.gather(*tasks, return_exceptions=True)
        return served

    assert loop.run(scenario()) == [0, 2, 3, 4]


def test_room_that_is_not_made_in_time() -> None:
    """With waitTimeoutOnBackpressureMs, a caller that waited too long gets an error; others wait on."""
    loop = VirtualLoop()

    async def scenario() -> float:
        room = Backpressure(2.0)
        free: list[int] = []
        with pytest.raises(TooManyRequests, match="within 2 s"):
            await room.turn(lambda: free or None)
        later = asyncio.ensure_future(room.turn(lambda: free or None))
        await asyncio.sleep(1)
        free.append(1)
        room.made(1)
        await later
        return loop.time()

    began = loop.time()
    assert loop.run(scenario()) - began == pytest.approx(3.0)


def test_newcomers_wait_behind_those_that_wait_already() -> None:
    """A lone writer of large entries gets its turn beside many writers of small ones that never pause."""
    loop = VirtualLoop()
    writer = Slow(loop, count_max=8, bytes_max=1000)
    order: list[str] = []

    async def small(who: str) -> None:
        for _ in range(200):
            await writer.append_async(bytes(20))
            order.append(who)

    async def scenario() -> None:
        greedy = [asyncio.ensure_future(small(f"small {k}")) for k in range(5)]
        await asyncio.sleep(1)  # the window is full
        for _ in range(5):
            await writer.append_async(bytes(700))
            order.append("large")
        await asyncio.gather(*greedy)

    loop.run(scenario())
    at = [k for k, who in enumerate(order) if who == "large"]
    assert all(after - before <= 2 * 8 for before, after in itertools.pairwise(at)), at
    assert at[0] < 8 + 2 * 8


def test_newcomers_on_threads_wait_behind_those_that_wait_already() -> None:
    """A thread gets no room while a task waits for some, whichever comes first; the one that waits is served first."""

    async def scenario() -> list[int]:
        loop = asyncio.get_running_loop()
        writer = Slow(loop, count_max=4)
        for _ in range(4):
            await writer.append_async(b"")
        first = asyncio.ensure_future(writer.append_async(b""))
        await asyncio.sleep(0)
        writer.answer_all()  # there is room, and `first` was woken, but has not tried yet
        assert writer.append_at_once(b"") is None  # what a thread tries first
        second = asyncio.ensure_future(writer.append_async(b""))
        adds = await first, await second
        return [add.entry for add in adds]

    assert asyncio.run(scenario()) == [4, 5]


@given(st.randoms(use_true_random=False), st.booleans())
def test_every_caller_gets_its_turn(rng: random.Random, advanced: bool) -> None:
    """Tasks of any sizes, some of them cancelled while they wait: each of the others is served, in the order of the
    calls unless it has chosen its id, and nothing waits for ever.
    """
    loop = VirtualLoop()
    writer = Slow(loop, count_max=rng.choice((1, 2, 5)), bytes_max=rng.choice((100, 1000)), advanced=advanced)
    count = rng.randint(1, 30)
    ids = rng.sample(range(count), count) if advanced else [-1] * count
    served: list[int] = []

    async def one(number: int) -> None:
        await asyncio.sleep(0.3 * number * (not advanced))
        await writer.append_async(bytes(rng.choice((0, 10, 90))), ids[number])
        served.append(number)

    async def scenario() -> None:
        tasks = [asyncio.ensure_future(one(number)) for number in range(count)]
        if not advanced:  # a missing id would hold up all others
            await asyncio.sleep(rng.random() * count / 3)
            for task in rng.sample(tasks, count // 3):
                task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(not isinstance(result, BaseException) for result in done) == len(served)
        if advanced:
            await writer.flush()

    loop.run(scenario())
    assert advanced or served == sorted(served)
    assert not advanced or len(served) == count
    assert not writer.room.waiting
