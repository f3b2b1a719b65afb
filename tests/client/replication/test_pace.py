"""The rate of copies, and which bookies go first, with a clock that the test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.client.config import ClientConfig
from bookie.client.ledgers.throttle import RateLimit
from bookie.client.replication.contracts import Cluster, Environment
from bookie.client.replication.counters import Counters
from bookie.client.replication.settings import RecoverySettings
from bookie.client.replication.worker import ReplicationWorker
from bookie.metadata.records.replication import Claim
from tests.sim.loop import VirtualLoop

HOLD_S = 320.0


def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return the seconds of the event loop that `work` takes."""
    loop = VirtualLoop()

    async def main() -> float:
        began = loop.time()
        await work()
        return loop.time() - began

    return loop.run(main())


@given(st.lists(st.integers(1, 1 << 20), min_size=2, max_size=30), st.integers(1000, 1 << 24))
def test_bytes_a_second(sizes: list[int], rate: int) -> None:
    """When the last bytes are taken, the time of all but these has passed, and not more."""

    async def take() -> None:
        throttle = RateLimit(rate)
        for size in sizes:
            await throttle.take(size)

    assert timed(take) == pytest.approx(sum(sizes[:-1]) / rate, rel=1e-6)


def test_no_limit() -> None:
    """With -1 and 0 there is no wait."""

    async def take() -> None:
        await RateLimit(-1).take(1 << 40)
        await RateLimit(0).take(1 << 40)

    assert timed(take) == 0


def environment(free: dict[str, int], **keys: Any) -> Environment:
    """Return only what a worker needs for its pauses."""
    cluster = Cluster(writable=frozenset(free), free_bytes=free)
    settings = RecoverySettings(failed_ledger_hold_s=HOLD_S)
    nothing = cast("Any", None)
    return Environment(
        name="me",
        queue=cast("Any", Released()),
        metadata=nothing,
        bookies=nothing,
        ledgers=nothing,
        placement=nothing,
        cluster=cluster,
        config=ClientConfig.of(keys),
        settings=settings,
        random=Random(1),
        epoch_ms=lambda: 0,
        counters=Counters(),
    )


class Released:
    """A queue that records when each claim was released."""

    def __init__(self) -> None:
        self.at: list[float] = []

    async def release(self, _claim: Claim) -> None:
        self.at.append(asyncio.get_running_loop().time())


@pytest.mark.parametrize(
    ("mine", "seconds"),
    [(0, 10.0), (50, 7.5), (100, 5.0), (200, 0.0), (300, 0.0)],
)
def test_bookies_with_little_room_pause_longer(mine: int, seconds: float) -> None:
    """The pause is a share of the longest one: how far the bookie's free space is below the median."""
    there = environment(
        {"me": mine, "a": 200, "b": 200, "c": 400},
        diskWeightBasedPlacementEnabled=True,
        weightPacedReplicationEnabled=True,
    )
    assert timed(ReplicationWorker(there)._pause) == pytest.approx(seconds)
    assert there.counters.paused_ms == pytest.approx(1000 * seconds)


@pytest.mark.parametrize("keys", [{}, {"weightPacedReplicationEnabled": True}])
def test_no_pause_unless_both_are_asked_for(keys: dict[str, Any]) -> None:
    """There is a pause only if weights and pauses are both enabled."""
    assert timed(ReplicationWorker(environment({"me": 0, "a": 9}, **keys))._pause) == 0


def test_a_ledger_that_fails_rests_longer_each_time() -> None:
    """It is held for a 32nd of the longest time first, doubled each time; OP1: for all of it if no replica is left."""
    there = environment({})
    worker, claim = ReplicationWorker(there), Claim(7, 0)

    async def fail(*, hopeless: bool = False) -> None:
        worker._failed(claim, hopeless=hopeless)
        await asyncio.gather(*worker._held)

    rests = [timed(fail) for _ in range(8)]
    assert rests == [pytest.approx(HOLD_S / 32 * 2**k) for k in (0, 1, 2, 3, 4, 5, 5, 5)]
    fresh = ReplicationWorker(environment({}))

    async def give_up() -> None:
        fresh._failed(claim, hopeless=True)
        await asyncio.gather(*fresh._held)

    assert timed(give_up) == pytest.approx(HOLD_S)
