"""Streams of what changes: a look now, then another one whenever it differs. On the plane's threads."""

import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

__all__ = ["changes"]

LOOK_S = 0.25
T = TypeVar("T")


def changes(
    look: Callable[[], tuple[Hashable, T]], context: Any, ended: threading.Event, *, every_s: float = LOOK_S
) -> Iterator[T]:
    """`look` answers what is compared, and what is sent. Until the caller goes, its deadline passes, or `ended`."""
    before: Hashable = None
    while context.is_active() and not ended.is_set():
        now, answer = look()
        if now != before:
            before = now
            yield answer
        ended.wait(every_s)
