"""An event loop without a clock, a selector or a thread: time jumps to the next callback.

Callbacks run in the order of their time, and those of one time in the order in which they were scheduled. So a run
depends on nothing but the program and its random numbers, and an hour of waiting costs nothing.
"""

import asyncio
import contextvars
import heapq
import traceback
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Stuck", "VirtualLoop"]

T = TypeVar("T")


class Stuck(Exception):
    """Raised if nothing is scheduled and the awaited result has not come, or after too many steps."""


class _Handle:
    """A scheduled callback; handles are ordered by time."""

    __slots__ = ("args", "callback", "context", "number", "time")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context | None, time: float
    ) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context
        self.time = time

    def cancel(self) -> None:
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.callback is None

    def when(self) -> float:
        return self.time


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. It starts at 0 seconds. `problems` has exceptions that were not retrieved, which asyncio would log."""

    def __init__(self) -> None:
        self._runs = False  # asyncio's own loop is not used, so its state is not created
        self.problems: list[str] = []
        self.steps = 0
        self._now = 0.0
        self._queue: deque[_Handle] = deque()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._number = 0
        self._at_steps: list[tuple[int, int, Callable[[], object]]] = []

    # The part of asyncio's loop that is used.

    def time(self) -> float:
        return self._now

    def call_soon(  # type: ignore[override]  # our handle does what asyncio's does
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> _Handle:
        handle = _Handle(callback, args, context or contextvars.copy_context(), self._now)
        self._queue.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> _Handle:
        handle = _Handle(callback, args, context or contextvars.copy_context(), when)
        self._number += 1
        heapq.heappush(self._timers, (when, self._number, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> _Handle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def event(self, delay: float, callback: Callable[..., object], *args: Any) -> _Handle:
        """Schedule one of the world's own callbacks, which need no context, after a delay."""
        return self.event_at(self._now + delay, callback, *args)

    def event_at(self, when: float, callback: Callable[..., object], *args: Any) -> _Handle:
        """Schedule one of the world's own callbacks at a time."""
        handle = _Handle(callback, args, None, when)
        self._number += 1
        heapq.heappush(self._timers, (when, self._number, handle))
        return handle

    def after_steps(self, count: int, callback: Callable[[], object]) -> None:
        """Call back after the loop has run this many callbacks, or none if it ends before."""
        self._number += 1
        heapq.heappush(self._at_steps, (self.steps + count, self._number, callback))

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, T], **options: Any) -> "asyncio.Task[T]":  # type: ignore[override]
        return asyncio.Task(coro, loop=self, **options)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._runs

    def is_closed(self) -> bool:
        return not self._runs  # it holds nothing that must be closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        frames = traceback.extract_tb(error.__traceback__)[-2:] if error else []
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
        self.problems.append(f"{context.get('message')}: {type(error).__name__}: {error} {where}")

    async def shutdown_asyncgens(self) -> None:
        """Do nothing; generators that were left are closed by the garbage collector."""

    # Running.

    def run(self, coro: Coroutine[Any, Any, T], *, steps_max: int = 1_000_000) -> T:
        """Run until the coroutine has ended. Raises Stuck if that cannot happen any more."""
        task = self.create_task(coro)
        self._drive(task.done, steps_max)
        if not task.done():
            raise Stuck(f"nothing is due after {self._now:.3f} s and {self.steps} steps")
        return task.result()

    def run_for(self, seconds: float, *, steps_max: int = 1_000_000) -> None:
        """Run everything that is scheduled within this many seconds from now."""
        until = self._now + seconds
        self._drive(lambda: not self._queue and (not self._timers or self._timers[0][0] > until), steps_max)
        self._now = until

    def cancel_all(self) -> None:
        """Cancel every task that is left; their errors are in `problems`."""
        for task in sorted(asyncio.all_tasks(self), key=lambda task: task.get_name()):
            task.cancel()
        self._drive(lambda: not self._queue, 1_000_000)

    def _drive(self, done: Callable[[], bool], steps_max: int) -> None:
        ready, timers = self._queue, self._timers
        before = events._get_running_loop()
        events._set_running_loop(self)
        self._runs = True
        last = self.steps + steps_max
        try:
            while not done():
                if not ready:
                    if not timers:
                        return
                    self._due()
                    continue
                self.steps += 1
                while self._at_steps and self._at_steps[0][0] < self.steps:
                    heapq.heappop(self._at_steps)[2]()
                if self.steps > last:
                    raise Stuck(f"more than {steps_max} steps, and {self._now:.3f} s have passed")
                handle = ready.popleft()
                callback = handle.callback
                if callback is None:
                    continue
                try:
                    if handle.context is None:
                        callback(*handle.args)
                    else:
                        handle.context.run(callback, *handle.args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - as asyncio: a callback that fails is reported, and is not fatal
                    self.call_exception_handler({"message": "a callback failed", "exception": error})
        finally:
            self._runs = False
            events._set_running_loop(before)

    def _due(self) -> None:
        """Let time jump to the next callback, and return all callbacks of that time."""
        timers, ready = self._timers, self._queue
        when = timers[0][0]
        self._now = max(self._now, when)
        while timers and timers[0][0] <= self._now:
            handle = heapq.heappop(timers)[2]
            if handle.callback is not None:
                ready.append(handle)
