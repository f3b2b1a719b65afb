"""Bookies to draw from, each with its weight. Immutable; it belongs to one event loop, as does its randomness."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random

__all__ = ["Note", "Pool"]

# After this many refused draws, the bookies that would not be refused are searched for.
DRAWS_MAX = 16


Note = Callable[[str, float], None]
"""Called with each bookie that is drawn by weight, and its weight."""


class Pool:
    """A pool of bookies. A draw is a binary search among the sums of the weights; it ends even if nearly all are
    refused.
    """

    __slots__ = ("_last", "_note", "_random", "_sums", "bookies", "shares")

    def __init__(
        self, bookies: Sequence[str], shares: Sequence[float] | None, random: Random, note: Note | None = None
    ) -> None:
        """`shares` are the weights, above 0 and in any unit; None makes all equal. `draw` needs at least one bookie."""
        self.bookies = bookies
        self.shares = shares
        self._random = random.random
        self._note = note if shares is not None else None
        self._sums = list(accumulate(shares)) if shares is not None else None
        self._last = len(bookies) - 1

    def draw(self) -> str:
        """Draw a bookie, which the caller may refuse: it is not noted."""
        return self.bookies[self._place()]

    def _place(self) -> int:
        sums, last = self._sums, self._last
        if sums is None:
            return int(self._random() * (last + 1))
        # The product may be rounded up to the sum itself; `last` keeps the search inside the list.
        return bisect_right(sums, self._random() * sums[last], 0, last)

    def _chosen(self, place: int) -> str:
        bookie = self.bookies[place]
        if self._note is not None and self.shares is not None:
            self._note(bookie, self.shares[place])
        return bookie

    def choose(self, refused: Callable[[str], bool]) -> str | None:
        """Draw a bookie by weight among those that are not refused; None if all are."""
        if self._last >= DRAWS_MAX:
            for _ in range(DRAWS_MAX):
                place = self._place()
                if not refused(self.bookies[place]):
                    return self._chosen(place)
        bookies, shares = self.bookies, self.shares
        left = [place for place, bookie in enumerate(bookies) if not refused(bookie)]
        if not left:
            return None
        if shares is None:
            return bookies[left[int(self._random() * len(left))]]
        sums = list(accumulate(shares[place] for place in left))
        return self._chosen(left[bisect_right(sums, self._random() * sums[-1], 0, len(sums) - 1)])
