"""The planning of listings in etcd, on a store in memory: any numbers, and other keys between them."""

import uuid
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.metadata.etcd import numbered
from bookie.metadata.etcd.driver import uuids
from bookie.metadata.etcd.numbered import AHEAD, NumberedKeys, pages

PAGE = 20
PREFIX = b"/scope/ledgers/"
LAST = (1 << 63) - 1


class Answer:
    """Keys that a store in memory was asked for."""

    def __init__(self, store: "MemoryStore", start: bytes, end: bytes, limit: int, *, ahead: bool) -> None:
        self._store, self._range, self._limit = store, (start, end), limit
        self.ahead, self.ended = ahead, False

    def keys(self) -> tuple[list[bytes], int]:
        """Return the keys, and how many are in the range."""
        start, end = (bisect_left(self._store.keys, key) for key in self._range)
        found = self._store.keys[start : max(start, end)]
        self._store.returned += min(len(found), self._limit)
        self._store.counted += len(found)
        self.ended = True
        return found[: self._limit], len(found)

    def cancel(self) -> None:
        """Note it."""
        self.ended = True


class MemoryStore:
    """Sorted keys that are counted as etcd counts them."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self.keys = sorted(keys)
        self.returned = self.counted = 0
        self.asked: list[Answer] = []

    def ask(self, start: bytes, end: bytes, limit: int, *, ahead: bool) -> Answer:
        """Take a request."""
        self.asked.append(Answer(self, start, end, limit, ahead=ahead))
        return self.asked[-1]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests need few keys."""
    monkeypatch.setattr(numbered, "LISTED", PAGE)


def uuid_key(number: int) -> bytes:
    """Return the key of a ledger, as Apache BookKeeper's driver writes it."""
    return PREFIX + str(uuid.UUID(int=number)).encode()


def ledger_keys() -> NumberedKeys:
    """Return a new description of the keys of ledgers."""
    return NumberedKeys(PREFIX + b"00000000-0000-0000-", b"[0-9a-f]{4}-[0-9a-f]{12}", uuid_key, uuids)


def malformed(number: int, kind: int) -> bytes:
    """Return a key near that of a ledger that is none: too long, too short, of other characters, or of two lines."""
    key = uuid_key(number)
    return [
        key + b"0",
        key[:-1],
        key[:-1] + b"g",
        key[:-1] + b"F",
        key[:-1] + b"\n",
        key[:-1] + b" ",
        key[:-2] + b"_1",
        key + b"\n" + key,
        key + key,
        key[:-13] + b"0" + key[-12:],
        uuid_key(number | 1 << 64),
        uuid_key(number | 1 << 63),
    ][kind % 12]


runs = st.lists(st.tuples(st.integers(0, LAST), st.integers(1, 90), st.sampled_from([1, 1, 2, 7, 1000])), max_size=6)
ids = runs.map(
    lambda found: sorted({start + at * step for start, count, step in found for at in range(count)} - {LAST + 1})
).map(lambda found: [one for one in found if one <= LAST])
strangers = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 11)), max_size=60)


@given(ids, st.sets(st.integers(0, 10_000), max_size=80), strangers)
def test_a_listing_has_all_numbers_and_no_other_key(
    far: list[int], near: set[int], others: list[tuple[int, int]]
) -> None:
    """Any numbers, dense, sparse and far apart, with other keys between them: each is listed once and in order, also by
    a second listing, which knows where the first page of the first one ended. Pages are bounded; no request is left.
    """
    expected = sorted({*far, *near})
    store = MemoryStore({*map(uuid_key, expected), *(malformed(number, kind) for number, kind in others)})
    keys = ledger_keys()
    for _ in range(2):
        found = list(pages(store, keys))
        assert [number for page in found for number in page] == expected
        assert all(0 < len(page) <= PAGE for page in found)
    assert all(answer.ended for answer in store.asked)


@given(ids, st.integers(0, 3000))
def test_what_is_counted_grows_with_the_keys(far: list[int], dense: int) -> None:
    """What etcd counts and returns for a listing is a small multiple of the keys, not their square."""
    store = MemoryStore(map(uuid_key, {*far, *range(dense)}))
    list(pages(store, ledger_keys()))
    assert store.counted <= 30 * len(store.keys) + 30 * PAGE
    assert store.returned <= 3 * len(store.keys) + 3 * PAGE
    assert len(store.asked) <= 3 * len(store.keys) // PAGE + 200


@pytest.mark.parametrize("missing", [0, 7, 19, 20])
def test_a_key_that_is_no_number_does_not_stand_in_for_one(missing: int) -> None:
    """In each page of dense numbers, one was deleted, and there is another key instead, so the counts are right."""
    expected = [number for number in range(400) if number % PAGE != missing % PAGE]
    others = [malformed(number, number // PAGE) for number in range(missing, 380, PAGE)]
    store = MemoryStore({*map(uuid_key, expected), *others})
    assert [number for page in pages(store, ledger_keys()) for number in page] == expected


def test_a_listing_of_few_keys_takes_one_request() -> None:
    """However far apart they are; and so does a listing after those of many keys which are gone now."""
    keys = ledger_keys()
    few = [5, 1 << 40, LAST]
    store = MemoryStore(map(uuid_key, few))
    assert list(pages(store, keys)) == [few]
    assert len(store.asked) == 1
    assert len(list(pages(MemoryStore(map(uuid_key, range(1000))), keys))) == 1000 // PAGE
    assert list(pages(store, keys)) == [few[:1], few[1:2], few[2:]]
    store.asked.clear()
    assert list(pages(store, keys)) == [few]
    assert len(store.asked) == 1


def test_pages_are_requested_ahead_from_the_second_one_on() -> None:
    """Whoever takes the first page only causes no further request; whoever goes on has the next pages on their way, and
    they are dropped at its end.
    """
    store = MemoryStore(map(uuid_key, range(1000)))
    listing = pages(store, ledger_keys())
    assert next(listing) == list(range(PAGE))
    assert [answer.ended for answer in store.asked] == [True]
    next(listing)
    assert [answer.ended for answer in store.asked] == [True, True] + [False] * AHEAD
    assert [answer.ahead for answer in store.asked] == [False, False] + [True] * AHEAD
    listing.close()
    assert all(answer.ended for answer in store.asked)


def test_first_pages_stay_cheap_while_many_keys_remain() -> None:
    """The first page of each listing is taken, and its keys are deleted, as workers of auto-recovery do with marks:
    what is counted grows with the keys, not with their square.
    """
    keys, left = ledger_keys(), list(range(5000, 15_000))
    store = MemoryStore(map(uuid_key, left))
    while left:
        [page] = islice(pages(store, keys), 1)
        assert page == left[: len(page)]
        del left[: len(page)], store.keys[: len(page)]
    assert store.counted <= 4 * 10_000
