"""The lock of a ledger, marked or not, and callers that leave while it is being acquired."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Any

import pytest

from bookie.client.replication.contracts import Environment
from bookie.client.replication.worker import ReplicationWorker
from bookie.metadata.records.replication import Claim
from tests.client.replication.conftest import GHOST, Cluster, comes_true

pytestmark = [
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
    pytest.mark.thorough,
]
LEDGER = 7


class Slow:
    """Marks and locks of a driver that reports an acquired lock only when the test sets `go`.

    It keeps the locks that it made, so that nothing depends on when they are garbage-collected.
    """

    def __init__(self, replication: Any) -> None:
        self._replication = replication
        self._locks: list[AbstractContextManager[bool]] = []
        self.taken, self.go = threading.Event(), threading.Event()

    def lock(self, ledger: int) -> AbstractContextManager[bool]:
        """Acquire a lock, then wait for `go`."""
        self._locks.append(self._lock(ledger))
        return self._locks[-1]

    def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        """Claim a ledger, then wait for `go`."""
        claim: Claim | None = self._replication.claim(owner, random, changed)
        self.taken.set()
        self.go.wait()
        return claim

    def release(self, claim: Claim) -> None:
        """Release a lock with the driver."""
        self._replication.release(claim)

    @contextmanager
    def _lock(self, ledger: int) -> Iterator[bool]:
        with self._replication.lock(ledger) as ours:
            self.taken.set()
            self.go.wait()
            yield ours


async def hold(environment: Environment, _: Cluster) -> None:
    """Hold the lock of a ledger, marked or not."""
    async with environment.queue.lock(LEDGER):
        pytest.fail("it was cancelled before")


async def work(environment: Environment, cluster: Cluster) -> None:
    """Work on a marked ledger until cancelled."""
    cluster.driver.replication.mark(LEDGER, [GHOST], 1)
    await ReplicationWorker(environment).run()


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("take", [hold, work])
def test_cancelled_while_it_is_taken(
    cluster: Cluster, take: Callable[[Environment, Cluster], Coroutine[Any, Any, None]], times: int
) -> None:
    """The lock is released, not kept until the session ends, however often its caller is cancelled meanwhile."""

    async def scenario() -> None:
        async with cluster.environment() as environment:
            queue: Any = environment.queue
            slow = queue._replication = Slow(queue._replication)
            taking = asyncio.ensure_future(take(environment, cluster))
            await asyncio.to_thread(slow.taken.wait)
            assert cluster.driver.replication.holders().keys() == {LEDGER}
            for _ in range(times):
                taking.cancel()
                await asyncio.sleep(0)
            slow.go.set()
            with pytest.raises(asyncio.CancelledError):
                await taking
            async with asyncio.timeout(30):
                await comes_true(lambda: cluster.driver.replication.holders() == {})

    asyncio.run(scenario())


def test_held_and_let_go(cluster: Cluster) -> None:
    """Others see that the lock is held; an error inside its block releases it, too."""

    async def scenario() -> None:
        async with cluster.environment() as one, cluster.environment() as other:

            async def fail() -> None:
                async with one.queue.lock(LEDGER) as ours, other.queue.lock(LEDGER) as theirs:
                    assert (ours, theirs) == (True, False)
                    raise ValueError("in its scope")

            with pytest.raises(ValueError, match="in its scope"):
                await fail()
            async with other.queue.lock(LEDGER) as theirs:
                assert theirs
        assert cluster.driver.replication.holders() == {}

    asyncio.run(scenario())
