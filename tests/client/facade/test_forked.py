"""A forked child does not wait for ever for what only its parent's client could end."""

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from bookie.client import BookKeeper
from bookie.client.event_loop.thread import LoopThread
from tests.fixtures.forked import closed_in_a_child

WAITS: dict[str, Callable[["Future[int]"], object]] = {
    "result": lambda future: future.result(),
    "exception": lambda future: raised(future.exception()),
}
WAIT = pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)


def raised(error: BaseException | None) -> None:
    """Raise the error that a future returned."""
    if error is not None:
        raise error


def refused_in_a_child(call: Callable[[], object]) -> bool:
    """Return whether a call raises ClientClosed in a forked child, within a minute."""

    def bounded() -> None:
        signal.alarm(60)
        call()

    return closed_in_a_child(bounded)


@WAIT
def test_a_pending_add(uri: str, wait: Callable[["Future[int]"], object]) -> None:
    """In the child it is refused; what was acknowledged before is known there, too; in the parent the add goes on."""
    with BookKeeper(uri) as bk, bk.create_ledger_advanced() as ledger:
        done, pending = ledger.append_async(0, b"0"), ledger.append_async(2, b"2")
        assert done.result() == 0
        assert refused_in_a_child(lambda: wait(pending))
        assert not refused_in_a_child(lambda: wait(done))
        ledger.append(1, b"1")
        assert pending.result() == 2


def test_a_childs_own_adds(uri: str) -> None:
    """A child waits for the adds of the client that it opened itself."""

    def append() -> None:
        with BookKeeper(uri) as bk, bk.create_ledger() as ledger:
            later = ledger.append_async(b"child's")
            assert (later.exception(), later.result()) == (None, 0)
            assert refused_in_a_child(ledger.flush)
        wait_for_nothing.result()

    with BookKeeper(uri) as bk, bk.create_ledger_advanced() as ledger:
        wait_for_nothing = ledger.append_async(1, b"above a gap")
        assert refused_in_a_child(append)
        ledger.append(0, b"in the gap")


@WAIT
def test_a_call_under_way(wait: Callable[["Future[int]"], object]) -> None:
    """Its future is refused in the child, though another thread holds its lock; nobody of the parent's is told."""

    async def nothing() -> None:
        """Do nothing."""

    thread = LoopThread("test", nothing, lambda: None)
    thread.start()
    told: list[Future[int]] = []
    try:
        gate = asyncio.Event()

        async def call() -> int:
            await gate.wait()
            return 5

        future = thread.submit(call())
        future.add_done_callback(told.append)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(future._condition.acquire).result()
            assert refused_in_a_child(lambda: wait(future))
            other.submit(future._condition.release).result()
        assert not told
        assert thread._loop is not None
        thread._loop.call_soon_threadsafe(gate.set)
        assert future.result(60) == 5
        assert told == [future]
    finally:
        thread.stop()
