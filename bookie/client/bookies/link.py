"""One connection to one bookie on the event loop. Requests leave in one write per turn of the loop; responses are
handled as tables.

Its memory is the output that is queued for the socket (senders of adds are told when that is too much), one slab for
responses (`receive`), and the table of unanswered requests. Each request ends exactly once: with its response, its
timeout, or the loss of the connection.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client import framing_v2
from bookie._fast.client.adds_in_flight import AddsInFlight
from bookie.client.bookies.awaited import AwaitedReply
from bookie.client.bookies.reads import Reads
from bookie.client.bookies.sender import Sender
from bookie.client.contracts import SenderOwner
from bookie.client.direct.connect import Endpoint
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.wire.receive import ReceiveBuffer
from bookie.client.wire.request import Request, Wire
from bookie.client.wire.security import FRAME_PREFIX
from bookie.client.wire.unanswered import ADD, READ, Unanswered
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    ProtocolVersionMismatch,
    RequestTimeout,
    WriteError,
)

W = TypeVar("W", bound=Wire)
QUEUED_BYTES_MAX = 1 << 20
"""With more output queued than this, a link is full."""
JOINED_BYTES_MAX = 64 << 10
"""Frames are joined to pieces of at most this size before they are written."""
SKIPPED_BYTES_MAX = 1 << 30
"""A response larger than a frame, but at most this large, is dropped, and its request fails; a larger one is
invalid.
"""
HEAD_BYTES = 64
"""The part of a response that names its request lies within its first bytes, as many as this."""
NEVER_S = 1e12

log = logging.getLogger(__name__)


class Link(asyncio.BufferedProtocol, Generic[W]):
    """A connection to a bookie. Requests may be made before it is `opened`; they wait for that.

    `on_end` is called when the link is broken, and `on_error` with a code of `bookie.errors` and the number of
    requests that ended with it. `add_timeout_s` is the time limit of adds in seconds, 0 for none; `tick_s` says how
    often timeouts are checked. In V2 the keys of requests that timed out stay in use, and take memory. If nothing at
    all arrives for `silence_s` seconds after a timeout, the connection therefore ends; 0 means never.
    """

    def __init__(
        self,
        bookie: str,
        wire: W,
        *,
        add_timeout_s: float,
        tick_s: float,
        silence_s: float = 0.0,
        on_end: Callable[["Link[Any]"], None],
        on_error: Callable[[int, int], None],
    ) -> None:
        self.bookie = bookie
        self.wire = wire
        self.broken: BookKeeperError | None = None
        self.closed_on_batch = False
        """Whether the bookie closed the connection while a V2 batch read was outstanding."""
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when the transport is closed."""
        self._add_timeout_s = add_timeout_s
        self._tick_s = tick_s
        self._silence_s = silence_s
        self._silent_since: float | None = None
        """When a request timed out, if nothing has arrived after that."""
        self._on_end = on_end
        self._on_error = on_error
        self._transport: asyncio.Transport | None = None
        self._buffer = ReceiveBuffer(wire.frame_bytes_max, wire.cut, skipped_bytes_max=SKIPPED_BYTES_MAX)
        self._reads = Reads(bookie, wire, on_error)
        self._adds = AddsInFlight(by_transaction=wire.by_transaction)
        self._unanswered: Unanswered[AwaitedReply] = Unanswered(wire, bookie, adds=self._adds, reads=self._reads)
        self._senders: dict[int, Sender] = {}
        self._sender_numbers = itertools.count(1)
        self._key_waits: dict[asyncio.Future[None], None] = {}  # in their order
        self._out: list[Buffer] = []
        self._queued = 0
        self._flowing = False  # opened, and the transport accepts more
        self._flush_due = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a transport, which will report when it is closed."""
        return self._transport is not None

    def endpoint(self, host: str) -> Endpoint | None:
        """Return where the bookie with this host is connected, or None if the connection was lost."""
        address = self._transport.get_extra_info("peername") if self._transport is not None else None
        return None if address is None else Endpoint(host, address[:2])

    # --- requests -----------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """The number of requests that are not answered yet."""
        return len(self._unanswered) + self._adds.count + self._reads.count

    @property
    def carries_adds(self) -> bool:
        """Whether any ledger is being written through this connection."""
        return bool(self._senders)

    async def ask(self, request: Request) -> Any:
        """Send a request, and return the value of its response. In V2, wait first for an earlier request of the
        same key.
        """
        if self._unanswered.must_wait(request.key):
            due = self._due(request.timeout_s)
            while self.broken is None and self._unanswered.must_wait(request.key):
                await self._key_wait(request, due)
        return await self.submit(request)

    async def read_many(self, ledger: int, entries: NDArray[np.int64], timeout_s: float) -> ReadAnswers:
        """Send single reads of these entries, given in ascending order, and return the responses.

        `timeout_s` is in seconds, 0 for no limit. In V2, wait first for earlier reads of the same entries.
        """
        what = f"reads of ledger {ledger}, entries {entries[0]} to {entries[-1]}"
        due = self._due(timeout_s)
        while self.broken is None and self._unanswered.group_must_wait(READ, ledger, entries):
            await self._key_wait(what, due)
        if self.broken is not None:
            raise type(self.broken)(f"{self.bookie}: {what}: {self.broken}")
        frames, transaction = self.wire.read_frames(ledger, entries)
        answers = self._reads.sent(ledger, entries, transaction, int(due * 1000))
        if self._timer is None:
            self._arm()
        self._put(frames.data, len(frames))
        found: ReadAnswers = await answers
        return found

    def submit(self, request: Request, *, at_once: bool = False) -> asyncio.Future[Any]:
        """Send a request whose key is free. With `at_once` it is sent before the link is opened, for authentication."""
        if self.broken is not None:
            raise type(self.broken)(f"{self.bookie}: {request}: {self.broken}")
        request.fits(self.wire.frame_bytes_max)
        reply = AwaitedReply(request, self._due(request.timeout_s), self._loop.create_future())
        self._unanswered.sent(reply)
        if self._timer is None:
            self._arm()
        if at_once or (self._flowing and not self._out and self.pending == 1):
            # It is alone, so waiting for other requests in this turn of the loop would gain nothing.
            assert self._transport
            self._transport.write(request.frame)
        else:
            self._put(request.frame, len(request.frame))
        return reply.value

    def _due(self, timeout_s: float) -> float:
        return self._loop.time() + timeout_s if timeout_s else NEVER_S

    async def _key_wait(self, what: object, due: float) -> None:
        wait = self._loop.create_future()
        self._key_waits[wait] = None
        try:
            async with asyncio.timeout_at(due):
                await wait
        except TimeoutError:
            error = (
                f"{self.bookie}: {what}: not sent, since an earlier request for the same entry is unanswered; try again"
            )
            raise RequestTimeout(error) from None
        finally:
            self._key_waits.pop(wait, None)

    # --- senders ------------------------------------------------------------------------------------------------------

    def sender(self, ledger: int, master_key: bytes, owner: SenderOwner, *, flags: int, deferred_sync: bool) -> Sender:
        """Open a sender on a link that is not broken."""
        number = next(self._sender_numbers)
        sender = Sender(self, number, ledger, master_key, owner, flags=flags, deferred_sync=deferred_sync)
        self._senders[number] = sender
        return sender

    def send_adds(
        self, sender: Sender, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> None:
        """Send adds for `Sender.send`. Raises ValueError if an entry does not fit into a frame."""
        due = self._due(self._add_timeout_s)
        if self._timer is None:
            self._arm()
        if sender.held or self._unanswered.group_must_wait(ADD, sender.ledger, entries):
            copied = bytes(memoryview(records)[int(offsets[0]) : int(offsets[-1])])
            sender.held.append((copied, offsets - offsets[0], entries.copy(), due))
        else:
            self._send(sender, records, offsets, entries, due)

    def _send(
        self, sender: Sender, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64], due: float
    ) -> None:
        frames, transaction = self.wire.sender_frames(sender, records, offsets, entries)
        if len(entries):
            self._adds.sent(sender.number, sender.ledger, entries, transaction, int(due * 1000))
            self._put(frames.data, len(frames))

    def leave(self, sender: Sender) -> None:
        """Forget a sender, for `Sender.close`."""
        if self._senders.pop(sender.number, None) is not None:
            self._adds.leave(sender.number)

    # --- out ----------------------------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether more output is queued for the socket than its limit."""
        return self._queued > QUEUED_BYTES_MAX

    def _put(self, data: Buffer, size: int) -> None:
        self._out.append(data)
        self._queued += size
        if self._flowing and not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write the queued output while the transport accepts it: small frames joined, large ones as they are."""
        self._flush_due = False
        out, self._out = self._out, []
        transport = self._transport
        if transport is None or self.broken is not None:
            return
        was_full = self.full
        at = 0
        while self._flowing and at < len(out):
            size, end = 0, at
            while end < len(out) and (end == at or size + len(out[end]) <= JOINED_BYTES_MAX):  # type: ignore[arg-type]
                size += len(out[end])  # type: ignore[arg-type]
                end += 1
            transport.write(out[at] if end == at + 1 else b"".join(out[at:end]))  # type: ignore[arg-type]
            self._queued -= size
            at = end
        self._out = out[at:] + self._out
        if was_full and not self.full:
            for sender in list(self._senders.values()):
                sender.room()

    # --- asyncio's side -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over the transport; `opened` follows when requests may be sent."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.broken is not None:
            transport.abort()

    def opened(self) -> None:
        """Start to send requests, now that the bookie accepts them."""
        self._flowing = True
        self._flush()

    def pause_writing(self) -> None:
        """Stop writing, since the transport's buffer is full."""
        self._flowing = False

    def resume_writing(self) -> None:
        """Continue writing."""
        self._flowing = True
        self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the size is ours to choose
        """Return the memory for the next bytes."""
        return self._buffer.space()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle `nbytes` bytes that were received."""
        self._silent_since = None
        self._buffer.received(nbytes)
        try:
            while self._complete():
                pass
        except ValueError as error:
            self.fail(BookieUnavailable(f"connection given up: {error}"))
        except ProtocolVersionMismatch as error:
            self.fail(error)

    def eof_received(self) -> None:
        """Let the transport close itself; `connection_lost` follows."""

    def connection_lost(self, error: Exception | None) -> None:
        """Fail everything outstanding."""
        if not self.gone.done():
            self.gone.set_result(None)
        reason = str(error) or type(error).__name__ if error else "the bookie closed it"
        self.fail(BookieUnavailable(f"connection lost ({reason}); try again, or use another bookie"), by_bookie=True)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _complete(self) -> int:
        count, received = self._buffer.cut()
        if not count:
            return self._skip_oversized() if self._buffer.oversized else 0
        rows = self._buffer.rows
        others = count
        if self._adds.count:
            others, senders, entries, codes = self._adds.take(rows, count)
            if len(senders):
                self._acknowledge(senders, entries, codes)
        if others and self._reads.count:
            others = self._reads.take(rows, others, received)
        if others:
            for row in rows[:others].tolist():
                refusal = self._unanswered.complete(row, received, self._buffer)
                if refusal is not None:
                    self._on_error(refusal.code, 1)
        if not self.wire.by_transaction:
            self._retry()
        return count

    def _acknowledge(self, senders: NDArray[np.int32], entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        for code in np.unique(codes[codes != 0]).tolist() if codes.any() else ():
            error = self.wire.error_for(code, WriteError)
            these = codes == code
            codes[these] = 0 if error is None else error.code
            if error is not None:
                self._on_error(error.code, int(these.sum()))
        if senders[0] == senders[-1] and (senders == senders[0]).all():
            self._tell(int(senders[0]), entries, codes)
            return
        order = np.argsort(senders, kind="stable")
        senders, entries, codes = senders[order], entries[order], codes[order]
        edges = [0, *(np.flatnonzero(np.diff(senders)) + 1).tolist(), len(senders)]
        for start, end in itertools.pairwise(edges):
            self._tell(int(senders[start]), entries[start:end], codes[start:end])

    def _tell(self, number: int, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        sender = self._senders.get(number)
        if sender is not None and sender.owner is not None:
            sender.owner.answered(entries, codes)

    def _skip_oversized(self) -> int:
        """BR13: fail the request whose response is larger than a frame, and skip the response.

        Returns 0 if too little of it has arrived. The head is the part that the cutter accepts as a whole response.
        Raises ValueError if it names no request of ours.
        """
        size, body = self._buffer.oversized, bytes(self._buffer.uncut[FRAME_PREFIX : FRAME_PREFIX + HEAD_BYTES])
        if len(body) < HEAD_BYTES:
            return 0
        table: Any = np.zeros(1, dtype=framing_v2.RESPONSE)
        for head in range(HEAD_BYTES):
            with contextlib.suppress(ValueError):
                if self.wire.cut(head.to_bytes(FRAME_PREFIX, "big") + body[:head], HEAD_BYTES * 2, table)[0]:
                    if not self._unanswered.too_long(table.tolist()[0], size) and not self._reads.too_long(table):
                        continue
                    self._buffer.skip()
                    return 1
        raise ValueError(f"a response of {size} bytes; the limit is {self.wire.frame_bytes_max}")

    def _retry(self) -> None:
        """Wake everything that waits for a key to become free."""
        waits, self._key_waits = self._key_waits, {}
        for wait in waits:
            if not wait.done():
                wait.set_result(None)
        for sender in [sender for sender in self._senders.values() if sender.held]:
            while sender.held and not self._unanswered.group_must_wait(ADD, sender.ledger, sender.held[0][2]):
                self._send(sender, *sender.held.popleft())

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        self._timer = self._loop.call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        """Time out what is due."""
        self._timer = None
        now = self._loop.time()
        timed_out = self._unanswered.late(now)
        for reply in timed_out:
            self._on_error(RequestTimeout.code, 1)
            reply.fail(reply.request.late(self.bookie))
        try:
            reads_timed_out = self._reads.overdue(int(now * 1000))
        except ProtocolVersionMismatch as error:
            self.fail(error)
            return
        late = set(self._adds.overdue(int(now * 1000)))
        late.update(sender.number for sender in self._senders.values() if sender.held and sender.held[0][3] <= now)
        for number in sorted(late):
            if sender := self._senders.get(number):
                self._on_error(RequestTimeout.code, 1)
                _end(
                    sender, RequestTimeout(f"{self.bookie}: {sender}: no answer in time, but they may have been stored")
                )
        if self._silent_since is None and (timed_out or reads_timed_out or late):
            self._silent_since = now
        if self._silent_for(now):
            self.fail(BookieUnavailable(f"nothing arrived for {self._silence_s:g} s (silentConnectionTimeoutSec)"))
        elif self.pending or any(sender.held for sender in self._senders.values()):
            self._arm()

    def _silent_for(self, now: float) -> bool:
        """Return whether a V2 connection with unanswered requests has been silent for too long."""
        if self.wire.by_transaction or not self._silence_s or self._silent_since is None or not self.pending:
            return False
        return now - self._silent_since >= self._silence_s

    def retire(self) -> None:
        """Close the connection while nothing is outstanding, which does not count as an error."""
        self._break(ClientClosed(f"{self.bookie}: this connection was closed; try again"))
        if self._transport is not None:
            self._transport.close()
        self._on_end(self)

    def fail(self, error: BookKeeperError, *, by_bookie: bool = False) -> None:
        """End the connection and fail everything outstanding. Only the first call has an effect, and its error is
        kept.
        """
        if self.broken is not None:
            return
        self._break(error)
        if self._transport is not None:
            self._transport.abort()
        lost = self._unanswered.lost()
        if by_bookie and not self.wire.by_transaction:
            self.closed_on_batch = any(reply.request.key[0] == self.wire.batch_op for reply in lost)
        self._on_end(self)
        self._on_error(error.code, max(len(lost), 1))
        for reply in lost:
            reply.fail(type(error)(f"{self.bookie}: {reply.request}: {error}"))
        self._reads.fail(error)
        for sender in list(self._senders.values()):
            _end(sender, type(error)(f"{self.bookie}: {sender}: {error}"))
        self._out.clear()
        self._queued = 0
        self._retry()

    def _break(self, error: BookKeeperError) -> None:
        """Send nothing from here on."""
        self.broken = error
        self._flowing = False
        if self._timer is not None:
            self._timer.cancel()


def _end(sender: Sender, error: BookKeeperError) -> None:
    """End a sender. An exception of its owner is logged, so that the other senders end, too."""
    try:
        sender.end(error)
    except Exception:
        log.exception("%s: the owner failed to handle the end of its sender: %s", sender, error)
