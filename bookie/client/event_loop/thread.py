"""One event loop on a daemon thread, for callers that have none. Any thread may call.

What is under way when it stops ends with ClientClosed. A process that was forked has no such thread: there every call
is refused at once, and nothing of the parent's loop is touched. At the interpreter's exit the thread is stopped first,
so that it does not run into what is being taken down.
"""

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import Any, TypeVar
from weakref import WeakSet

from bookie.errors import ClientClosed, IllegalOperation

__all__ = ["LoopThread"]

T = TypeVar("T")
JOIN_S_MAX = 10.0


class LoopThread:
    """If the interpreter ends before `stop`: `last_call` runs on the loop, which stops then, and `at_exit` is called.

    Executors take no more work by then.
    """

    def __init__(
        self, name: str, last_call: Callable[[], Coroutine[Any, Any, None]], at_exit: Callable[[], None]
    ) -> None:
        self._last_call = last_call
        self._at_exit = at_exit
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: set[Future[Any]] = set()
        self._refusal = "this BookKeeper is not started: use it in a with statement, or call start()"
        self.alive = False
        self._ended = False

    def start(self) -> None:
        """Once."""
        self._loop = asyncio.new_event_loop()
        self._refusal = "the client is closed; open another BookKeeper"
        self.alive = True
        _running.add(self)
        self._thread.start()

    def check(self) -> None:
        """ClientClosed when the loop does not run, or not in this process; IllegalOperation on its own thread."""
        if not self.alive:
            raise ClientClosed(self._refusal)
        if threading.get_ident() == self._thread.ident:
            raise IllegalOperation(
                "a call that waits, on the client's own thread: use another thread, or bookie.client.aio"
            )

    def submit(self, call: Coroutine[Any, Any, T]) -> Future[T]:
        """Run it on the loop. ClientClosed."""
        if self._loop is None or not self.alive:
            call.close()
            raise ClientClosed(self._refusal)
        try:
            future = asyncio.run_coroutine_threadsafe(call, self._loop)
        except RuntimeError as error:
            call.close()
            raise ClientClosed(self._refusal) from error
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        if self._ended:
            _refuse(future)
        return future

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Its result. What interrupts the wait cancels it."""
        try:
            self.check()
        except BaseException:
            call.close()
            raise
        future = self.submit(call)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and the thread. Twice is fine."""
        _running.discard(self)
        if self.alive and self._loop is not None:
            self.alive = False
            self._loop.call_soon_threadsafe(self._loop.stop)
            if threading.get_ident() != self._thread.ident:
                self._thread.join(JOIN_S_MAX)

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
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
        """In the child: the thread stayed with the parent, and the loop is the parent's."""
        self.alive = False
        self._refusal = f"process {os.getpid()} was forked from the client's: open another BookKeeper in it"

    def exit(self) -> None:
        """The interpreter ends."""
        with contextlib.suppress(ClientClosed, TimeoutError):
            self.submit(self._last_call()).result(JOIN_S_MAX)
        self.stop()
        self._at_exit()


async def _end_tasks() -> None:
    await asyncio.sleep(0)  # calls that came last become tasks
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
