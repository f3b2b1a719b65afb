"""Single reads, which every bookie and every ledger supports. Event loop."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bookie._fast.client.read_run import ReadRange
from bookie.client.contracts import Bookies
from bookie.client.entries.digest import Digest
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.entries.verified import EntryBatch
from bookie.client.event_loop.together import together
from bookie.client.ledgers.replicas import Replicas
from bookie.client.ledgers.view import LedgerView
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.errors import BookKeeperError, NoSuchEntry

__all__ = ["SingleReads"]

PIECES_IN_FLIGHT = 4
"""The number of pieces that one call has in flight."""
PIECE_MIN, PIECE_MAX, PIECE_BYTES = 64, 1024, 1 << 20
"""The entries that are requested together: as many as have PIECE_BYTES, if their size is known."""
FIRST_GUESS = 16
"""The entries that a read with a limit in bytes requests while the size of entries is unknown."""
ANSWER_BYTES = 36
"""The bytes of the response to a batch read that precede its records."""


class SingleReads:
    """The single reads of one ledger."""

    def __init__(self, view: LedgerView, digest: Digest, bookies: Bookies, replicas: Replicas) -> None:
        self._view = view
        self._digest = digest
        self._bookies = bookies
        self._replicas = replicas
        self._record_bytes = 0
        """The average size of the ledger's records that were read last; 0 if none were."""

    async def stored(self, entry: int, *, heard: set[str] | None = None) -> bytes:
        """Read one entry as stored and verify its digest, whether it is above the LAC or not."""
        ledger = self._view.ledger

        def judge(bookie: str, answer: ReadAnswer) -> bytes:
            if answer.stored is None:
                raise NoSuchEntry(
                    f"ledger {ledger}, entry {entry}: the response of {bookie} lacks it; read another replica"
                )
            self._digest.open(answer.stored, ledger, entry)
            self._view.saw_lac(answer.lac)
            return answer.stored

        return await self._replicas.ask(
            entry, lambda bookie: self._bookies.read(bookie, ledger, entry), judge, heard=heard
        )

    async def range(self, first: int, last: int) -> EntryBatch:
        """Read all entries from `first` to `last`, or raise the error of the first that cannot be read."""
        batch, error = await self._range(first, last)
        if error is not None:
            raise error
        assert batch is not None
        return batch

    async def some(self, first: int, last: int, max_size: int) -> EntryBatch:
        """Read entries from `first` on, at most to `last`, one or more: as many as a batch read with this limit
        returns.
        """
        room = max_size - ANSWER_BYTES
        taken: list[EntryBatch] = []
        at = first
        while (room > 0 or not taken) and at <= last:
            # One entry more than is expected to fit, which shows that nothing else does.
            count = max(room, 0) // self._record_bytes + 1 if self._record_bytes else FIRST_GUESS
            batch, error = await self._range(at, min(at + count - 1, last))
            if batch is None:
                if error is not None and not taken:
                    raise error
                break
            fits = batch.fitting(room) if taken else max(batch.fitting(room), 1)
            if fits:
                taken.append(batch[:fits])
                room -= taken[-1].nbytes
                at += fits
            if error is not None or fits < len(batch):
                break
        return EntryBatch.joined(taken)

    # --- many at a time -----------------------------------------------------------------------------------------------

    async def _range(self, first: int, last: int) -> tuple[EntryBatch | None, BookKeeperError | None]:
        """Return the entries before the first error, and that error."""
        heard: set[str] = set()
        if first == last:
            try:
                stored = await self.stored(first, heard=heard)
            except BookKeeperError as error:
                return None, error
            return EntryBatch.of_entries(self._view.ledger, first, [stored], self._digest), None
        entries = ReadRange(self._view.ledger, first, last - first + 1)
        errors: dict[int, BookKeeperError] = {}
        pieces = self._pieces(first, last, errors)
        await together(self._worker(pieces, entries, errors, heard) for _ in range(PIECES_IN_FLIGHT))
        end = min(errors, default=last + 1)
        self._record_bytes = -(-entries.nbytes // entries.found) if entries.found else self._record_bytes
        batch = EntryBatch.of_range(entries, end - first, self._digest) if end > first else None
        return batch, errors.get(end)

    def _pieces(self, first: int, last: int, errors: Mapping[int, BookKeeperError]) -> Iterator[Sequence[int]]:
        """Yield entries to request together, each time from one segment and not too many bytes, until there is an
        error.
        """
        while first <= last and not errors:
            count = (
                min(max(PIECE_BYTES // self._record_bytes, PIECE_MIN), PIECE_MAX) if self._record_bytes else PIECE_MIN
            )
            segment_last = self._view.segment_at(first)[1]
            end = min(first + count, last + 1, last + 1 if segment_last is None else segment_last + 1)
            yield range(first, max(end, first + 1))
            first = max(end, first + 1)

    async def _worker(
        self, pieces: Iterator[Sequence[int]], entries: ReadRange, errors: dict[int, BookKeeperError], heard: set[str]
    ) -> None:
        for piece in pieces:
            stripes = self._replicas.stripes
            by_order: dict[tuple[str, ...], list[NDArray[np.int64]]] = {}
            for k, first in enumerate(piece[:stripes]):
                order = tuple(self._replicas.order(first))
                by_order.setdefault(order, []).append(piece[0] + np.arange(k, len(piece), stripes, dtype=np.int64))
            wanted = [
                stripe[0] if len(stripe) == 1 else np.sort(np.concatenate(stripe)) for stripe in by_order.values()
            ]
            if len(wanted) == 1:
                await self._read(wanted[0], entries, errors, heard)
            else:
                await together(self._read(some, entries, errors, heard) for some in wanted)
            if entries.found:
                self._record_bytes = -(-entries.nbytes // entries.found)

    async def _read(
        self, wanted: NDArray[np.int64], entries: ReadRange, errors: dict[int, BookKeeperError], heard: set[str]
    ) -> None:
        """Read entries that are on the same bookies from the best of them, and those that it lacks from the next."""
        ledger = self._view.ledger

        def ask(bookie: str) -> Awaitable[ReadAnswers]:
            return self._bookies.read_many(bookie, ledger, entries.missing(wanted))

        while len(wanted):
            lead = int(wanted[0])

            def judge(_: str, answers: ReadAnswers, lead: int = lead) -> None:
                entries.take(answers.run, self._digest.digester)
                if lead not in entries:
                    self._digest.open(answers.stored(lead), ledger, lead)
                self._view.saw_lac(answers.run.lac)

            try:
                await self._replicas.ask(lead, ask, judge, heard=heard, turns=len(wanted))
            except BookKeeperError as error:
                errors[lead] = error
                return
            wanted = entries.missing(wanted)
