"""One HTTP connection: who is at its other end, and how long it may keep us waiting. The plane's event loop.

A request, head and body, has `receive_s` from its first byte; an answer `send_s` to be taken, and a second more for
each `BYTES_A_SECOND` of it. For the door a connection is busy from the end of a request to the end of its answer, and
idle otherwise: half a request, or an answer that nobody takes, keeps no place from others.
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

from admin.door import Visitor
from bookie.server.logs.throttle import LogThrottle

__all__ = ["Connection", "Patience"]

BYTES_A_SECOND = 64 * 1024
LINGER_S = 1.0
"""Who was answered in the middle of a request may send on for so long, so that the answer is not lost to a reset."""
logging.getLogger("uvicorn.error").addFilter(LogThrottle())  # peers can bring these lines about
UNDER_WAY = (h11.IDLE, h11.SEND_BODY)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long peers may take, and how much may wait for them."""

    receive_s: float
    send_s: float
    unsent: "Unsent"


class Unsent:
    """Answers of all connections that wait for their peers: at most so many bytes, and the one that was added last."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._waiting: dict[Connection, int] = {}  # those that wait for longest come first
        self._bytes = 0  # of all, as it was when each was added or counted

    def add(self, one: "Connection") -> None:
        """It waits. Beyond the limit those that wait for longest are turned away."""
        self._count(one)
        if self._bytes > self._bytes_max:
            for known in self._waiting:
                self._count(known)
        while self._bytes > self._bytes_max and len(self._waiting) > 1:
            oldest = next(iter(self._waiting))
            self.remove(oldest)
            oldest.turn_away("slow_reader")

    def remove(self, one: "Connection") -> None:
        """It waits no more; idempotent."""
        self._bytes -= self._waiting.pop(one, 0)

    def _count(self, one: "Connection") -> None:
        size = one.transport.get_write_buffer_size()
        self._bytes += size - self._waiting.get(one, 0)
        self._waiting[one] = size


class Connection(H11Protocol):
    """uvicorn's, for one visitor."""

    def __init__(self, visitor: Visitor, patience: Patience, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._visitor = visitor
        self._patience = patience
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is open, and its handshake done."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=1, low=0)  # so that we are told of all that is not sent at once
        self._visitor.close = transport.abort
        self.app_state = {**self.app_state, "subjects": _subjects(transport.get_extra_info("ssl_object"))}
        self._receive()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._received()
        self._sent()
        self._visitor.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A part of a request, or several."""
        if self._receiving is None and self._asked():
            self._receive()
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """An answer has been written; the next request may be here already."""
        self._visitor.idle()
        if self.conn.their_state is h11.SEND_BODY:
            self._receive(LINGER_S)
        super().on_response_complete()
        if self._receiving is None and self._asked() and self.conn.trailing_data[0]:
            self._receive()
        self._note()

    def pause_writing(self) -> None:
        """A part of an answer waits for its peer."""
        super().pause_writing()
        if self._sending is None:
            seconds = self._patience.send_s + self.transport.get_write_buffer_size() / BYTES_A_SECOND
            self._sending = self.loop.call_later(seconds, self.turn_away, "slow_reader")
            self._patience.unsent.add(self)

    def resume_writing(self) -> None:
        """All of it is on its way."""
        super().resume_writing()
        self._sent()

    def turn_away(self, reason: str) -> None:
        """Close it at once, for one of the door's reasons."""
        self._visitor.turn_away(reason)

    def _asked(self) -> bool:
        """No answer is owed: what comes belongs to the next request."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or bool(cycle.response_complete)

    def _note(self) -> None:
        """Whether a request is whole now."""
        if self.conn.their_state in UNDER_WAY:
            return
        self._received()
        if not self._asked():
            self._visitor.busy()

    def _receive(self, seconds: float | None = None) -> None:
        """The rest of a request has so long."""
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
        """The request is not whole in time."""
        self._receiving = None
        if self._asked() and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()  # it has its answer
        else:
            self.turn_away("late")


def _subjects(tls: ssl.SSLObject | None) -> list[str]:
    """Common name and alternative names of the certificate that was verified."""
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
