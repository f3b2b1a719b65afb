"""Compares the replicas of a ledger: which of the entries that it should store each bookie has, and in what state.

A bookie is asked for its list of entries, and then for the stored form of those in the sample: in batches if it
supports batch reads, else by many concurrent single reads. Compiled modules verify the digests. Everything runs on the
event loop of a task.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bookie.availability import LAST_ID, AvailableEntries
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.opening import digest_of
from bookie.client.ledgers.throttle import RateLimit
from bookie.client.replication.fragments import holds
from bookie.client.replication.opening import OpenedLedgers
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    DigestMismatch,
    IllegalOperation,
    NoSuchEntry,
    NoSuchLedger,
    NoSuchLedgerMetadata,
    RequestTimeout,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["Comparison", "Found", "Sample", "STATUSES"]

STATUSES = ("OK", "MISSING", "DIGEST", "LENGTH", "EXTRA", "ERROR", "TIMEOUT")
OK, MISSING, DIGEST, LENGTH, EXTRA, ERROR, TIMEOUT = range(len(STATUSES))
NOTHING_THERE = (NoSuchEntry, NoSuchLedger)
CHUNK_ENTRIES = 1 << 14
BATCH_BYTES = 1 << 20
SINGLES_AT_ONCE = 256
LENGTH_AT = 4 + 24
UNREAD, NOBODY_KNOWS = -1, -2

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sample:
    """Which entries of a bookie's share of the ledger are read: `first_last`, `percent` of them, or `all`."""

    kind: str
    percent: float = 100.0

    def of(self, entries: Ids, ends: Ids, ledger: int) -> Ids:
        """Return the sample of `entries`; it is the same in each call. `ends` has the first and last entry of each
        segment.
        """
        if self.kind == "all":
            return entries
        keep = np.isin(entries, ends)
        if self.kind == "percent":
            keep |= np.random.default_rng([ledger, *entries[:1].tolist()]).random(len(entries)) * 100 < self.percent
        return entries[keep]


class Found(NamedTuple):
    """Rows of one bookie: `status` holds indices into STATUSES; `detail` is the reason of all that are ERROR or
    TIMEOUT.
    """

    ledger: int
    bookie: str
    entries: Ids
    status: NDArray[np.int8]
    detail: str


class _Held(NamedTuple):
    """The entries of a chunk that a bookie should store or has, with the state of each."""

    entries: Ids
    status: NDArray[np.int8]
    lengths: Ids
    detail: str


class Comparison:
    """Compares ledgers through one client. A bookie that could not be reached is not tried again."""

    def __init__(self, context: ClientContext, sample: Sample, bytes_per_s: float = 0) -> None:
        self._context = context
        self._bookies = context.bookies
        self._sample = sample
        self._bytes_per_s = bytes_per_s
        self._throttles: dict[str, RateLimit] = {}
        self._gone: dict[str, tuple[int, str]] = {}

    async def ledger(self, ledger: int) -> AsyncIterator[list[Found]]:
        """Yield the rows of a ledger, at most 16384 entries at a time; nothing for a ledger that is deleted."""
        try:
            metadata = (await self._context.metadata.read(ledger)).value
        except NoSuchLedgerMetadata:
            return
        closed = metadata.state is LedgerState.CLOSED
        last = metadata.last_entry if closed else await self._confirmed(ledger, metadata)
        bookies = sorted({bookie for segment in metadata.segments for bookie in segment.bookies})
        lists = dict(zip(bookies, await asyncio.gather(*(self._list(one, ledger) for one in bookies)), strict=True))
        for chunk in _chunks(last, [there for there in lists.values() if closed and there is not None]):
            parts = await asyncio.gather(
                *(self._part(one, ledger, metadata, chunk, last, lists[one]) for one in bookies)
            )
            held = dict(zip(bookies, parts, strict=True))
            _judge_lengths(held, metadata, chunk)
            yield [
                Found(ledger, bookie, part.entries, part.status, part.detail)
                for bookie, part in held.items()
                if len(part.entries)
            ]

    async def _confirmed(self, ledger: int, metadata: LedgerMetadata) -> int:
        """Return the entry up to which an open ledger must be complete; less if bookies fail to answer."""
        try:
            return await OpenedLedgers(self._context).last_confirmed(ledger, metadata)
        except BookKeeperError:
            return metadata.segments[-1].first_entry - 1

    async def _list(self, bookie: str, ledger: int) -> AvailableEntries | None:
        """Return the bookie's list of entries, or None if it cannot be had; then entries are only read."""
        try:
            return await self._bookies.list_entries(bookie, ledger)
        except NoSuchLedger:
            return AvailableEntries.decode(bytes(64))
        except BookKeeperError as error:
            self._note(bookie, error)
            return None

    def _note(self, bookie: str, error: BookKeeperError) -> tuple[int, str]:
        found = TIMEOUT if isinstance(error, RequestTimeout) else ERROR, str(error)
        if isinstance(error, BookieUnavailable):
            self._gone[bookie] = found
        return found

    async def _part(
        self,
        bookie: str,
        ledger: int,
        metadata: LedgerMetadata,
        chunk: Ids,
        last: int,
        there: AvailableEntries | None,
    ) -> _Held:
        wanted, ends = _wanted(metadata, bookie, chunk[chunk <= last], last)
        missing = extra = np.empty(0, np.int64)
        present = wanted
        if there is not None:
            has = there.mask(wanted)
            missing, present = wanted[~has], wanted[has]
            listed = chunk[there.mask(chunk)]
            extra = np.setdiff1d(listed, wanted, assume_unique=True)
        chosen = self._sample.of(present, ends, ledger)
        status, lengths, detail = await self._read(bookie, ledger, metadata, chosen)
        known = np.concatenate([chosen, missing, extra])
        states = np.concatenate([status, np.full(len(missing), MISSING, np.int8), np.full(len(extra), EXTRA, np.int8)])
        order = np.argsort(known, kind="stable")
        nothing = np.full(len(missing) + len(extra), UNREAD, np.int64)
        return _Held(known[order], states[order], np.concatenate([lengths, nothing])[order], detail)

    async def _read(
        self, bookie: str, ledger: int, metadata: LedgerMetadata, entries: Ids
    ) -> tuple[NDArray[np.int8], Ids, str]:
        """Read entries; return the status and length field of each, and the error that ended reading, or ""."""
        status = np.full(len(entries), ERROR, np.int8)
        lengths = np.full(len(entries), UNREAD, np.int64)
        digest = digest_of(metadata, self._context.config)
        batched = metadata.ensemble_size == metadata.write_quorum and self._bookies.batches(bookie)
        at = 0
        while at < len(entries):
            if bookie in self._gone:
                status[at:], detail = self._gone[bookie]
                return status, lengths, detail
            run = _consecutive(entries, at)
            try:
                if batched and run > 1:
                    at += await self._read_batch(bookie, ledger, digest, (entries, status, lengths), at, run)
                else:
                    at += await self._read_singles(bookie, ledger, digest, (entries, status, lengths), at)
            except IllegalOperation:
                batched = False
            except NOTHING_THERE:
                status[at] = MISSING
                at += 1
            except BookKeeperError as error:
                status[at:], detail = self._note(bookie, error)
                return status, lengths, detail
        return status, lengths, ""

    async def _read_batch(
        self, bookie: str, ledger: int, digest: Digest, into: tuple[Any, Any, Any], at: int, run: int
    ) -> int:
        """Read entries with one batch read; return their number."""
        entries, status, lengths = into
        first = int(entries[at])
        batch = await self._bookies.batch_read(bookie, ledger, first, run, BATCH_BYTES)
        await self._pay(bookie, len(batch.buffer))
        count = min(len(batch), run)
        status[at : at + count] = _verdicts(batch, digest, count)
        lengths[at : at + count] = _length_fields(batch, count)
        return count

    async def _read_singles(self, bookie: str, ledger: int, digest: Digest, into: tuple[Any, Any, Any], at: int) -> int:
        """Read entries with concurrent single reads; return their number."""
        entries, status, lengths = into
        requested = entries[at : at + SINGLES_AT_ONCE]
        answers = await self._bookies.read_many(bookie, ledger, requested)
        size = 0
        for k, entry in enumerate(requested.tolist(), at):
            try:
                stored = answers.stored(entry)
            except NOTHING_THERE:
                status[k] = MISSING
                continue
            size += len(stored)
            try:
                lengths[k] = digest.open(stored, ledger, entry).length
                status[k] = OK
            except DigestMismatch:
                status[k] = DIGEST
        await self._pay(bookie, size)
        return len(requested)

    async def _pay(self, bookie: str, size: int) -> None:
        await self._throttles.setdefault(bookie, RateLimit(self._bytes_per_s)).take(size)


def _chunks(last: int, lists: Sequence[AvailableEntries]) -> Iterator[Ids]:
    """Yield the ids up to `last`, and those after it near which a list has entries, which may be far apart."""
    for first in range(0, last + 1, CHUNK_ENTRIES):
        yield np.arange(first, min(first + CHUNK_ENTRIES, last + 1), dtype=np.int64)
    end = last + 1
    while listed := [entry for there in lists if (entry := there.next_from(end)) is not None]:
        first, end = min(listed), min(min(listed) + CHUNK_ENTRIES, LAST_ID + 1)
        yield np.arange(first, end, dtype=np.int64)


def _wanted(metadata: LedgerMetadata, bookie: str, chunk: Ids, last: int) -> tuple[Ids, Ids]:
    """Return the entries of the chunk that the bookie should store, and the first and last entry of its share of each
    segment.
    """
    size, quorum = metadata.ensemble_size, metadata.write_quorum
    firsts = [segment.first_entry for segment in metadata.segments]
    found, ends = [], []
    for segment, after in zip(metadata.segments, [*firsts[1:], last + 1], strict=True):
        ids = chunk[(chunk >= segment.first_entry) & (chunk < after)]
        for index, member in enumerate(segment.bookies):
            if member == bookie:
                found.append(ids[(index - ids) % size < quorum])
                edges = [*range(segment.first_entry, min(segment.first_entry + size, after))]
                mine = [entry for entry in edges if holds(index, entry, size, quorum)][:1]
                edges = [*range(after - 1, max(after - 1 - size, segment.first_entry - 1), -1)]
                ends += mine + [entry for entry in edges if holds(index, entry, size, quorum)][:1]
    return np.concatenate(found) if found else chunk[:0], np.array(ends, np.int64)


def _consecutive(entries: Ids, at: int) -> int:
    """Return how many ids from `at` on are consecutive."""
    gaps = np.flatnonzero(np.diff(entries[at:]) != 1)
    return int(gaps[0]) + 1 if len(gaps) else len(entries) - at


def _verdicts(batch: StoredBatch, digest: Digest, count: int) -> NDArray[np.int8]:
    """Return OK or DIGEST for each of the first `count` entries."""
    found = np.full(count, OK, np.int8)
    at = 0
    while at < count:
        at += batch.good(digest, at)
        if at < count:
            found[at] = DIGEST
            at += 1
    return found


def _length_fields(batch: StoredBatch, count: int) -> Ids:
    """Return the length field of each entry, the ledger's length up to there; UNREAD for an entry that is too short."""
    starts, sizes = batch.offsets[:count], np.diff(batch.offsets[: count + 1])
    data = np.frombuffer(batch.buffer, np.uint8)
    long = sizes >= LENGTH_AT + 8
    places = np.where(long, starts, 0)[:, None] + LENGTH_AT + np.arange(8)
    fields = data[np.minimum(places, len(data) - 1)].copy().view(">i8").astype(np.int64).reshape(-1)
    return np.where(long, fields, UNREAD)


def _judge_lengths(held: dict[str, _Held], metadata: LedgerMetadata, chunk: Ids) -> None:
    """Set the status LENGTH where a replica's length field differs from that of most replicas, or from the metadata at
    the end of a closed ledger.

    Where no length field has a majority, all replicas get the status, because it is unknown which one is right.
    """
    votes = np.full((len(held), len(chunk)), UNREAD, np.int64)
    places = {}
    for row, (bookie, part) in enumerate(held.items()):
        good = part.status == OK
        places[bookie] = good, part.entries[good] - chunk[0]
        votes[row, places[bookie][1]] = part.lengths[good]
    agreed = votes.max(axis=0) if len(held) else votes
    low = np.where(votes == UNREAD, np.iinfo(np.int64).max, votes).min(axis=0)
    for at in np.flatnonzero((agreed != UNREAD) & (low != agreed)).tolist():
        first, second = Counter(votes[votes[:, at] != UNREAD, at].tolist()).most_common(2)
        agreed[at] = first[0] if first[1] > second[1] else NOBODY_KNOWS
    if metadata.state is LedgerState.CLOSED and len(chunk) and chunk[0] <= metadata.last_entry <= chunk[-1]:
        agreed[metadata.last_entry - chunk[0]] = metadata.length
    for bookie, part in held.items():
        good, at_of = places[bookie]
        wrong = part.lengths[good] != agreed[at_of]
        part.status[np.flatnonzero(good)[wrong]] = LENGTH
