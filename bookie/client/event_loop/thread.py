"""An event loop on a daemon thread, for callers that have none. Any thread may call it.

Calls that are outstanding when it stops end with ClientClosed. A forked process does not have the thread: there every
call is refused at once, and the parent's loop is not touched. When the interpreter exits, the thread is stopped
first, so that it does not use what is being torn down.
"""

import asyncio
import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

from bookie.client.event_loop.limited import limited, seconds
from bookie.errors import BookKeeperError, ClientClosed, IllegalOperation

__all__ = ["LoopThread", "NOT_STARTED"]

T = TypeVar("T")
Unclaimed: TypeAlias = Callable[[T], None]
"""Gives back a result that nobody takes. It runs on the event loop, and does not wait: a client that is closed at once
must not end its session before.
"""
JOIN_S_MAX = 10.0
NOT_STARTED = "this BookKeeper is not started: use it in a with statement, or call start()"

log = logging.getLogger(__name__)


class LoopThread:
    """An event loop on a daemon thread. A call may wait for `timeout_s` seconds if it does not say how long; 0 and
    below mean without limit.

    If the interpreter exits before `stop` was called, `last_call` runs on the loop, the loop stops, and `at_exit` is
    called. Executors accept no more work at that time.
    """

    def __init__(
        self,
        name: str,
        last_call: Callable[[], Coroutine[Any, Any, None]],
        at_exit: Callable[[], None],
        timeout_s: float = 0.0,
    ) -> None:
        self._timeout_s = timeout_s if timeout_s > 0 else None
        self._last_call = last_call
        self._at_exit = at_exit
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: set[Future[Any]] = set()
        self._refusal: BookKeeperError = IllegalOperation(NOT_STARTED)
        self.alive = False
        self._ended = False
        self._ident = 0  # of the thread, once it runs

    def start(self) -> None:
        """Start the thread. It can be started only once."""
        self._loop = asyncio.new_event_loop()
        self._refusal = ClientClosed("the client is closed; open another BookKeeper")
        self.alive = True
        _running.add(self)
        self._thread.start()

    def check(self) -> None:
        """Check that a call may wait here.

        Raises ClientClosed if the loop does not run in this process any more, and IllegalOperation if it was not
        started, or on the loop's own thread.
        """
        if not self.alive:
            raise self._refused()
        if threading.get_ident() == self._ident:
            raise IllegalOperation(
                "a call that waits was made on the client's own thread: use another thread, or bookie.client.aio"
            )

    def limit(self, timeout: float | None) -> float | None:
        """Return how many seconds a call may wait: `timeout`, or if it is None the client's own; None if there is no
        limit. Raises IncorrectParameter.
        """
        return self._timeout_s if timeout is None else seconds(timeout)

    def submit(
        self, call: Coroutine[Any, Any, T], limit_s: float | None = None, *, unclaimed: Unclaimed[T] | None = None
    ) -> Future[T]:
        """Run a coroutine on the loop, and return a future of its result. Raises ClientClosed or IllegalOperation.

        It ends with RequestTimeout after `limit_s` seconds; None means no limit. `unclaimed` is called with the result
        of a call that has ended when its future is cancelled.
        """
        if self._loop is None or not self.alive:
            call.close()
            raise self._refused()
        work = call if limit_s is None else limited(call, limit_s)
        owner: list[Future[T]] = []
        early: list[asyncio.Task[T]] = []
        if unclaimed is not None:
            work = self._claimed(work, owner, early, unclaimed)
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            owner.append(future)
            self._calls.add(future)
            future.add_done_callback(self._calls.discard)
        except RuntimeError as error:
            work.close()
            call.close()
            raise self._refused() from error
        except BaseException:  # a signal's handler raised, perhaps when the loop had been told
            nobody: Future[T] = Future()
            nobody.cancel()
            owner.insert(0, nobody)
            self._loop.call_soon_threadsafe(self._abandon, work, early, nobody, unclaimed)
            raise
        if self._ended:
            _refuse(future)
        return future

    async def _claimed(
        self,
        call: Coroutine[Any, Any, T],
        owner: list[Future[T]],
        early: list[asyncio.Task[T]],
        unclaimed: Unclaimed[T],
    ) -> T:
        """Run `call`, and then `unclaimed` if the result comes too late for its owner. A task that ends before it has
        an owner is added to `early`.
        """

        def claim(task: asyncio.Task[T]) -> None:
            # It comes after the callback that sets the future.
            if owner:
                self._give_back(task, owner[0], unclaimed)
            else:
                early.append(task)

        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(claim)
        return await call

    def _give_back(self, task: asyncio.Task[T], owner: Future[T], unclaimed: Unclaimed[T]) -> None:
        if owner.cancelled() and not task.cancelled() and task.exception() is None:
            unclaimed(task.result())

    def _abandon(
        self,
        call: Coroutine[Any, Any, T],
        early: list[asyncio.Task[T]],
        nobody: Future[T],
        unclaimed: Unclaimed[T] | None,
    ) -> None:
        """Cancel a call that nobody waits for, if it has become a task. It runs on the loop."""
        for task in asyncio.all_tasks():
            if task.get_coro() is call:
                task.cancel()
                return
        call.close()
        for ended in early:
            if unclaimed is not None:
                self._give_back(ended, nobody, unclaimed)

    def run(
        self, call: Coroutine[Any, Any, T], timeout: float | None = None, *, unclaimed: Unclaimed[T] | None = None
    ) -> T:
        """Run a coroutine on the loop, and return its result. If the wait is interrupted, cancel the coroutine.

        `timeout` is in seconds; see `limit`. Raises RequestTimeout, by which time the coroutine has ended. `unclaimed`
        is called with a result that comes too late for a wait that was interrupted.
        """
        try:
            self.check()
            limit_s = self.limit(timeout)
        except BaseException:
            call.close()
            raise
        future = None
        try:
            future = self.submit(call, limit_s, unclaimed=unclaimed)
            return future.result()
        except BaseException:
            if future is not None and not future.cancel() and unclaimed is not None and future.exception() is None:
                self._soon(unclaimed, future.result())
            raise

    def _soon(self, unclaimed: Unclaimed[T], result: T) -> None:
        """Give a result back on the loop, before calls that are made from now on."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(unclaimed, result)
        except RuntimeError:  # the loop has ended, and with it all that was to be given back
            log.info("a result came too late, when its client was closed: %r", result)

    def stop(self) -> None:
        """End the loop and the thread. Further calls do nothing."""
        _running.discard(self)
        if self.alive and self._loop is not None:
            self.alive = False
            with contextlib.suppress(RuntimeError):  # another thread has stopped it just now
                self._loop.call_soon_threadsafe(self._loop.stop)
            if threading.get_ident() != self._thread.ident:
                self._thread.join(JOIN_S_MAX)

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        self._ident = threading.get_ident()
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            self.alive = False
            loop.run_until_complete(_end_tasks())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            self.alive = False
            asyncio.set_event_loop(None)
            loop.close()
            self._ended = True
            for future in list(self._calls):
                _refuse(future)

    def forked(self) -> None:
        """Refuse all calls in a forked child, which has neither the thread nor a loop of its own."""
        self.alive = False
        self._refusal = ClientClosed(
            f"process {os.getpid()} was forked from the client's: open another BookKeeper in it"
        )
        for future in list(self._calls):
            # Another thread may have held its lock, and what it would call or wake is the parent's.
            future._condition = threading.Condition()
            future._done_callbacks.clear()  # type: ignore[attr-defined]
            future._waiters.clear()
            with contextlib.suppress(InvalidStateError):
                future.set_exception(self._refused())
        self._calls.clear()

    def _refused(self) -> BookKeeperError:
        return type(self._refusal)(str(self._refusal))

    def exit(self) -> None:
        """Stop at the exit of the interpreter."""
        with contextlib.suppress(ClientClosed, TimeoutError):
            self.submit(self._last_call()).result(JOIN_S_MAX)
        self.stop()
        self._at_exit()


async def _end_tasks() -> None:
    await asyncio.sleep(0)  # the calls that were submitted last become tasks
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _refuse(future: Future[Any]) -> None:
    with contextlib.suppress(InvalidStateError):
        future.set_exception(ClientClosed("the client was closed"))


_running: WeakSet[LoopThread] = WeakSet()


def _forked() -> None:
    for thread in list(_running):
        thread.forked()
    _running.clear()


def _exit() -> None:
    for thread in list(_running):
        thread.exit()


os.register_at_fork(after_in_child=_forked)
atexit.register(_exit)
