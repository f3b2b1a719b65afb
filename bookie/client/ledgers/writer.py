"""The core of a write handle: adds go to an ensemble of bookies and are acknowledged in order. One event loop.

Only `append_at_once`, `append_all_from_thread`, `take_over`, `Add.wait` and `Add.done` may be called from other
threads, and what `adder` returns.

An add is sealed at once, with the LAC of that moment. The adds of one turn of the loop are sent together. Responses
arrive in batches. An entry is complete when an ack quorum of its write set holds it, and acknowledged when all
entries before it are and no bookie is being replaced. The LAC then rises to this entry; with deferred sync only
`force` raises it, and during recovery it stays.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bookie._fast.client.write_window import WriteWindow
from bookie.client.contracts import AddSender, SenderOwner
from bookie.client.entries.digest import Digest
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.direct_writes import DirectWrites
from bookie.client.ledgers.explicit_lac import ExplicitLac
from bookie.client.ledgers.line import Line
from bookie.client.ledgers.metadata_loop import Known, close_written
from bookie.client.ledgers.replacement import InMemory, InStore, Replacer, still_open
from bookie.client.ledgers.senders import EnsembleSender
from bookie.client.ledgers.throttle import Backpressure, RateLimit
from bookie.client.wire.flags import Flags
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import (
    AddQuorumTimeout,
    BookieReadOnly,
    BookKeeperError,
    ClientClosed,
    IllegalOperation,
    LedgerClosed,
    LedgerFenced,
    MetadataStoreError,
    UnauthorizedAccess,
    WriteError,
    error_from_client_code,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["LedgerWriter", "Recovered"]

log = logging.getLogger(__name__)

FRAME_OVERHEAD = 128
"""The most bytes that a frame needs besides its entry, so that any client can write, read and copy what is added."""
ENDS_THE_LEDGER = frozenset({IllegalOperation.code, LedgerFenced.code, UnauthorizedAccess.code})
RESEND_BYTES = 1 << 20
"""The approximate size of the pieces in which pending entries are sent to a new bookie."""
ROOM_SHARE = 4
"""Waiting writers continue when a quarter of the room is free; waking them for each place would send entries one by
one.
"""


@dataclass(frozen=True, slots=True)
class Recovered:
    """Where the rewriting of a ledger's end starts: after entry `lac`; `length` is the payload bytes up to it."""

    lac: int
    length: int


class LedgerWriter(DirectWrites):
    """Writes the ledger of `known`, which was just created or, with `recovered`, is IN_RECOVERY.

    A recovering writer writes entries again. Fences let its adds through, its ensemble changes stay in memory (in
    `known`, whose version stays, and in `changed_segments`), and it never closes the ledger: call `stop`, not
    `close`. Its LAC stays where the recovery began, and so does the LAC in its entries: they are confirmed only when
    the ledger is closed, because nobody else knows their ensembles before, and the recovery may die.
    Before each `append`, `expect_length` sets the payload bytes that precede the entry.
    """

    def __init__(
        self,
        known: Known,
        digest: Digest,
        context: ClientContext,
        *,
        advanced: bool = False,
        deferred_sync: bool = False,
        recovered: Recovered | None = None,
    ) -> None:
        self.ledger = known.ledger
        self.known = known
        self.digest = digest
        self._bookies = context.bookies
        self._store = context.metadata
        self._placement = context.placement
        self._config = config = context.config
        self._deferred_sync = deferred_sync
        self._recovers = recovered is not None
        start = recovered or Recovered(-1, 0)
        self._window = WriteWindow(
            digest.digester,
            known.ledger,
            (known.metadata.ensemble_size, known.metadata.write_quorum, known.metadata.ack_quorum),
            self._explain,
            first=start.lac + 1,
            length=start.length,
            count_max=config.outstanding_max,
            bytes_max=config.outstanding_bytes_max,
            record_bytes_max=config.frame_bytes_max - self._overhead(),
            advanced=advanced,
            deferred=deferred_sync or self._recovers,
            judged=config.fault_domains_enforced,
        )
        self._lac_length = start.length
        self._in_memory = InMemory(context.placement)
        changes = self._in_memory if self._recovers else InStore(context.metadata, context.placement)
        self._replacer = Replacer(
            changes, context.placement, self._window, config, context.features, movable=not deferred_sync
        )
        self._explicit_lac = ExplicitLac(context.bookies, self._window, digest)
        self._rate = RateLimit(config.throttle_per_s, burst=config.throttle_per_s)
        self._backpressure = Backpressure(config.backpressure_wait_s, in_order=not advanced)
        self._line = Line(self._backpressure, config.waiting_bytes_max)
        self._flags = Flags.RECOVERY_ADD | Flags.HIGH_PRIORITY if self._recovers else Flags.NONE
        self._senders = [self._sender(k, bookie) for k, bookie in enumerate(known.metadata.segments[-1].bookies)]
        self._scheduled = False
        self._doubts = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timers: list[asyncio.Task[Any]] = []
        self._closing: asyncio.Task[LedgerMetadata] | None = None
        self._force_error: BookKeeperError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Take the running loop, and start periodic work."""
        self._loop = asyncio.get_running_loop()
        if self._config.explicit_lac_interval_s > 0 and not self._recovers:
            every = self._explicit_lac.tell_every(self._config.explicit_lac_interval_s, self.known)
            self._timers.append(self._loop.create_task(every))
        if self._config.add_quorum_timeout_s > 0:
            self._timers.append(self._loop.create_task(self._watch_quorums()))

    # What is known.

    @property
    def last_add_confirmed(self) -> int:
        """The entry up to which all are on an ack quorum, and synced; -1 for none. During recovery it stays."""
        return self._window.lac

    @property
    def last_complete(self) -> int:
        """The entry up to which all are on an ack quorum, perhaps not synced; -1 for none."""
        return self._window.head - 1

    @property
    def last_add_pushed(self) -> int:
        """The highest entry id that was added; -1 for none."""
        return self._window.next - 1

    @property
    def length(self) -> int:
        """Payload bytes of all entries that were added."""
        return self._window.length

    @property
    def confirmed_length(self) -> int:
        """Payload bytes up to `last_add_confirmed`."""
        return self._lac_length if self._deferred_sync else self._window.head_length

    @property
    def pending(self) -> int:
        """The number of adds that are neither acknowledged nor failed."""
        return self._window.count

    @property
    def unforced(self) -> bool:
        """Whether bookies may hold entries that they have not synced."""
        return self._deferred_sync and self._window.next - 1 > self._window.lac

    @property
    def failure(self) -> Exception | None:
        """Why no more entries can be added, or None while they can."""
        return self._window.error

    @property
    def changed_segments(self) -> dict[int, tuple[str, ...]]:
        """Of a recovering writer: the ensembles that it used instead, by their first entry."""
        return self._in_memory.segments

    def expect_length(self, length: int) -> None:
        """Set the payload bytes of the ledger that precede the next entry."""
        self._window.length = length

    def _overhead(self) -> int:
        """Return what an add needs besides its entry. A recovery also copies larger entries than our own, which a
        client stored that needs less.
        """
        if not self._recovers:
            return FRAME_OVERHEAD
        return (WireV2 if self._config.use_v2_wire_protocol else WireV3).add_overhead_max

    def _explain(self, entry: int, error: Exception) -> Exception:
        return type(error)(f"ledger {self.ledger}, entry {entry}: {error}")

    # Sending.

    def _sender(self, index: int, bookie: str) -> EnsembleSender:
        return EnsembleSender(self, index, bookie, self._open, self._config.outstanding_bytes_max)

    def _open(self, bookie: str, owner: SenderOwner) -> AddSender:
        return self._bookies.adds(
            bookie,
            self.ledger,
            self.digest.master_key,
            owner,
            flags=self._flags,
            deferred_sync=self._deferred_sync,
        )

    def _send(self) -> None:
        self._scheduled = False
        window, senders = self._window, self._senders
        if window.error is not None or self._loop is None:
            return
        now = self._loop.time()
        with self._or_give_up():
            if window.unsent:  # without adds no bookie needs to be replaced
                self._replace()
            while not any(sender.full for sender in senders) and window.take(now):
                for sender in senders:
                    if (records := window.batch(sender.index)) is not None:
                        sender.send(records)

    def _resend(self, sender: EnsembleSender, entries: NDArray[np.int64]) -> None:
        step = max(1, RESEND_BYTES * self._window.count // max(1, self._window.bytes))
        for at in range(0, len(entries), step):
            sender.send(self._window.records(entries[at : at + step]))

    # Answers.

    def sender_has_room(self) -> None:
        """Send what is queued, since a sender accepts more."""
        if not self._scheduled and self._loop is not None:
            self._scheduled = True
            self._loop.call_soon(self._send)

    def sender_answered(self, sender: EnsembleSender, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Handle responses: some adds were stored by a bookie, or refused."""
        failures = self._window.answered(sender.index, entries, codes)
        if failures:
            self._refused(sender, failures)
        self._release()
        if self._window.unsent:
            self.sender_has_room()

    def sender_lost(self, sender: EnsembleSender, error: BookKeeperError) -> None:
        """Handle the loss of a connection: its unanswered adds failed, and the bookie may have lost what it did not
        sync.
        """
        if self._window.error is not None:
            return
        self.sender_has_room()  # the sender may have been full
        entries = self._window.unacked(sender.index)
        self._refused(sender, [(int(entry), error.code, True) for entry in entries] or [(-1, error.code, False)], error)
        if self.unforced:
            self._give_up(WriteError(f"{error}; entries that it has not synced cannot be moved to another bookie"))

    def _refused(
        self, sender: EnsembleSender, failures: list[tuple[int, int, bool]], cause: BookKeeperError | None = None
    ) -> None:
        delays = self._config.delay_ensemble_change
        spare = self.known.metadata.write_quorum - self.known.metadata.ack_quorum
        failed: dict[int, str] = {}
        for entry, code, incomplete in failures:
            if code == ClientClosed.code:
                self._fail(ClientClosed("the client was closed"))
                return
            if code in ENDS_THE_LEDGER:
                kind = error_from_client_code(code)
                self._give_up(kind(f"bookie {sender.bookie}: {cause or kind.__doc__}"))
                return
            if not incomplete:
                if not delays and not sender.failed:
                    self._replacer.waiting[sender.index] = sender.bookie
                    self._window.changes += 1
                continue
            if not delays:
                failed[sender.index] = sender.bookie
                continue
            indices = self._window.fail_index(entry, sender.index)
            if len(indices) > spare or code == BookieReadOnly.code:
                failed.update({index: self._senders[index].bookie for index in indices})
        if failed:
            log.info("ledger %d: bookie %s failed: %s", self.ledger, sender.bookie, cause or failures[0][1])
            self._replacer.waiting.update({k: one for k, one in failed.items() if not self._senders[k].failed})
            self._replace()

    def _release(self) -> None:
        window = self._window
        if window.judged and window.error is None:
            quorums = self.known.metadata.write_quorum, self.known.metadata.ack_quorum
            for entry, indices in window.quorate():
                if self._placement.spans_fault_domains({self._senders[k].bookie for k in indices}, *quorums):
                    window.complete(entry)
        released = window.release()
        if released and (
            window.count * ROOM_SHARE <= window.count_max * (ROOM_SHARE - 1)
            and window.bytes * ROOM_SHARE <= window.bytes_max * (ROOM_SHARE - 1)
        ):
            self._backpressure.made(window.count_max - window.count)
        elif released and window.stuck:  # the caller with the missing id may be among those that wait
            self._backpressure.made()

    # Bookies that fail.

    def _replace(self) -> None:
        """Start to replace the bookies that wait for it, unless a change is running, which then includes them."""
        if not self._replacer.waiting:
            return
        for index in self._replacer.waiting:
            self._senders[index].failed = True
        if not self._replacer.running:
            self._window.holding = self._replacer.running = True
            self._spawn(self._change_ensemble())

    async def _change_ensemble(self) -> None:
        with self._or_give_up():
            await self._replacer.run(self.known)
            if self._window.error is None:
                self._adopt()

    def _adopt(self) -> None:
        """Use the ledger's new ensemble: send the pending adds to new bookies, then acknowledge again."""
        senders = tuple(self._senders)
        for sender, bookie in zip(senders, self.known.metadata.segments[-1].bookies, strict=True):
            if sender.bookie != bookie:
                log.info("ledger %d: bookie %s replaces %s", self.ledger, bookie, sender.bookie)
                sender.retire()
                self._senders[sender.index] = self._sender(sender.index, bookie)
                self._window.unack(sender.index)
        for sender in senders:
            now = self._senders[sender.index]
            if now is not sender:
                self._resend(now, self._window.unacked(sender.index))
            elif sender.failed:  # no other bookie could replace it
                sender.failed = False
                self._resend(sender, self._window.unacked(sender.index))
        self._go_on()

    def _go_on(self) -> None:
        self._window.holding = self._replacer.running or self._doubts > 0
        self._release()
        self.sender_has_room()

    def sender_reopened(self) -> None:
        """Hold acknowledgements back until it is certain that no client has recovered the ledger.

        The bookie at this address may be another one than before; see `still_open`.
        """
        if not self._recovers:
            self._doubts += 1
            self._window.holding = True
            self._spawn(self._make_sure())

    async def _make_sure(self) -> None:
        with self._or_give_up():
            await still_open(self._store, self.known, lambda: self._window.error is not None)
        self._doubts -= 1
        self._go_on()

    # The end.

    def _fail(self, error: BookKeeperError) -> None:
        """Fail all pending adds; from here on nothing is added or sent, and responses are ignored."""
        first = self._window.error is None
        self._window.fail(error)
        if first:
            self._line.fail(self._closed_error)
            self._backpressure.made()
            for timer in self._timers:
                timer.cancel()
            for sender in self._senders:
                sender.retire()

    @contextmanager
    def _or_give_up(self) -> Iterator[None]:
        """End the ledger on any exception in the block, since adds wait for the work in it."""
        try:
            yield
        except ClientClosed as error:
            self._fail(error)
        except BookKeeperError as error:
            self._give_up(error)
        except Exception as error:
            log.exception("ledger %d: unexpected error", self.ledger)
            self._give_up(WriteError(f"unexpected error, please report it: {error!r}"))

    def _give_up(self, error: BookKeeperError) -> None:
        """End a ledger that cannot be written any more: fail the pending adds with `error`, and close it at the LAC."""
        if self._window.error is not None:
            return
        log.warning("ledger %d cannot be written any more: %s", self.ledger, error)
        self._fail(error)
        if self._closing is None and not self._recovers and self.known.metadata.state is LedgerState.OPEN:
            self._closing = self._spawn(self._close())

    async def close(self) -> LedgerMetadata:
        """Close the ledger at the LAC. Pending adds fail with LedgerClosed; call `flush` before to wait for them.

        With deferred sync, it first forces what is acknowledged; if that fails, or a bookie was lost before, the
        ledger is closed all the same, and the error says which entries are not in it. Raises MetadataVersionConflict
        if another client closed it with a different end, LedgerFenced if another client is recovering it,
        MetadataStoreError or ClientClosed. After MetadataStoreError a further call tries again; otherwise further calls
        return the same result.
        """
        if self._closing is None and self._window.error is None and self._window.head - 1 > self._window.lac:
            self._closing = self._spawn(self._force_and_close())
        if self._closing is None:
            self._refuse_more()
            self._closing = self._spawn(self._close())
        ended = self._closing.done() and not self._closing.cancelled()
        if ended and isinstance(self._closing.exception(), MetadataStoreError):
            self._closing = self._spawn(self._close())
        metadata = await asyncio.shield(self._closing)
        first, last = self._window.lac + 1, self._window.head - 1
        if first <= last:
            cause = self._force_error or self._window.error
            raise (type(cause) if isinstance(cause, BookKeeperError) else WriteError)(
                f"ledger {self.ledger}: entries {first} to {last} were acknowledged, but could not be synced, and the"
                f" ledger was closed after entry {self._window.lac}: {cause}"
            ) from cause
        return metadata

    def _refuse_more(self) -> None:
        self._fail(LedgerClosed("the handle was closed"))
        if isinstance(self._window.error, ClientClosed):
            raise self._closed_error()

    async def _force_and_close(self) -> LedgerMetadata:
        """Close the ledger after a last force, during which connections still tell whether a bookie was away."""
        try:
            await self.force()
        except BookKeeperError as error:
            self._force_error = error
        self._refuse_more()
        return await self._close()

    def stop(self, error: BookKeeperError | None = None) -> None:
        """End without closing the ledger. Pending adds fail with `error`, or LedgerClosed. Further calls do nothing."""
        self._fail(error or LedgerClosed("the handle was closed"))

    async def _close(self) -> LedgerMetadata:
        metadata = await close_written(self._store, self.known, self._window.lac, self.confirmed_length)
        self._bookies.announce_end(self.ledger, self.digest.master_key, metadata.segments[-1].bookies)
        return metadata

    # Deferred syncs, and what runs by the clock.

    async def force(self) -> None:
        """Have all bookies of the ensemble sync what is acknowledged so far, then raise the LAC to it."""
        if self._window.error is not None:
            raise self._closed_error()
        head, length = self._window.head - 1, self._window.head_length
        if head < 0:
            return
        ensemble = self.known.metadata.segments[-1].bookies
        await asyncio.gather(*(self._bookies.force(bookie, self.ledger) for bookie in ensemble))
        if self._window.error is not None:  # a bookie was lost and answered after it came back, without the entries
            raise self._closed_error()
        if head > self._window.lac:
            self._window.raise_lac(head)
            self._lac_length = length

    async def _watch_quorums(self) -> None:
        limit = self._config.add_quorum_timeout_s
        while self._window.error is None:
            await asyncio.sleep(limit / 4)
            entry = self._window.overdue(asyncio.get_running_loop().time() - limit)
            if entry >= 0:
                quorum = self.known.metadata.ack_quorum
                self._give_up(AddQuorumTimeout(f"entry {entry} is not on {quorum} bookies after {limit:g} s"))

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            level = logging.WARNING if isinstance(error, BookKeeperError) else logging.ERROR
            log.log(level, "ledger %d: %s", self.ledger, error, exc_info=None if level < logging.ERROR else error)
