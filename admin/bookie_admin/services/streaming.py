"""Streams of changing values: sends the present value, then a new one whenever it differs. Runs on the plane's
threads.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

__all__ = ["changes"]

LOOK_S = 0.25
T = TypeVar("T")


def changes(
    look: Callable[[], tuple[Hashable, T]], context: Any, ended: threading.Event, *, every_s: float = LOOK_S
) -> Iterator[T]:
    """Yield the value that `look` returns whenever it changes, until the call or the service ends.

    Args:
        look: returns a pair: a key to compare, and the message to send.
        context: the context of the call.
        ended: set when the service ends.
        every_s: seconds between looks.
    """
    before: Hashable = None
    while context.is_active() and not ended.is_set():
        now, answer = look()
        if now != before:
            before = now
            yield answer
        ended.wait(every_s)
