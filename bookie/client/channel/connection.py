"""What a channel needs of its connection to a bookie. `threaded` implements it with sockets and a receiving thread.

Everything that a channel does passes through these calls, so that another implementation can take the place of
`threaded` without a change to the operations, the streams or their callers. Any number of threads may call.
"""

from collections.abc import Callable
from typing import Any, Protocol

from typing_extensions import Buffer

from bookie._fast.client.add_window import AddWindow
from bookie.client.channel.reply import Reply
from bookie.client.wire.request import Request


class Connection(Protocol):
    """A connection to one bookie, open from its creation until `close` or its loss.

    Attributes:
        address: The address of the bookie, as host:port.
        timeout_s: The time limit for sending a request, and of streams, in seconds.
    """

    address: str
    timeout_s: float

    def submit(self, request: Request) -> Reply[Any]:
        """Send a request as soon as its key is free and there are not too many unanswered ones.

        Args:
            request: The request.

        Returns:
            The pending reply.

        Raises:
            IncorrectParameter: The request does not fit into a frame.
            IllegalOperation: The request is an add in V2, and only the ledger's stream may write the entry.
            RequestTimeout: The request could not be sent within the time limit.
        """
        ...

    def open_stream(self, ledger: int, first: int, outstanding: int) -> AddWindow:
        """Begin to take responses for a stream of adds, as soon as its keys are free.

        Args:
            ledger: The id of the ledger.
            first: The id of the first entry.
            outstanding: The highest number of unanswered adds.

        Returns:
            The adds of the stream.

        Raises:
            IllegalOperation: The protocol is V2, and another stream writes the ledger.
            RequestTimeout: The protocol is V2, and earlier adds of these entries stayed unanswered for too long.
            ValueError: An argument is invalid.
        """
        ...

    def send_adds(self, window: AddWindow, frames: Buffer, count: int, transaction: int) -> None:
        """Send the next adds of a stream.

        Args:
            window: The adds of the stream. It has room for them.
            frames: The frames of the adds.
            count: The number of adds.
            transaction: The transaction of the first add in V3; the others count up from it.
        """
        ...

    def wait(self, until: Callable[[], bool], progress: Callable[[], object], timeout_s: float) -> bool:
        """Wait until responses have made a condition true. The connection's lock is held during both calls.

        Args:
            until: The condition.
            progress: A value that changes as long as the bookie makes progress.
            timeout_s: How long the value may stay the same while the condition is false, in seconds.

        Returns:
            Whether the condition is true; False after the time limit.

        Raises:
            BookieUnavailable: The connection was lost before the condition was true.
            ClientClosed: The channel was closed before.
        """
        ...

    def drop_stream(self, window: AddWindow) -> None:
        """End a stream. Responses that still arrive are ignored, but in V2 they keep their keys in use.

        Args:
            window: The adds of the stream.
        """
        ...

    def raise_if_broken(self) -> None:
        """Raise the error that ended the connection, if it has ended."""
        ...

    def close(self) -> None:
        """Fail everything outstanding with ClientClosed, and close the socket. Further calls do nothing."""
        ...
