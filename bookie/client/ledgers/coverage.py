"""Ask all bookies of an ensemble at once, and decide when enough have answered. Event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from bookie.client.ledgers.race import MISSING
from bookie.errors import BookKeeperError

__all__ = ["ask_all", "Coverage"]

A = TypeVar("A")


class Coverage:
    """Tracks which bookies of an ensemble have answered.

    It `holds` when every write set has fewer bookies without an answer than an ack quorum, so that no acknowledged
    entry can be on these alone. "No such entry" and "no such ledger" are answers.
    """

    def __init__(self, ensemble_size: int, write_quorum: int, ack_quorum: int) -> None:
        self._unknown = [True] * ensemble_size
        self._write_quorum = write_quorum
        self._ack_quorum = ack_quorum

    def take(self, index: int, error: BookKeeperError | None = None) -> bool:
        """Note that the bookie at `index` answered or failed. Returns whether the coverage holds now."""
        if error is None or isinstance(error, MISSING):
            self._unknown[index] = False
        return self.holds

    @property
    def holds(self) -> bool:
        """Whether enough bookies have answered."""
        size = len(self._unknown)
        return all(
            sum(self._unknown[(start + k) % size] for k in range(self._write_quorum)) < self._ack_quorum
            for start in range(size)
        )


async def ask_all(
    bookies: Sequence[str],
    ask: Callable[[str], Awaitable[A]],
    take: Callable[[int, A | None, BookKeeperError | None], bool],
) -> bool:
    """Ask all bookies at once, until `take` returns True.

    `take` is called with the place, the answer and the error of each bookie, and returns whether that is enough. If
    it raises, so does this function. Answers that are outstanding then are discarded. Returns False if all bookies
    ended and `take` never returned True.
    """
    ended: asyncio.Queue[asyncio.Future[A]] = asyncio.Queue()
    places: dict[asyncio.Future[A], int] = {}
    for place, bookie in enumerate(bookies):
        answer: asyncio.Future[A] = asyncio.ensure_future(ask(bookie))
        places[answer] = place
        answer.add_done_callback(ended.put_nowait)
    try:
        for _ in bookies:
            answer = await ended.get()
            try:
                got = answer.result()
            except BookKeeperError as error:
                enough = take(places[answer], None, error)
            else:
                enough = take(places[answer], got, None)
            if enough:
                return True
        return False
    finally:
        for answer in places:
            answer.add_done_callback(_drop)
            answer.cancel()


def _drop(answer: asyncio.Future[A]) -> None:
    if not answer.cancelled():
        answer.exception()
