"""Read the LAC of a ledger from its bookies, at once or by long polls. Event loop.

With V2 a bookie returns only its last entry, which contains the LAC of the time when that entry was written.
"""

from collections.abc import Callable
from typing import NamedTuple

from bookie.client.entries.digest import Digest
from bookie.client.entries.verified import EntryBatch
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.coverage import Coverage, ask_all
from bookie.client.ledgers.race import MISSING, Patience, Race, weightier
from bookie.client.ledgers.replicas import Replicas
from bookie.client.ledgers.view import LedgerView
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.flags import LAST_ENTRY
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    LedgerRecoveryError,
    NoSuchEntry,
    ReadError,
    UnauthorizedAccess,
)

__all__ = ["LacReads", "LastConfirmed"]

FATAL = (UnauthorizedAccess, ClientClosed)


class LastConfirmed(NamedTuple):
    """The result of a long poll.

    Attributes:
        lac: The highest LAC that the handle knows now.
        entry: A batch with the entry that was waited for, or None if it did not come.
    """

    lac: int
    entry: EntryBatch | None


class LacReads:
    """The LAC reads of one ledger. Each answer raises the LAC of the view."""

    def __init__(self, view: LedgerView, digest: Digest, replicas: Replicas, context: ClientContext) -> None:
        self._view = view
        self._digest = digest
        self._bookies = context.bookies
        self._replicas = replicas
        self._placement = context.placement
        config = context.config
        self._v2 = config.use_v2_wire_protocol
        self._patience = Patience(
            config.speculative_lac_first_s, config.speculative_lac_max_s, config.speculative_lac_backoff
        )

    async def read(self) -> int:
        """Ask the last ensemble until no bookie without an answer can hide a higher LAC, and return the LAC.

        Raises ReadError, or an error of a bookie, if too few bookies answered.
        """
        view, metadata = self._view, self._view.metadata
        if view.closed:
            return view.lac
        coverage = Coverage(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        bookies = metadata.segments[-1].bookies
        last_error: BookKeeperError = ReadError("no bookie answered")

        def take(place: int, answer: ReadAnswer | LacAnswer | None, error: BookKeeperError | None) -> bool:
            nonlocal last_error
            error = self._wrong(answer, error)
            if error is not None and not isinstance(error, MISSING):
                last_error = error
            return coverage.take(place, error)

        if not await ask_all(bookies, self._ask_lac, take):
            raise type(last_error)(
                f"ledger {view.ledger}: its LAC is unknown: too few of {', '.join(bookies)} answered: {last_error}"
            ) from last_error
        return view.lac

    async def try_read(self) -> int:
        """Return the first LAC above the known one that a bookie of the last ensemble has, or the known one if there
        is none.

        Raises LedgerRecoveryError if no bookie gave a valid answer.
        """
        view = self._view
        if view.closed:
            return view.lac
        known, valid = view.lac, 0
        bookies = view.metadata.segments[-1].bookies

        def take(_: int, answer: ReadAnswer | None, error: BookKeeperError | None) -> bool:
            nonlocal valid
            error = self._wrong(answer, error)
            valid += error is None or isinstance(error, MISSING)
            return view.lac > known

        await ask_all(bookies, lambda bookie: self._bookies.read(bookie, view.ledger, LAST_ENTRY), take)
        if not valid:
            raise LedgerRecoveryError(
                f"ledger {view.ledger}: none of {', '.join(bookies)} gave a valid answer to a read of its last entry"
            )
        return view.lac

    async def wait(self, entry: int, timeout_ms: int, *, parallel: bool = False) -> LastConfirmed:
        """Wait until `entry` is acknowledged, for up to `timeout_ms` at each bookie. The LAC may not have risen."""
        wait = _Wait(self, entry, self._view)
        order = self._replicas.order(entry, whole_ensemble=True)
        holders = self._view.metadata.write_set(entry)

        async def ask(bookie: str) -> ReadAnswer:
            try:
                return await self._bookies.wait_for_lac(bookie, self._view.ledger, entry - 1, timeout_ms)
            except MISSING:
                if bookie in holders:
                    self._placement.failed(bookie, entry)
                raise

        if parallel:
            return await wait.at_all(order, ask)
        try:
            return await Race(order, ask, wait.judge, self._patience).run()
        except BookKeeperError as error:
            return wait.failed(order, error)

    # --- answers ------------------------------------------------------------------------------------------------------

    async def _ask_lac(self, bookie: str) -> ReadAnswer | LacAnswer:
        if self._v2:
            return await self._bookies.read(bookie, self._view.ledger, LAST_ENTRY)
        return await self._bookies.read_lac(bookie, self._view.ledger)

    def _wrong(self, answer: ReadAnswer | LacAnswer | None, error: BookKeeperError | None) -> BookKeeperError | None:
        """Handle an answer, and return its error, or the error of handling it. Raises errors that end the whole
        operation.
        """
        if isinstance(error, FATAL):
            raise error
        try:
            if answer is not None:
                self._saw(answer)
        except BookKeeperError as wrong:
            return wrong
        return error

    def _saw(self, answer: ReadAnswer | LacAnswer) -> None:
        """Take over the LAC in an answer whose digests are right. Raises DigestMismatch."""
        last = answer.last if isinstance(answer, LacAnswer) else answer.stored
        if isinstance(answer, LacAnswer) and answer.packet is not None:
            self._view.saw_lac(self._digest.open_lac(answer.packet, self._view.ledger))
        if last is not None:
            opened = self._digest.open(last, self._view.ledger)
            self._view.saw_lac(opened.lac, opened.length if self._v2 else 0)
            if isinstance(answer, ReadAnswer):
                self._view.saw_lac(answer.lac)

    def opened(self, answer: ReadAnswer, entry: int) -> LastConfirmed:
        """Return the LAC in the response to a long poll, and `entry` if it came and is acknowledged. Raises
        DigestMismatch.
        """
        view = self._view
        if answer.stored is None:
            view.saw_lac(answer.lac)
            return LastConfirmed(view.lac, None)
        found = self._digest.open(answer.stored, view.ledger)
        view.saw_lac(found.lac if answer.lac is None else answer.lac)
        if found.entry != entry or entry > view.lac:
            return LastConfirmed(view.lac, None)
        return LastConfirmed(view.lac, EntryBatch.of_entries(view.ledger, entry, [answer.stored], self._digest))


class _Wait:
    """One wait for an entry. It counts the bookies that answered without having it."""

    def __init__(self, reads: LacReads, entry: int, view: LedgerView) -> None:
        self._reads = reads
        self._entry = entry
        self._view = view
        self._enough = view.metadata.ensemble_size - view.metadata.ack_quorum + 1
        self._empty = 0
        self._error: BookKeeperError | None = None

    def judge(self, _: str, answer: ReadAnswer) -> LastConfirmed:
        """Return the result, or raise NoSuchEntry if the entry did not come and too few bookies have said so."""
        got = self._reads.opened(answer, self._entry)
        if got.entry is None and got.lac < self._entry:
            self._empty += 1
            if self._empty < self._enough:
                raise NoSuchEntry(f"ledger {self._view.ledger}, entry {self._entry}: not acknowledged yet; try again")
        return got

    def failed(self, order: list[str], error: BookKeeperError) -> LastConfirmed:
        """Return that the entry did not come, if any bookie said so, or raise the error of the bookies."""
        if self._empty and not isinstance(error, FATAL):
            return LastConfirmed(self._view.lac, None)
        raise type(error)(
            f"ledger {self._view.ledger}, entry {self._entry}: no good answer from {', '.join(order)}: {error}"
        ) from error

    async def at_all(self, order: list[str], ask: "Callable[[str], object]") -> LastConfirmed:
        """Ask all bookies at once."""
        result: LastConfirmed | None = None

        def take(place: int, answer: ReadAnswer | None, error: BookKeeperError | None) -> bool:
            nonlocal result
            try:
                if error is not None:
                    raise error
                assert answer is not None
                result = self.judge(order[place], answer)
            except FATAL:
                raise
            except BookKeeperError as wrong:
                self._error = weightier(self._error, wrong)
                return False
            return True

        if not await ask_all(order, ask, take):  # type: ignore[arg-type]
            error = self._error or NoSuchEntry("no bookie answered")
            if isinstance(error, BookieUnavailable):
                error = NoSuchEntry(str(error))
            return self.failed(order, error)
        assert result is not None
        return result
