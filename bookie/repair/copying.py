"""Copies the missing entries of one ledger from their other replicas to a bookie.

It keeps several batch reads, or single reads, in flight, verifies every digest, and writes recovery adds, which a
fence does not stop. Caller's thread; the reads and adds in flight bound the memory.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client import BookieChannel, Digest, DigestType, Flags, Reply, StoredBatch
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    RequestTimeout,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.repair.expected import ExpectedPart
from bookie.repair.peers import Peers

__all__ = ["copy_part", "digest_of", "LedgerCopy", "Target"]

BATCH_ENTRIES = 1000
BATCH_BYTES = 1 << 20
BATCHES_IN_FLIGHT = 4
SINGLE_READS = 64
"""The number of single reads that replace a batch."""
ADDS_IN_FLIGHT = 2000
HUNG_UP = (BookieUnavailable, ClientClosed)
BROKEN = (*HUNG_UP, RequestTimeout)


class Awaited(Protocol):
    """The pending result of an add."""

    def result(self) -> None:
        """Return when the add is durable. Raises the error that refused it."""


class Target(Protocol):
    """The destination of copies: a channel to a bookie, or the bookie's own store."""

    def add_stored_async(self, stored: Buffer, master_key: bytes, *, flags: int = 0) -> Awaited:
        """Store bytes that are already an entry."""


@dataclass(slots=True)
class LedgerCopy:
    """The progress of copying one ledger."""

    copied: int = 0
    bytes: int = 0
    lost: list[int] = field(default_factory=list)
    """Entries that no replica could supply."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The last error of each replica, by bookie id."""


@dataclass(slots=True)
class _Stretch:
    """Consecutive entries with the same replicas; the first `tried` of these have been asked."""

    first: int
    count: int
    sources: tuple[str, ...]
    tried: int = 0


@dataclass(frozen=True, slots=True)
class _Singles:
    """Single reads in place of a batch."""

    ledger: int
    first: int
    replies: list[Reply[bytes]]

    def result(self) -> StoredBatch:
        """Return the entries up to the first that is missing. Raises the first entry's error if that is missing."""
        records: list[bytes] = []
        for reply in self.replies:
            try:
                stored = reply.result()
            except BookKeeperError:
                if not records:
                    raise
                break
            records += (len(stored).to_bytes(4, "big"), stored)
        return StoredBatch(self.ledger, self.first, memoryview(b"".join(records)))


def digest_of(metadata: LedgerMetadata) -> Digest:
    """Return what verifies the ledger's entries. Entries of ledgers older than digests are not verified."""
    return Digest.of(DigestType(metadata.digest_type or DigestType.DUMMY), metadata.password)


def copy_part(
    ledger: int,
    digest: Digest,
    part: ExpectedPart,
    missing: NDArray[np.int64],
    *,
    peers: Peers,
    target: Target,
) -> LedgerCopy:
    """Copy `missing`, ascending entries of `part`, to `target`. Return when every add is durable.

    Entries that no replica has are in `lost`. Raises the errors of the target, which is our own and must work.
    """
    return _Copying(ledger, digest, peers, target).run(_stretches(part, missing))


def _stretches(part: ExpectedPart, missing: NDArray[np.int64]) -> Iterator[_Stretch]:
    """Cut `missing` where ids are not consecutive, where the replicas change, and to the size of a batch."""
    kinds = {members: kind for kind, members in enumerate(dict.fromkeys(frozenset(o) for o in part.others))}
    kind_of = np.array([kinds[frozenset(members)] for members in part.others])
    kind = kind_of[missing % len(part.others)]
    cuts = np.flatnonzero((np.diff(missing) != 1) | (np.diff(kind) != 0)) + 1
    for piece in np.split(missing, cuts):
        for at in range(0, len(piece), BATCH_ENTRIES):
            first = int(piece[at])
            yield _Stretch(first, min(BATCH_ENTRIES, len(piece) - at), part.others_of(first))


class _Copying:
    """The copying of one ledger."""

    def __init__(self, ledger: int, digest: Digest, peers: Peers, target: Target) -> None:
        self._ledger = ledger
        self._digest = digest
        self._peers = peers
        self._target = target
        self._reads: deque[tuple[_Stretch, str, Reply[StoredBatch] | _Singles]] = deque()
        self._adds: deque[Awaited] = deque()
        self._again: deque[_Stretch] = deque()
        self.done = LedgerCopy()

    def run(self, stretches: Iterator[_Stretch]) -> LedgerCopy:
        following = next(stretches, None)
        while following is not None or self._again or self._reads:
            while len(self._reads) < BATCHES_IN_FLIGHT and (self._again or following is not None):
                if self._again:
                    self._ask(self._again.popleft())
                elif following is not None:
                    self._ask(following)
                    following = next(stretches, None)
            if self._reads:
                self._take(*self._reads.popleft())
        while self._adds:
            self._adds.popleft().result()
        self.done.lost.sort()
        return self.done

    def _ask(self, stretch: _Stretch) -> None:
        """Send the read to the next replica that can be reached. If there is none, the entries are lost."""
        while stretch.tried < len(stretch.sources):
            source = stretch.sources[stretch.tried]
            channel = self._peers.channel(source)
            if channel is not None:
                try:
                    read = self._read(channel, stretch, singly=source in self._peers.singly)
                except BROKEN as error:
                    self._peers.give_up(source, error)
                else:
                    self._reads.append((stretch, source, read))
                    return
            self.done.reasons.setdefault(source, self._peers.unreachable.get(source, ""))
            stretch.tried += 1
        if all(source in self._peers.unreachable for source in stretch.sources):
            self.done.lost += range(stretch.first, stretch.first + stretch.count)
            return
        self.done.lost.append(stretch.first)  # the next entry may still be there
        if stretch.count > 1:
            self._again.append(_Stretch(stretch.first + 1, stretch.count - 1, stretch.sources))

    def _read(self, channel: BookieChannel, stretch: _Stretch, *, singly: bool) -> Reply[StoredBatch] | _Singles:
        first, urgent = stretch.first, Flags.HIGH_PRIORITY
        if singly:
            entries = range(first, first + min(stretch.count, SINGLE_READS))
            return _Singles(self._ledger, first, [channel.read_async(self._ledger, n, flags=urgent) for n in entries])
        return channel.batch_read_async(self._ledger, first, stretch.count, BATCH_BYTES, flags=urgent)

    def _take(self, stretch: _Stretch, source: str, read: Reply[StoredBatch] | _Singles) -> None:
        try:
            batch = read.result()
            if not isinstance(read, _Singles):
                self._peers.served_batches.add(source)
            batch.verify(self._digest)
        except BookKeeperError as error:
            tried = not isinstance(read, _Singles) and source not in self._peers.served_batches
            if tried and isinstance(error, HUNG_UP):
                self._peers.read_singly(source)
                self._again.append(stretch)
                return
            self.done.reasons[source] = str(error)
            if isinstance(error, BROKEN):
                self._peers.give_up(source, error)
            stretch.tried += 1
            self._again.append(stretch)
            return
        for entry, stored in batch:
            if entry == stretch.first + stretch.count:
                break
            self._add(stored)
        got = min(len(batch), stretch.count)
        if got < stretch.count:
            self._again.append(_Stretch(stretch.first + got, stretch.count - got, stretch.sources))

    def _add(self, stored: memoryview) -> None:
        while len(self._adds) >= ADDS_IN_FLIGHT:
            self._adds.popleft().result()
        self._adds.append(self._target.add_stored_async(stored, self._digest.master_key, flags=Flags.RECOVERY_ADD))
        self.done.copied += 1
        self.done.bytes += len(stored)
