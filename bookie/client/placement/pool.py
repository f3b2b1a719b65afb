"""Bookies to draw from, each with its share. Immutable; belongs to one event loop, as does its randomness."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random

__all__ = ["Pool"]

# After so many draws that were refused, those that would not be are looked for.
DRAWS_MAX = 16


class Pool:
    """A draw costs a search among the sums of the shares, also where nearly everything is refused it ends."""

    __slots__ = ("_last", "_random", "_sums", "bookies", "shares")

    def __init__(self, bookies: Sequence[str], shares: Sequence[float] | None, random: Random) -> None:
        """One bookie at least for `draw`. `shares`: above 0, in any unit; None: all equal."""
        self.bookies = bookies
        self.shares = shares
        self._random = random.random
        self._sums = list(accumulate(shares)) if shares is not None else None
        self._last = len(bookies) - 1

    def draw(self) -> str:
        """One of them."""
        sums, last = self._sums, self._last
        if sums is None:
            return self.bookies[int(self._random() * (last + 1))]
        # The product may be rounded up to the sum itself: `last` keeps the search inside.
        return self.bookies[bisect_right(sums, self._random() * sums[last], 0, last)]

    def choose(self, refused: Callable[[str], bool]) -> str | None:
        """One that is not refused, by share among those that are not; None: all are."""
        if self._last >= DRAWS_MAX:
            for _ in range(DRAWS_MAX):
                drawn = self.draw()
                if not refused(drawn):
                    return drawn
        bookies, shares = self.bookies, self.shares
        left = [place for place, bookie in enumerate(bookies) if not refused(bookie)]
        if not left:
            return None
        if shares is None:
            return bookies[left[int(self._random() * len(left))]]
        sums = list(accumulate(shares[place] for place in left))
        return bookies[left[bisect_right(sums, self._random() * sums[-1], 0, len(sums) - 1)]]
