"""The pending answer to one request. Completed once, by the channel's receiving thread or by the connection's loss.

The channel's lock guards every field; one condition serves all replies of a channel.
"""

import threading
import time
from typing import Generic, TypeVar

from bookie.client.wire.request import Request
from bookie.errors import BookKeeperError

T = TypeVar("T")


def renewed(error: BookKeeperError) -> BookKeeperError:
    """A fresh instance to raise: one exception object raised in several threads would collect all their tracebacks."""
    return type(error)(*error.args)


class Reply(Generic[T]):
    """What the `_async` calls return: the `request`, sent to the bookie at `address`, and how it ended."""

    __slots__ = ("_changed", "_error", "_value", "address", "deadline", "done", "request")

    def __init__(self, changed: threading.Condition, address: str, request: Request, deadline: float) -> None:
        self._changed = changed
        self._value: T | None = None
        self._error: BookKeeperError | None = None
        self.address = address
        self.request = request
        self.deadline = deadline
        self.done = False

    def result(self) -> T:
        """Wait for the answer and return it. Raises what the bookie answered, BookieUnavailable or RequestTimeout."""
        with self._changed:
            while not self.done:
                left = self.deadline - time.monotonic()
                if left <= 0:
                    self.expire()
                else:
                    self._changed.wait(left)
            if self._error is not None:
                raise renewed(self._error)
            return self._value  # type: ignore[return-value]  # done without an error: the value is set, None for T = None

    def succeed(self, value: T) -> None:
        """Under the channel's lock. The first completion counts."""
        if not self.done:
            self._value = value
            self.done = True

    def fail(self, error: BookKeeperError) -> None:
        """Under the channel's lock. The first completion counts."""
        if not self.done:
            self._error = error
            self.done = True

    def expire(self) -> None:
        """Under the channel's lock: the time is up."""
        self.fail(self.request.late(self.address))
