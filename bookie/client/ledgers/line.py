"""The line of adds that are not accepted yet, as futures of asyncio. Event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from bookie._fast.client.write_window import Add
from bookie.client.ledgers.throttle import Backpressure, Caller
from bookie.errors import TooManyRequests

__all__ = ["Line"]

WAITING_BYTES = 2048
"""About what the task and the futures of an add in line take, beside its payload."""


class Line:
    """Adds that wait until they are accepted, of `bytes_max` bytes at most. They have their places by the time that
    `join` returns.
    """

    def __init__(self, backpressure: Backpressure, bytes_max: int) -> None:
        self._backpressure = backpressure
        self._bytes_max = bytes_max
        self._bytes = 0
        self._waiting: dict[asyncio.Task[None], asyncio.Future[int]] = {}

    def join(self, size: int, accept: Callable[[Caller], Coroutine[Any, Any, Add]]) -> asyncio.Future[int]:
        """Return a future of the id of an add of `size` bytes, which `accept` waits for at the given place.

        If the future is cancelled before the add was accepted, it never is. Raises TooManyRequests if the line is full.
        """
        taken = size + WAITING_BYTES
        if self._waiting and self._bytes + taken > self._bytes_max:
            raise TooManyRequests(
                f"{len(self._waiting)} adds wait for room already, and maxWaitingAddBytes is {self._bytes_max}: await"
                " drain() between adds"
            )
        self._bytes += taken
        loop = asyncio.get_running_loop()
        caller = self._backpressure.enter()
        future: asyncio.Future[int] = loop.create_future()

        def left(*_: object) -> None:
            if self._waiting.pop(task, None) is not None:
                self._bytes -= taken
                self._backpressure.leave(caller)

        async def accepted() -> Add:
            add = await accept(caller)
            left()  # at once: those behind it, which were woken with it, go on in this turn of the loop
            return add

        task = loop.create_task(_wait(accepted, future))
        self._waiting[task] = future
        task.add_done_callback(left)  # it may never have run
        future.add_done_callback(lambda _: task.cancel())
        return future

    async def accepted(self) -> None:
        """Wait until all adds that are in line now were accepted. Raises the error of the first that was not."""
        waiting = dict(self._waiting)
        if waiting:
            await asyncio.wait(waiting)
        for future in waiting.values():
            if future.done() and not future.cancelled():
                future.result()

    def fail(self, error: Callable[[], Exception]) -> None:
        """Let all adds in line fail."""
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(error())
                future.exception()  # asyncio need not log it: `flush` and all later adds raise it, too


async def _wait(accept: Callable[[], Coroutine[Any, Any, Add]], future: asyncio.Future[int]) -> None:
    try:
        add = await accept()
    except asyncio.CancelledError:
        future.cancel()
        raise
    except Exception as error:  # noqa: BLE001 - it is what the caller asks for
        if not future.done():
            future.set_exception(error)
    else:
        _relay(add, future)


class _Relay:
    """Passes the end of an add on to a future."""

    __slots__ = ("_add", "_future")

    def __init__(self, add: Add, future: asyncio.Future[int]) -> None:
        self._add = add
        self._future = future

    def done(self) -> bool:
        return self._future.done()

    def set_result(self, _: None) -> None:
        try:
            self._future.set_result(self._add.result())
        except Exception as error:  # noqa: BLE001 - it is what the caller asks for
            self._future.set_exception(error)
            self._future.exception()  # asyncio need not log it: `flush` and all later adds raise it, too


def _relay(add: Add, future: asyncio.Future[int]) -> None:
    relay = _Relay(add, future)
    if not add.done():
        add.tell(relay)
    elif not future.done():
        relay.set_result(None)
