"""Test pages and runs (cache.pages, cache.runs, cache.view, cache.write): entries are found, the copy that was put
last is the one, and slices contain them.
"""

import struct
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bookie._fast.cache.view import LedgerPages
from bookie._fast.cache.write import WriteHalf
from tests.fixtures.draws import examples
from tests.reference.runs import NONE, Runs

MIB = 1 << 20
CHUNK_RUNS = 128
IDS = st.one_of(st.integers(0, 15), st.integers(0, 100), st.sampled_from([1 << 40, (1 << 63) - 2]))
LEDGERS = st.one_of(st.integers(0, 3), st.integers(0, 200), st.just((1 << 63) - 1))


def entry(ledger: int, entry_id: int, payload: bytes = b"") -> bytes:
    """Return an entry with the fields that a half reads."""
    return struct.pack(">qq", ledger, entry_id) + payload


class RunsMachine(RuleBasedStateMachine):
    """Test puts, look-ups and slices of many ledgers in one half."""

    @initialize()
    def begin(self) -> None:
        """Begin with an empty half."""
        self.half = WriteHalf(16 * MIB)
        self.model: dict[int, Runs] = {}
        self.puts = 0

    @rule(ledger=LEDGERS, first=IDS, count=st.integers(1, 20), step=st.integers(1, 3), size=st.integers(0, 1500))
    def put(self, ledger: int, first: int, count: int, step: int, size: int) -> None:
        """Put ascending ids, with or without gaps, new or again."""
        for entry_id in range(first, min(first + count * step, NONE), step):
            self.puts += 1
            data = entry(ledger, entry_id, struct.pack(">I", self.puts) * (size // 4))
            assert self.half.put(data)
            self.model.setdefault(ledger, Runs()).put(entry_id, data)

    @rule(ledger=LEDGERS)
    def remove(self, ledger: int) -> None:
        """Remove one ledger; the others stay."""
        self.half.remove(ledger)
        self.model.pop(ledger, None)

    @rule()
    def clear(self) -> None:
        """Remove all ledgers."""
        self.half.clear()
        self.model.clear()
        assert set(self.half.stats().values()) == {0}

    @rule(ledger=LEDGERS, entry_id=IDS)
    def find(self, ledger: int, entry_id: int) -> None:
        """An entry is found, or the next one above it."""
        runs = self.model.get(ledger, Runs())
        here, above = self.half.find(ledger, entry_id)
        assert here == (entry_id in runs.entries)
        if not here:
            assert above == runs.above(entry_id)

    @rule(
        ledger=LEDGERS,
        entry_id=IDS,
        ahead=st.integers(1, 50),
        count=st.integers(1, 50),
        size=st.integers(0, 20_000),
        first_free=st.booleans(),
    )
    def take(self, ledger: int, entry_id: int, ahead: int, count: int, size: int, *, first_free: bool) -> None:
        """A slice is a prefix of what could be taken, and successive slices give all of it."""
        runs = self.model.get(ledger, Runs())
        upper = min(entry_id + ahead, NONE)
        expected = runs.take(entry_id, upper, count, size, first_free=first_free)
        at, got = entry_id, b""
        while at < upper and count > 0:
            part = self.half.take(
                ledger, at, upper=upper, count=count, size=max(0, size - len(got)), first_free=first_free and not got
            )
            if not part:
                break
            got += part
            while part:
                (length,) = struct.unpack_from(">I", part)
                part, at, count = part[4 + length :], at + 1, count - 1
        assert got == expected

    @invariant()
    def runs_never_overlap(self) -> None:
        """Runs are sorted, do not overlap, and together have all entries."""
        for ledger, model in self.model.items():
            runs = self.half.runs(ledger)
            edges = [edge for first, last, _ in runs for edge in (first, last)]
            assert edges == sorted(edges)
            assert all(first < after for (_, first, _), (after, _, _) in pairwise(runs))
            assert sum(entries for _, _, entries in runs) == len(model.entries)


TestRuns = RunsMachine.TestCase
TestRuns.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


def test_a_writer_in_order_makes_one_run_a_page() -> None:
    """A thousand entries in order make a handful of runs, since much work is done per run."""
    half = WriteHalf(4 * MIB)
    for entry_id in range(1000):
        assert half.put(entry(1, entry_id, bytes(100)), tail=True)
    runs = half.runs(1)
    assert sum(entries for _, _, entries in runs) == 1000
    assert len(runs) <= 8
    assert not half.overrides(1)
    half.put(entry(1, 5))
    assert half.overrides(1)


def test_a_page_that_is_dropped() -> None:
    """The runs of a dropped page are gone, and those in other pages stay."""
    half = WriteHalf(4 * MIB)
    for entry_id in range(300):
        half.put(entry(1, entry_id, bytes(100)))
    runs = half.runs(1)
    half.drop_first_page(1)
    assert half.runs(1) == runs[1:]
    assert half.find(1, 0) == (False, runs[1][0])


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=200))
def test_a_half_that_fills(sizes: list[int]) -> None:
    """A full half refuses an entry and keeps what it has; once cleared, it takes as much again."""
    half = WriteHalf(256 << 10)
    for _ in range(2):
        kept = [at for at, size in enumerate(sizes) if half.put(entry(at % 5, at, bytes(size)))]
        stats = half.stats()
        assert stats["used"] <= 256 << 10
        assert stats["entries"] == len(kept)
        assert stats["bytes"] == sum(20 + sizes[at] for at in kept)
        for at in range(len(sizes)):
            assert half.find(at % 5, at)[0] == (at in kept)
        half.clear()
        assert half.put(entry(0, 0, bytes(sizes[0])))
        half.clear()


def test_a_ledger_too_scattered_to_keep() -> None:
    """Each entry out of order costs a run; beyond a limit the half requests a flush."""
    half = WriteHalf(16 * MIB)
    refused = 0
    for entry_id in range(40_000, 0, -2):
        try:
            assert half.put(entry(1, entry_id))
        except ValueError:
            refused += 1
    assert 0 < refused < 10_000


class PagesMachine(RuleBasedStateMachine):
    """Test many small pages that overlap and go, as in a read cache under random reads."""

    @initialize(seed=st.integers(0, 1 << 32), count=st.sampled_from([0, 300, 2000]))
    def begin(self, seed: int, count: int) -> None:
        """Begin with more runs than a chunk holds, in random order."""
        self.pages = LedgerPages()
        self.owner: dict[int, int] = {}
        self.ids: dict[int, list[int]] = {}
        random = Random(seed)
        for entry_id in random.sample(range(0, 3 * count, 3), count):
            self.show([entry_id])

    def show(self, ids: list[int]) -> None:
        """Show a page to both. Entries in the gaps between its ids are not found any more."""
        page = self.pages.show(ids)
        for entry_id in [at for at in self.owner if ids[0] <= at <= ids[-1]]:
            del self.owner[entry_id]
        self.owner.update(dict.fromkeys(ids, page))
        self.ids[page] = ids

    @rule(first=st.integers(0, 6100), step=st.integers(1, 40), count=st.integers(1, 200))
    def cover(self, first: int, step: int, count: int) -> None:
        """The newest page has the entries that it covers, and older pages keep those below and above."""
        self.show(list(range(first, first + step * count, step)))

    @rule(share=st.floats(0, 1), seed=st.integers(0, 1 << 32))
    def drop(self, share: float, seed: int) -> None:
        """Drop pages in any order."""
        random = Random(seed)
        for page in random.sample(sorted(self.ids), int(share * len(self.ids))):
            self.pages.drop(page)
            for entry_id in self.ids.pop(page):
                if self.owner.get(entry_id) == page:
                    del self.owner[entry_id]

    @rule(entry_id=st.integers(0, 15_000))
    def find(self, entry_id: int) -> None:
        """An entry is found in its page, or the next one above it."""
        above = min((at for at in self.owner if at > entry_id), default=NONE)
        page = self.owner.get(entry_id, 0)
        assert self.pages.find(entry_id) == (page, entry_id if page else above)

    @invariant()
    def sorted_and_apart(self) -> None:
        """Runs are sorted and do not overlap, in chunks of bounded size that are not empty."""
        runs = self.pages.runs()
        assert all(last < after for (_, last, _), (after, _, _) in pairwise(runs))
        assert sum(entries for _, _, entries in runs) == len(self.owner)
        assert all(0 < count <= CHUNK_RUNS for count in self.pages.chunks())


TestPages = PagesMachine.TestCase
TestPages.settings = settings(max_examples=examples(20), stateful_step_count=12, deadline=None)


def test_chunks_that_empty_are_joined() -> None:
    """The runs that remain of many are in few chunks."""
    pages = LedgerPages()
    shown = [pages.show([2 * at]) for at in range(10_000)]
    for at, page in enumerate(shown):
        if at % 50:
            pages.drop(page)
    assert pages.runs() == [(2 * at, 2 * at, 1) for at in range(0, 10_000, 50)]
    assert len(pages.chunks()) <= 2 * (200 // (CHUNK_RUNS // 2) + 1)


def test_what_leads_to_the_entries_counts_against_the_half() -> None:
    """Ledgers of one entry, and entries in descending order, need more memory for runs than for entries: the half is
    full before both together exceed its size.
    """
    size = 1 << 20
    tiny, backwards = WriteHalf(size), WriteHalf(size)
    ledgers = 0
    while tiny.put(entry(ledgers, 0)):
        ledgers += 1
    stats = tiny.stats()
    assert stats["used"] + stats["map_bytes"] <= size
    assert stats["map_bytes"] >= 248 * ledgers
    assert stats["ledgers"] - ledgers in (0, 1), "the one that was refused may be known"
    at = count = 100_000
    ledger = 0
    while backwards.put(entry(ledger, at)):
        count += 1
        at -= 1
        ledger = count // 10_000
    stats = backwards.stats()
    assert stats["map_bytes"] > stats["used"] // 2
    assert stats["used"] + stats["map_bytes"] <= size
    backwards.clear()
    assert backwards.stats()["map_bytes"] == 0
    assert backwards.put(entry(0, 0))
