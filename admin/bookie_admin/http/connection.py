"""One HTTP connection, the identity of its peer, and its deadlines. Runs on the plane's event loop.

A request, head and body, must be complete `receive_s` seconds after its first byte. A response must be taken within
`send_s` seconds, plus one second for each `BYTES_A_SECOND` of it. For the door, a connection is busy from the end of a
request to the end of its response, and idle otherwise, so that an incomplete request or a response that is not read
cannot keep others out.
"""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from typing import Any

import h11
from cryptography import x509
from cryptography.x509.oid import NameOID
from uvicorn.protocols.http.h11_impl import H11Protocol

from bookie.log_throttle import LogThrottle
from bookie_admin.door import Visitor

__all__ = ["Connection", "Patience"]

BYTES_A_SECOND = 64 * 1024
LINGER_S = 1.0
"""How long a peer that received its response in the middle of its request may continue to send, so that the response
is not lost to a connection reset.
"""
logging.getLogger("uvicorn.error").addFilter(LogThrottle())  # peers can cause these lines
UNDER_WAY = (h11.IDLE, h11.SEND_BODY)


@dataclass(frozen=True, slots=True)
class Patience:
    """The deadlines of a connection in seconds, and the unsent responses of all connections."""

    receive_s: float
    send_s: float
    unsent: "Unsent"


class Unsent:
    """The unsent output of all connections: at most a number of bytes, plus the connection that was added last."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._waiting: dict[Connection, int] = {}  # those that have waited longest come first
        self._bytes = 0  # the total, as of when each was added or counted

    def add(self, one: "Connection") -> None:
        """Add a connection with unsent output. Beyond the limit, the connections that have waited longest are turned
        away.
        """
        self._count(one)
        if self._bytes > self._bytes_max:
            for known in self._waiting:
                self._count(known)
        while self._bytes > self._bytes_max and len(self._waiting) > 1:
            oldest = next(iter(self._waiting))
            self.remove(oldest)
            oldest.turn_away("slow_reader")

    def remove(self, one: "Connection") -> None:
        """Remove a connection. Idempotent."""
        self._bytes -= self._waiting.pop(one, 0)

    def _count(self, one: "Connection") -> None:
        size = one.transport.get_write_buffer_size()
        self._bytes += size - self._waiting.get(one, 0)
        self._waiting[one] = size


class Connection(H11Protocol):
    """uvicorn's connection, for one visitor of the door."""

    def __init__(self, visitor: Visitor, patience: Patience, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._visitor = visitor
        self._patience = patience
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start serving a connection that is open and whose TLS handshake is done."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=1, low=0)  # so that we are notified of all unsent output
        self._visitor.close = transport.abort
        self.app_state = {**self.app_state, "subjects": _subjects(transport.get_extra_info("ssl_object"))}
        self._receive()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything after the connection was closed."""
        self._received()
        self._sent()
        self._visitor.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive bytes of one or more requests."""
        if self._receiving is None and self._in_request():
            self._receive()
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """Go on after a response was written; the next request may have arrived already."""
        self._visitor.idle()
        if self.conn.their_state is h11.SEND_BODY:
            self._receive(LINGER_S)
        super().on_response_complete()
        if self._receiving is None and self._in_request() and self.conn.trailing_data[0]:
            self._receive()
        self._note()

    def pause_writing(self) -> None:
        """Start the deadline of a response that could not be sent at once."""
        super().pause_writing()
        if self._sending is None:
            seconds = self._patience.send_s + self.transport.get_write_buffer_size() / BYTES_A_SECOND
            self._sending = self.loop.call_later(seconds, self.turn_away, "slow_reader")
            self._patience.unsent.add(self)

    def resume_writing(self) -> None:
        """Stop the deadline: all output was sent."""
        super().resume_writing()
        self._sent()

    def turn_away(self, reason: str) -> None:
        """Close the connection at once and count it under one of the door's reasons."""
        self._visitor.turn_away(reason)

    def _in_request(self) -> bool:
        """Return whether no response is due, so that what arrives belongs to the next request."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or bool(cycle.response_complete)

    def _note(self) -> None:
        """Stop the deadline if the request is complete now."""
        if self.conn.their_state in UNDER_WAY:
            return
        self._received()
        if not self._in_request():
            self._visitor.busy()

    def _receive(self, seconds: float | None = None) -> None:
        """Start the deadline for the rest of a request."""
        self._received()
        if seconds is None:
            seconds = self._patience.receive_s
        self._receiving = self.loop.call_later(seconds, self._late)

    def _received(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _sent(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        self._patience.unsent.remove(self)

    def _late(self) -> None:
        """Close the connection: the request was not complete in time."""
        self._receiving = None
        if self._in_request() and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()  # it has its response already
        else:
            self.turn_away("late")


def _subjects(tls: ssl.SSLObject | None) -> list[str]:
    """Return the common name and alternative names in the verified client certificate."""
    data = tls.getpeercert(binary_form=True) if tls is not None else None
    if not data:
        return []
    certificate = x509.load_der_x509_certificate(data)
    names = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        other = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return names
    return names + other.get_values_for_type(x509.DNSName)
