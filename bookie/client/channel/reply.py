"""The pending response to one request. The channel's receiving thread completes it, or the loss of the connection
does.

The channel's lock guards every field, and one condition serves all replies of a channel.
"""

import threading
import time
from typing import Generic, TypeVar

from bookie.client.wire.request import Request
from bookie.errors import BookKeeperError

T = TypeVar("T")


def renewed(error: BookKeeperError) -> BookKeeperError:
    """Return a copy of an error to raise: one object raised on several threads would collect all their tracebacks."""
    return type(error)(*error.args)


class Reply(Generic[T]):
    """The pending response to a request, which the `_async` methods return.

    Attributes:
        request: The request.
        address: The address of the bookie, as host:port.
        deadline: When the request times out, on the clock `time.monotonic`.
        done: Whether the request was answered or has failed.
    """

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
        """Wait for the response and return its value.

        Raises:
            BookKeeperError: The error that the bookie answered, or BookieUnavailable, RequestTimeout or ClientClosed.
        """
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
        """Complete the reply with a value, if it is not completed. The caller holds the channel's lock."""
        if not self.done:
            self._value = value
            self.done = True

    def fail(self, error: BookKeeperError) -> None:
        """Complete the reply with an error, if it is not completed. The caller holds the channel's lock."""
        if not self.done:
            self._error = error
            self.done = True

    def expire(self) -> None:
        """Complete the reply with RequestTimeout, if it is not completed. The caller holds the channel's lock."""
        self.fail(self.request.late(self.address))
