"""Listings of keys that contain a number each, in a time that grows with the number of keys. Any thread.

etcd counts all keys of a requested range, however few of them it returns. A page is therefore requested up to a number
that is near, or the time of a listing would grow with the square of the number of keys. How near follows from how many
keys the pages before had. Only the first page of a first listing is requested without such an end, so that a listing of
few keys takes one request.

From the second page on, the next ones are requested while the caller still uses the one before, so that etcd and the
caller work at the same time.
"""

import re
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from bookie.metadata.records.ledger_metadata import LEDGER_IDS_END

LISTED = 1000
"""How many keys one request lists. Their messages and texts take about half a megabyte."""
AHEAD = 4
"""How many pages are requested before the caller asks for them."""
GROWTH = 8
"""How many times as many numbers as the page before a page spans at most."""


class Asked(Protocol):
    """A request for keys that was, or will be, sent."""

    def keys(self) -> tuple[list[bytes], int]:
        """Return the keys, ascending, and how many are in the range. Waits, and raises what a call raises."""
        ...

    def cancel(self) -> None:
        """Do without the answer."""
        ...


class Asks(Protocol):
    """A store that can be asked for keys."""

    def ask(self, start: bytes, end: bytes, limit: int, *, ahead: bool) -> Asked:
        """Ask for at most `limit` keys from `start` to before `end`: with `ahead` at once, else when they are used."""
        ...


class NumberedKeys:
    """Keys of one length with a number each, which are ordered as their numbers are.

    `near` is where the first page of the last listing ended, if more pages followed.
    """

    def __init__(
        self, prefix: bytes, form: bytes, key: Callable[[int], bytes], parse: Callable[[Sequence[bytes]], Sequence[int]]
    ) -> None:
        """Describe keys.

        Args:
            prefix: What all of them begin with.
            form: A regular expression of what follows.
            key: Returns the key of a number.
            parse: Returns the numbers of keys.
        """
        one = re.escape(prefix) + form
        self._one, self._run = re.compile(one), re.compile(b"(?:%b)*" % one)
        self._length = len(key(0))
        self._parse = parse
        self.key = key
        self.near = LEDGER_IDS_END

    def numbers(self, keys: Sequence[bytes]) -> list[int]:
        """Return the numbers of all keys that have one."""
        if set(map(len, keys)) != {self._length} or not self._run.fullmatch(b"".join(keys)):
            keys = [key for key in keys if len(key) == self._length and self._one.fullmatch(key)]
        return list(self._parse(keys))


def pages(store: Asks, keys: NumberedKeys) -> Generator[list[int], None, None]:
    """Yield the numbers below `LEDGER_IDS_END` in ascending order, in pages of at most `LISTED`."""
    asked: deque[tuple[int, int, Asked]] = deque()
    start, reach, width = keys.key(0), 0, keys.near
    listed, ahead = 0, 0

    def ask(*, ahead: bool) -> None:
        nonlocal start, reach
        first, reach = reach, min(reach + width, LEDGER_IDS_END)
        end = keys.key(reach)
        asked.append((first, reach, store.ask(start, end, LISTED, ahead=ahead)))
        start = end

    try:
        while asked or reach < LEDGER_IDS_END:
            if not asked:
                ask(ahead=False)
            first, end, answer = asked.popleft()
            found, count = answer.keys()
            numbers = keys.numbers(found)
            if count > len(found):  # the pages after this one were requested from too far on
                _cancel(asked)
                start, reach = found[-1] + b"\0", numbers[-1] + 1 if numbers else first
                width = _width(numbers[-1] - numbers[0] + 1, len(numbers)) if numbers else LISTED
            else:
                begun = first or (numbers[0] if numbers else end)  # what is before the first number says nothing
                width = _width(end - begun, len(found))
            if numbers:
                if not listed and reach < LEDGER_IDS_END:
                    keys.near = numbers[-1] + 1
                listed += len(numbers)
                while len(asked) < ahead and reach < LEDGER_IDS_END:
                    ask(ahead=True)
                yield numbers
                ahead = AHEAD
        if listed <= LISTED:
            keys.near = LEDGER_IDS_END
    finally:
        _cancel(asked)


def _width(span: int, found: int) -> int:
    """Return how many numbers to request next where `span` numbers had `found` keys: for a little less than a page."""
    return max(LISTED, min(span * GROWTH, span * LISTED * 9 // (10 * found) if found else span * GROWTH))


def _cancel(asked: deque[tuple[int, int, Asked]]) -> None:
    while asked:
        asked.pop()[2].cancel()
