"""A model of the read cache of a ledger directory: the ring, its pages, and how much a miss reads ahead.

The rules are those of the bookie (docs/read-cache.md, docs/decisions/0011 and 0013). They are counted, not timed: each
request ends before the next one begins, and readahead follows immediately. The entries of a ledger all have one size
and lie consecutively from the first to the last. A test compares the model with a bookie's own counters; it differs by
a few percent, because it does not know in which runs entries are stored.
"""

from bisect import bisect_right
from dataclasses import dataclass

from bookie.spark.reread.readers import Readers, shard_of

__all__ = ["CacheModel", "CacheSettings", "Counts"]

PAGE_HEAD = 128
PAGE_RUNS = 384  # reserved for the runs that point into a page
RECORD_LEAST = 20
GROWTH = 4
WHOLE = 1 << 29
FOLLOW_SHARE = 8
SCALE_FULL, SCALE_LEAST, ENTRIES_LEAST = 1024, 16, 16


def aligned(size: int, to: int) -> int:
    """Round `size` up to a multiple of `to`."""
    return -(-size // to) * to


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The settings of one ledger directory's read cache, in bytes."""

    cache_bytes: int
    segment_bytes: int
    readahead_entries: int
    readahead_bytes: int
    adaptive: bool = False


@dataclass(slots=True)
class Counts:
    """The bookie's counters of the same names."""

    served: int = 0
    read_cache_hits: int = 0
    disk_reads: int = 0
    readahead_batch_count: int = 0
    readahead_batch_size: int = 0
    rereads: int = 0
    evicted_entries: int = 0
    evicted_unused_entries: int = 0


class Page:
    """The records of one disk read: entries [first, first + slots) of a ledger."""

    __slots__ = ("first", "follow", "ledger", "record", "setting", "shown", "slots", "taken", "taken_from", "taken_to")

    def __init__(self, ledger: int, first: int, slots: int, record: int, setting: int) -> None:
        self.ledger = ledger
        self.first = first
        self.slots = slots
        self.record = record
        self.setting = setting
        self.follow = -1
        self.taken = self.taken_to = 0
        self.taken_from = slots


class Runs:
    """The runs of a ledger, each of which points into a page: disjoint and ascending; a newer run cuts older ones."""

    __slots__ = ("firsts", "lasts", "pages")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.pages: list[Page] = []

    def below(self, entry: int) -> int:
        """Return the position of the last run that begins at or before `entry`, or -1."""
        return bisect_right(self.firsts, entry) - 1

    def insert(self, page: Page) -> None:
        """Add a run for an entire page."""
        first, last = page.first, page.first + page.slots - 1
        start = max(self.below(first), 0)
        end = start
        kept: list[tuple[int, int, Page]] = []
        while end < len(self.firsts) and self.firsts[end] <= last:
            low, high, old = self.firsts[end], self.lasts[end], self.pages[end]
            if low < first:
                kept.append((low, min(high, first - 1), old))
            if high > last:
                kept.append((last + 1, high, old))
            end += 1
        kept.append((first, last, page))
        kept.sort(key=lambda one: one[0])
        self.firsts[start:end] = [one[0] for one in kept]
        self.lasts[start:end] = [one[1] for one in kept]
        self.pages[start:end] = [one[2] for one in kept]

    def drop(self, page: Page) -> None:
        """Remove all runs of a page that was evicted."""
        keep = [at for at, one in enumerate(self.pages) if one is not page]
        if len(keep) != len(self.pages):
            self.firsts = [self.firsts[at] for at in keep]
            self.lasts = [self.lasts[at] for at in keep]
            self.pages = [self.pages[at] for at in keep]


class CacheModel:
    """The cache of one directory. `read` performs one request; `counts` has the totals so far."""

    def __init__(self, settings: CacheSettings) -> None:
        self._settings = settings
        self._segment = min(settings.segment_bytes, settings.cache_bytes // 2)
        count = max(2, settings.cache_bytes // self._segment)
        self._segments: list[list[Page]] = [[] for _ in range(count)]
        self._used = [0] * count
        self._current = 0
        self._runs: dict[int, Runs] = {}
        self._seen: dict[int, bytearray] = {}
        self._readers: dict[int, Readers] = {}
        self._scale, self._setting = SCALE_FULL, 0
        self._wasteful = False
        self._judged = self._unused = 0
        self.counts = Counts()

    def read(self, ledger: int, entry: int, count: int, record: int, last: int) -> None:
        """Read entries [entry, entry + count) of a ledger whose records have `record` bytes and which ends with entry
        `last`.
        """
        end = min(entry + count - 1, last)
        follow, at = self._take(ledger, entry, end)
        if follow >= 0:
            self._follow(ledger, follow, record, last)
        if at <= end and at > entry:
            at = entry  # the read pool starts again from the first entry
        ahead = -1
        while at <= end:
            follow, at = self._take(ledger, at, end)
            ahead = max(ahead, follow)
            if at <= end:
                page = self._load(ledger, at, end - at + 1, record, last, early=False)
                taken = min(page.slots, end - at + 1)
                self._took(page, 0, taken)
                at += taken
                if page.follow >= 0 and page.taken_to - page.taken_from > page.slots // FOLLOW_SHARE:
                    ahead, page.follow = page.follow, -1
        if ahead >= 0:
            self._follow(ledger, ahead, record, last)
        self.counts.served += max(end - entry + 1, 0)

    def _take(self, ledger: int, at: int, end: int) -> tuple[int, int]:
        """Take entries from memory as far as possible; return the entry to read ahead from, or -1, and the first one
        not found.
        """
        runs, follow = self._runs.get(ledger), -1
        while runs and at <= end:
            place = runs.below(at)
            if place < 0 or runs.lasts[place] < at:
                break
            page = runs.pages[place]
            taken = min(runs.lasts[place], end) - at + 1
            self._took(page, at - page.first, taken)
            self.counts.read_cache_hits += taken
            if page.follow >= 0 and page.taken_to - page.taken_from > page.slots // FOLLOW_SHARE:
                follow, page.follow = page.follow, -1
            at += taken
        return follow, at

    def _took(self, page: Page, slot: int, count: int) -> None:
        page.taken += count
        page.taken_from = min(page.taken_from, slot)
        page.taken_to = max(page.taken_to, slot + count)

    def _follow(self, ledger: int, entry: int, record: int, last: int) -> None:
        """Read ahead from `entry`, unless it is cached already."""
        runs = self._runs.get(ledger)
        if entry > last:
            return
        if runs:
            place = runs.below(entry)
            if place >= 0 and runs.lasts[place] >= entry:
                return
        self._load(ledger, entry, 0, record, last, early=True)

    def _stretch_before(self, ledger: int, entry: int, stretch: int, end: int, *, early: bool) -> int:
        """Return how many entries were read before for a reader that goes forward and has used them, else 0. `stretch`
        and `end` are what the table of readers knows.
        """
        if entry == 0:
            return WHOLE
        runs = self._runs.get(ledger)
        place = runs.below(entry) if runs else -1
        if runs is None or place < 0:
            return 0
        page, last = runs.pages[place], runs.lasts[place]
        if page.first + page.slots != last + 1:
            return 0
        if last + 1 == entry and (early or page.taken >= page.slots // 2):
            return page.slots
        passed = page.taken_to > page.slots // 2 or page.taken >= page.slots // 2
        return stretch if last + 1 == end and passed else 0

    def _load(self, ledger: int, entry: int, requested: int, record: int, last: int, *, early: bool) -> Page:
        """Perform one disk read and publish its page."""
        most_bytes, most_entries = self._limits()
        readers = self._readers.setdefault(shard_of(ledger), Readers())
        count = min(requested, most_entries)
        stretch, end = readers.advance(ledger, entry, count, record, most_entries, most_bytes)
        ahead = self._stretch_before(ledger, entry, stretch, end, early=early)
        left = last - entry + 1
        wanted = requested * record
        if ahead:
            wanted = max(wanted, most_bytes)
            entries = max(min(most_entries, ahead * GROWTH), requested)
        else:
            wanted = max(wanted, record)
            entries = max(requested, 1)
        span = max(min(min(left, entries) * record, wanted, self._segment // 2), record)
        slots = span // record
        if slots * record != span and slots > 1:
            slots -= 1  # the record that is cut off is not used
        room = aligned(span, 4) + 4 * min(span // RECORD_LEAST + 1, left)
        page = Page(ledger, entry, slots, record, self._setting)
        self._place(page, room)
        self._note(page, span)
        readers.brought(ledger, entry, entry + slots - 1)
        self._runs.setdefault(ledger, Runs()).insert(page)
        if ahead and self._settings.readahead_entries > 1 and not self._wasteful:
            page.follow = entry + slots
        return page

    def _note(self, page: Page, span: int) -> None:
        counts = self.counts
        counts.disk_reads += 1
        counts.readahead_batch_count += page.slots
        counts.readahead_batch_size += min(span, page.slots * page.record)
        seen = self._seen.setdefault(page.ledger, bytearray())
        end = page.first + page.slots
        if len(seen) < end:
            seen.extend(bytes(end - len(seen)))
        counts.rereads += seen.count(1, page.first, end)
        seen[page.first : end] = b"\1" * page.slots

    def _place(self, page: Page, room: int) -> None:
        """Place a page in the ring; the part of `room` that it does not need is returned."""
        if PAGE_HEAD + PAGE_RUNS + aligned(room, 64) > self._segment - self._used[self._current]:
            self._current = (self._current + 1) % len(self._segments)
            for old in reversed(self._segments[self._current]):
                self._evict(old)
            self._segments[self._current] = []
            self._used[self._current] = 0
        self._segments[self._current].append(page)
        self._used[self._current] += PAGE_HEAD + PAGE_RUNS + aligned(page.slots * page.record + 4 * page.slots, 64)

    def _evict(self, page: Page) -> None:
        runs = self._runs[page.ledger]
        runs.drop(page)
        used = min(page.taken, page.taken_to - page.taken_from) if page.taken_to else 0
        self.counts.evicted_entries += page.slots
        self.counts.evicted_unused_entries += page.slots - used
        if page.setting == self._setting:
            self._judge(page.slots * page.record, (page.slots - used) * page.record)

    def _limits(self) -> tuple[int, int]:
        settings, scale = self._settings, self._scale
        if scale == SCALE_FULL:
            return settings.readahead_bytes, settings.readahead_entries
        least = min(settings.readahead_entries, ENTRIES_LEAST)
        entries = max(settings.readahead_entries * scale // SCALE_FULL, least)
        return max(settings.readahead_bytes * scale // SCALE_FULL, 1), entries

    def _judge(self, size: int, unused: int) -> None:
        """Adapt the readahead if it loads more than the cache can hold until it is used."""
        self._judged += size
        self._unused += unused
        if self._judged < self._segment // 2:
            return
        scale = self._scale
        if self._unused > self._judged // 4:
            self._wasteful = True
            scale = max(scale // 2, SCALE_LEAST)
        elif self._unused < self._judged // 16:
            self._wasteful = False
            scale = min(scale + scale // 4, SCALE_FULL)
        if self._settings.adaptive and scale != self._scale:
            self._scale = scale
            self._setting += 1
        self._judged = self._unused = 0
