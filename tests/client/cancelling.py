"""Cancel a coroutine of the asyncio client at the n-th point where it waits.

There are two moments at each of these points: while the coroutine waits, and after the future that it waits for is
done but before the coroutine has continued. In the second case its result may have been taken from where it was.
"""

import asyncio
import itertools
import types
from collections.abc import Awaitable, Callable, Generator
from enum import Enum, auto
from typing import Any, TypeVar

T = TypeVar("T")


class Moment(Enum):
    """The moments at which a coroutine is cancelled."""

    WHILE_IT_WAITS = auto()
    ONCE_IT_MAY_GO_ON = auto()


class Interrupted(Exception):
    """The call was cancelled at the point that was asked for."""


async def interrupted(call: Awaitable[T], point: int, moment: Moment) -> T:
    """Return the result of a call that waits less than `point` times; otherwise cancel it and raise Interrupted.

    The call runs in a task of its own, and the wait for that task is part of the call: its caller may leave it.
    """
    task = asyncio.ensure_future(_stepped(call, point, moment))
    await asyncio.wait([task])
    if task.cancelled():
        raise Interrupted
    return task.result()


async def in_spite_of_cancellations(call: Callable[[], Awaitable[T]], moment: Moment) -> T:
    """Make a call again and again, cancelled at its first point, at its second one and so on, until it has a result."""
    for point in itertools.count(1):
        try:
            return await interrupted(call(), point, moment)
        except Interrupted:
            continue
    raise AssertionError


@types.coroutine
def _stepped(call: Awaitable[T], point: int, moment: Moment) -> Generator[Any, None, T]:
    steps = call.__await__()
    task = asyncio.current_task()
    assert task is not None
    step = 0
    error: BaseException | None = None
    while True:
        try:
            future = steps.send(None) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        error = None
        step += 1
        if step == point:
            if future is None or moment is Moment.WHILE_IT_WAITS:
                asyncio.get_running_loop().call_soon(task.cancel)
            else:
                future.add_done_callback(lambda _: task.cancel())
        try:
            yield future
        except BaseException as raised:  # noqa: BLE001 - it is thrown into the call
            error = raised
