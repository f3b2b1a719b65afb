"""Pending adds as futures: they behave as asyncio.Future does, although most of it is made when it is first used."""

import asyncio
import contextvars
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.client.write_window import WriteWindow
from bookie.client.entries.digest import Digest
from bookie.client.ledgers.appends import Append
from bookie.errors import LedgerFenced
from tests.fixtures.draws import examples
from tests.sim.loop import VirtualLoop

STEPS = ("end", "turn", "cancel", "callback", "remove", "await", "cancel a waiter", "look")
ENTRY = 0


class Pair:
    """A pending add, and a future of asyncio that ends when the add ends and to which the same is done."""

    def __init__(self, *, fails: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._fails = fails
        self._window = WriteWindow(Digest.of().digester, 7, (1, 1, 1), lambda _, error: error)
        add = self._window.append(b"payload")
        assert add is not None
        self.both: tuple[asyncio.Future[int], asyncio.Future[int]] = (
            Append(add, self._loop),
            self._loop.create_future(),
        )
        self.told: tuple[list[str], list[str]] = ([], [])
        self.waiters: tuple[list[asyncio.Task[None]], list[asyncio.Task[None]]] = ([], [])
        self._callbacks: list[list[Callable[[Any], None]]] = [self._callbacks_of(k) for k in (0, 1)]

    def _callbacks_of(self, k: int) -> list[Callable[[Any], None]]:
        def tell(name: str) -> Callable[[Any], None]:
            return lambda future: self.told[k].append(f"{name}: {outcome(future)}, itself: {future is self.both[k]}")

        return [tell("one"), tell("other")]

    async def _wait(self, k: int) -> None:
        try:
            self.told[k].append(f"id {await self.both[k]}")
        except asyncio.CancelledError:
            self.told[k].append("cancelled")
            raise
        except LedgerFenced as error:
            self.told[k].append(str(error))

    async def do(self, step: str, which: int) -> None:
        """Do a step to both."""
        if step == "end":
            self.end()
        elif step == "turn":
            await asyncio.sleep(0)
        for k, (future, callbacks, waiters) in enumerate(zip(self.both, self._callbacks, self.waiters, strict=True)):
            if step == "cancel":
                self.told[k].append(str(future.cancel("for a reason")))
            elif step == "callback":
                future.add_done_callback(callbacks[which])
            elif step == "remove":
                self.told[k].append(f"{future.remove_done_callback(callbacks[which])} removed")
            elif step == "await":
                waiters.append(self._loop.create_task(self._wait(k)))
            elif step == "cancel a waiter" and waiters:
                waiters[which % len(waiters)].cancel()
            elif step == "look":
                self.told[k].append(outcome(future))

    def end(self) -> None:
        """Let both end."""
        future = self.both[1]
        if self._fails:
            self._window.fail(LedgerFenced("fenced"))
        else:
            self._window.answered(0, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32))
            self._window.release()
        if not future.done():
            if self._fails:
                future.set_exception(LedgerFenced("fenced"))
            else:
                future.set_result(ENTRY)


def outcome(future: asyncio.Future[int]) -> str:
    """Return all that a future says about itself."""
    said = [f"done {future.done()}", f"cancelled {future.cancelled()}"]
    for ask in (future.result, future.exception):
        try:
            said.append(repr(ask()))
        except asyncio.InvalidStateError:
            said.append("not yet")
        except (asyncio.CancelledError, LedgerFenced) as error:
            said.append(repr(error))
    return ", ".join(said)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1)), max_size=12), st.booleans())
def test_an_add_agrees_with_a_future(steps: list[tuple[str, int]], fails: bool) -> None:
    """Whatever is done to a pending add before and after it ends, it tells the same as a future of asyncio."""

    async def scenario() -> None:
        pair = Pair(fails=fails)
        for step, which in steps:
            await pair.do(step, which)
        await pair.do("turn", 0)
        pair.end()
        for waiters in pair.waiters:
            await asyncio.gather(*waiters, return_exceptions=True)
        await pair.do("look", 0)
        assert pair.told[0] == pair.told[1]

    VirtualLoop().run(scenario())


def pending() -> tuple[WriteWindow, Append]:
    """Return a window and its only add."""
    window = WriteWindow(Digest.of().digester, 7, (1, 1, 1), lambda _, error: error)
    add = window.append(b"")
    assert add is not None
    return window, Append(add, asyncio.get_running_loop())


def acknowledge(window: WriteWindow) -> None:
    """Acknowledge the only add of a window."""
    window.answered(0, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32))
    window.release()


def test_nothing_is_made_for_an_add_that_nobody_waits_for() -> None:
    """The window tells nobody, and asks for no turn of the loop, when such an add ends."""

    async def scenario() -> None:
        window, append = pending()
        assert (isinstance(append, asyncio.Future), asyncio.isfuture(append)) == (True, True)
        assert (append.done(), append.cancelled(), append.remove_done_callback(print)) == (False, False, 0)
        assert window.waiting == 0
        acknowledge(window)
        assert (append.done(), append.result(), append.exception(), append.cancel()) == (True, 0, None, False)
        assert window.waiting == 0

    asyncio.run(scenario())


def test_callbacks_have_the_context_that_they_are_given() -> None:
    """It is the context of the call that adds them, or the one given there."""
    number = contextvars.ContextVar("number", default=0)

    async def scenario() -> None:
        window, append = pending()
        seen: list[int] = []
        here = contextvars.copy_context()
        number.set(1)
        append.add_done_callback(lambda _: seen.append(number.get()))
        append.add_done_callback(lambda _: seen.append(number.get()), context=here)
        number.set(2)
        acknowledge(window)
        await asyncio.sleep(0)
        assert seen == [1, 0]

    asyncio.run(scenario())


def test_what_asyncio_does_with_futures() -> None:
    """gather, wait, wait_for, shield, timeout, groups and loops take adds; a shield keeps an add from its waiter."""

    async def scenario() -> None:
        window, append = pending()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(append), 0)
        assert not append.done()
        waiting = asyncio.gather(append, asyncio.shield(append), asyncio.wait_for(append, 60))
        done, left = await asyncio.wait([append], timeout=0)
        assert (done, left) == (set(), {append})
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.wait([append], return_when=asyncio.FIRST_COMPLETED))
            group.create_task(asyncio.sleep(0)).add_done_callback(lambda _: acknowledge(window))
        assert task.result() == ({append}, set())
        assert list(await waiting) == [0, 0, 0]
        assert asyncio.ensure_future(append) is asyncio.wrap_future(append) is append

        _, cancelled = pending()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(cancelled, 0)
        assert cancelled.cancelled()
        assert isinstance((await asyncio.gather(cancelled, return_exceptions=True))[0], asyncio.CancelledError)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.gather(cancelled)

    asyncio.run(scenario())
    loop = asyncio.new_event_loop()
    try:

        async def later() -> tuple[WriteWindow, Append]:
            return pending()

        window, append = loop.run_until_complete(later())
        loop.call_soon(acknowledge, window)
        assert loop.run_until_complete(append) == 0
    finally:
        loop.close()


def test_only_the_window_ends_an_add() -> None:
    """Nobody else can give it a result, and its text says how it stands."""

    async def scenario() -> None:
        window, append = pending()
        with pytest.raises(asyncio.InvalidStateError, match="ledger 7, entry 0, pending> ends with its add"):
            append.set_result(5)
        with pytest.raises(asyncio.InvalidStateError, match="ledger 7, entry 0, pending> ends with its add"):
            append.set_exception(ValueError())
        with pytest.raises(asyncio.InvalidStateError, match="has not ended"):
            append.result()
        acknowledge(window)
        assert repr(append) == "<Append of ledger 7, entry 0, acknowledged>"
        window, append = pending()
        append.cancel()
        assert repr(append) == "<Append of ledger 7, entry 0, cancelled>"
        window, append = pending()
        window.fail(LedgerFenced("fenced"))
        assert repr(append) == "<Append of ledger 7, entry 0, failed>"

    asyncio.run(scenario())


def test_a_failure_that_nobody_looks_at_makes_no_noise() -> None:
    """asyncio logs no exception that was never retrieved, whether there were waiters, callbacks or neither."""

    async def scenario() -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        made = [pending() for _ in range(3)]
        made[0][1].add_done_callback(lambda _: None)
        waiter = asyncio.ensure_future(asyncio.wait([made[1][1]]))
        await asyncio.sleep(0)
        for window, _ in made:
            window.fail(LedgerFenced("fenced"))
        await waiter
        made.clear()
        del waiter, window, _
        gc.collect()
        await asyncio.sleep(0)
        assert complaints == []

    asyncio.run(scenario())
