"""The pending response to one request of a link, as a future of the event loop."""

import asyncio
from typing import Any

from bookie.client.wire.request import Request
from bookie.errors import BookKeeperError


class AwaitedReply:
    """The pending response to a request.

    Attributes:
        request: The request.
        deadline: When it times out, in seconds on the event loop's clock.
        value: Done when the response has arrived; cancelled if nobody waits for it any more.
    """

    __slots__ = ("deadline", "request", "value")

    def __init__(self, request: Request, deadline: float, value: "asyncio.Future[Any]") -> None:
        self.request = request
        self.deadline = deadline
        self.value = value

    @property
    def done(self) -> bool:
        """Whether it is completed or cancelled."""
        return self.value.done()

    def succeed(self, value: Any) -> None:
        """Complete the future with a value, unless it is done."""
        if not self.value.done():
            self.value.set_result(value)

    def fail(self, error: BookKeeperError) -> None:
        """Complete the future with an error, unless it is done."""
        if not self.value.done():
            self.value.set_exception(error)
