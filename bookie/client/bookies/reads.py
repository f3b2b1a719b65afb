"""Groups of single reads on one connection: one future for a group; responses are handled as tables.

It runs on the event loop. Reads that are sent one by one are `Request`s, each with a future and a key of its own.
"""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.read_run import ReadRun
from bookie._fast.client.reads_in_flight import ReadsInFlight
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.wire.request import Wire
from bookie.errors import BookKeeperError, NoSuchEntry, ProtocolVersionMismatch, ReadError, RequestTimeout

__all__ = ["Reads"]

NO_ENTRY, MALFORMED, TOO_LONG = -1, -2, -3
"""Codes of `ReadRun` that no bookie sends."""
NOTHING = bytes(1)


class Reads:
    """The groups of single reads of one connection.

    `on_error` is called with a code of `bookie.errors` and the number of reads that ended with it.
    """

    def __init__(self, bookie: str, wire: Wire, on_error: Callable[[int, int], None]) -> None:
        self._bookie = bookie
        self._wire = wire
        self._on_error = on_error
        self._names = ReadsInFlight(by_transaction=wire.by_transaction)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[ReadRun, asyncio.Future[ReadAnswers]]] = {}

    @property
    def count(self) -> int:
        """The number of reads that are not answered yet."""
        return self._names.count

    def knows(self, ledger: int, entries: NDArray[np.int64]) -> bool:
        """Return whether a response to one of these reads could be taken for that of another one."""
        return self._names.knows(ledger, entries)

    def sent(self, ledger: int, entries: NDArray[np.int64], transaction: int, due_ms: int) -> "asyncio.Future[Any]":
        """Register reads that were sent, none of which is known yet. Cancel the future to stop waiting for them."""
        number = next(self._numbers)
        run = ReadRun(ledger, entries)
        answers: asyncio.Future[ReadAnswers] = asyncio.get_running_loop().create_future()
        self._names.ask(number, run, transaction, due_ms)
        self._waiting[number] = run, answers
        answers.add_done_callback(lambda _: self._leave(number))
        return answers

    def take(self, rows: NDArray[Any], count: int, received: Buffer) -> int:
        """Take the responses to reads out of the first `count` rows, and return the number of rows left.

        Raises ProtocolVersionMismatch.
        """
        left, whole = self._names.pick(rows, count, received, self._wire.frame_bytes_max)
        self._finish(whole, None)
        return left

    def too_long(self, rows: NDArray[Any]) -> bool:
        """Return whether this row, the head of a response that is larger than a frame, answers one of our reads."""
        left, whole = self._names.pick(rows, 1, NOTHING, -1)
        self._finish(whole, None)
        return left == 0

    def overdue(self, now_ms: int) -> bool:
        """Time out the reads that are due, and return whether there were any.

        Raises ProtocolVersionMismatch if a response that had arrived demands it.
        """
        late = self._names.overdue(now_ms)
        if late:
            self._on_error(RequestTimeout.code, len(late))
            self._finish(late, RequestTimeout(f"{self._bookie}: no answer in time"))
        return bool(late)

    def fail(self, error: BookKeeperError) -> None:
        """Fail all groups, since the connection has ended."""
        self._end(list(self._waiting), error)

    def _finish(self, numbers: list[int], lost: BookKeeperError | None) -> None:
        """Complete these groups, then raise ProtocolVersionMismatch if a response had an unknown code."""
        mismatch = self._end(numbers, lost)
        if mismatch is not None:
            raise mismatch

    def _leave(self, number: int) -> None:
        if self._waiting.pop(number, None) is not None:
            self._names.leave(number)

    def _end(self, numbers: list[int], lost: BookKeeperError | None) -> ProtocolVersionMismatch | None:
        nonsense = None
        for number in numbers:
            run, answers = self._waiting.pop(number)
            if run.left:
                self._names.leave(number)
            if answers.done():
                continue
            what = f"{self._bookie}: reads of ledger {run.ledger}, entries {run.entries[0]} to {run.entries[-1]}"
            error = type(lost)(f"{what}: {lost}") if lost else None
            if error is not None and run.left == len(run.entries):
                answers.set_exception(error)
            else:
                try:
                    answers.set_result(ReadAnswers(run, self._errors(run), error))
                except ProtocolVersionMismatch as mismatch:
                    nonsense = mismatch
                    answers.set_exception(ProtocolVersionMismatch(f"{what}: {mismatch}"))
        return nonsense

    def _errors(self, run: ReadRun) -> dict[int, BookKeeperError]:
        found: dict[int, BookKeeperError] = {}
        for entry, code in run.failures():
            what = f"{self._bookie}: read of ledger {run.ledger}, entry {entry}"
            if code == NO_ENTRY:
                found[entry] = NoSuchEntry(f"{what}: the response lacks the entry; read another replica")
            elif code == MALFORMED:
                found[entry] = ReadError(f"{what}: malformed answer")
            elif code == TOO_LONG:
                limit = f"frame_bytes_max={self._wire.frame_bytes_max}"
                found[entry] = ReadError(f"{what}: the response has more bytes than {limit}; raise that limit")
            elif error := self._wire.error_for(code, ReadError):
                self._on_error(error.code, 1)
                found[entry] = error(f"{what}: answered with code {code}: {error.__doc__}")
        return found
