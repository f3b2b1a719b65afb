"""How long calls may wait for a metadata store: for the session's timeout, for less on behalf of somebody who would not
wait so long, and for less once the process is about to end. Any thread may call.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from bookie.errors import MetadataStoreError

__all__ = ["at_most", "carried", "NoAnswer", "Patience"]

T = TypeVar("T")
FOR_EVER = float("inf")
SHOWN_S_MIN = 0.05
"""A shorter wait is not told, as it would read as 0 s."""
_own = threading.local()


@contextmanager
def at_most(each_s: float) -> Generator[None]:
    """Let no call that this thread makes in the block wait for a store for more than `each_s` seconds."""
    before = getattr(_own, "each_s", FOR_EVER)
    _own.each_s = min(each_s, before)
    try:
        yield
    finally:
        _own.each_s = before


def carried(call: Callable[[], T]) -> Callable[[], T]:
    """Return `call` for another thread, where its calls to a store wait no longer than they would on this one."""
    each_s = getattr(_own, "each_s", FOR_EVER)
    if each_s == FOR_EVER:
        return call

    def limited() -> T:
        with at_most(each_s):
            return call()

    return limited


class NoAnswer(MetadataStoreError):
    """The metadata store did not answer in time."""


class Patience:
    """The time that each call has, `call_s` seconds until `hurry` is called."""

    def __init__(self, call_s: float) -> None:
        self._call_s = call_s
        self._lock = threading.Lock()
        # The fields below are guarded by _lock.
        self._hurried_at = FOR_EVER
        self._hurried_s = call_s
        self._given_up = False

    def hurry(self, patience_s: float) -> None:
        """Let no call take longer than this from now on, including those that wait. Once one of them had no answer in
        that time, all fail at once. Only the first call of this method counts.
        """
        with self._lock:
            if self._hurried_at == FOR_EVER:
                self._hurried_at, self._hurried_s = time.monotonic(), patience_s

    def left(self, begun: float, call_s: float | None = None) -> float:
        """Return for how many seconds a call may still wait that began at `begun`, by the monotonic clock; nothing is
        left if that is not above 0.

        Args:
            begun: When the call began.
            call_s: How long this call may take before anybody hurries; without it, as long as all.
        """
        now = time.monotonic()
        with self._lock:
            left = begun + (self._call_s if call_s is None else call_s) - now
            if self._hurried_at <= now:
                left = min(left, max(begun, self._hurried_at) + self._hurried_s - now)
                self._given_up |= left <= 0
            left = min(left, begun + getattr(_own, "each_s", FOR_EVER) - now)
            return 0.0 if self._given_up else left

    def no_answer(self, store: str, begun: float, check: str) -> NoAnswer:
        """Return the error of a call that gives up.

        Args:
            store: The kind and address of the store, which begin the sentence.
            begun: When the call began.
            check: What the operator is to check.
        """
        waited_s = min(time.monotonic() - begun, self._call_s)
        with self._lock:
            given_up = self._given_up
        if waited_s >= SHOWN_S_MIN:
            why = f"did not answer within {round(waited_s, 1):g} s"
        elif given_up:
            why = "did not answer an earlier call, so this one did not wait"
        else:
            why = "did not answer in time"
        return NoAnswer(f"{store} {why}: {check}")
