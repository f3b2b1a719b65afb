"""Check whether every bookie of a ledger holds the entries that it should. Event loop.

A bookie is asked for the first and the last entry of its fragment, and for a share of those between. It is enough
that it returns them; their digests are verified when they are copied.
"""

import asyncio
from collections.abc import Iterator, Sequence

from bookie.client.event_loop.together import together
from bookie.client.ledgers.race import MISSING
from bookie.client.replication.contracts import Environment
from bookie.client.replication.fragments import Fragment, fragments, holds
from bookie.errors import BookKeeperError, ClientClosed
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["LedgerChecker"]

READS_IN_FLIGHT = 100


class LedgerChecker:
    """Checks ledgers. The settings tell how many of the entries between the first and the last are read."""

    def __init__(self, environment: Environment) -> None:
        self._bookies = environment.bookies
        self._cluster = environment.cluster
        self._random = environment.random
        self._percentage = environment.settings.verification_percentage
        at_once = environment.settings.reads_at_once
        self._reads_max = at_once if at_once > 0 else READS_IN_FLIGHT
        self._reads = asyncio.Semaphore(self._reads_max)

    async def check(self, ledger: int, metadata: LedgerMetadata, lac: int) -> list[Fragment]:
        """Return the fragments that lack entries. Raises ClientClosed."""
        parts = fragments(metadata, lac)
        unsure = [part for part in parts if not part.certain]
        if unsure and not await self._exists(ledger, metadata, unsure):
            parts = [part for part in parts if part.certain]
        good = await asyncio.gather(*(self._is_good(ledger, metadata, part) for part in parts))
        return [part for part, is_good in zip(parts, good, strict=True) if not is_good]

    async def still_lack(
        self, ledger: int, metadata: LedgerMetadata, lac: int, before: Sequence[Fragment]
    ) -> list[Fragment]:
        """Return those fragments of `before`, which lacked entries at an earlier look, that lack them still.

        Only entries that they should have had then are looked at, since a bookie may be a little behind the others at
        any time. Left out are fragments that are closed now, and bookies that were replaced or are not registered.
        """
        now = {(part.first, part.index): part for part in fragments(metadata, lac) if not part.closed}
        kept = [
            part
            for part in before
            if (found := now.get((part.first, part.index))) is not None
            and found.bookie == part.bookie
            and part.bookie in self._cluster.alive
        ]
        good = await asyncio.gather(*(self._is_good(ledger, metadata, part) for part in kept))
        return [part for part, is_good in zip(kept, good, strict=True) if not is_good]

    async def _exists(self, ledger: int, metadata: LedgerMetadata, parts: Sequence[Fragment]) -> bool:
        """Return whether the first entry of the segment may have been written: False only if all its replicas deny
        it.
        """
        entry = parts[0].first
        replicas = [p for p in parts if holds(p.index, entry, metadata.ensemble_size, metadata.write_quorum)]
        answers = await asyncio.gather(*(self._denies(ledger, part.bookie, entry) for part in replicas))
        return not all(answers)

    async def _denies(self, ledger: int, bookie: str, entry: int) -> bool:
        try:
            await self._read(ledger, bookie, entry)
        except MISSING:
            return True
        except ClientClosed:
            raise
        except BookKeeperError:
            return False
        return False

    async def _is_good(self, ledger: int, metadata: LedgerMetadata, part: Fragment) -> bool:
        if part.stored is None:
            return True
        if part.bookie not in self._cluster.alive:
            return False
        try:
            sample = self._sample(metadata, part)
            await together(self._read_each(ledger, part.bookie, sample) for _ in range(self._readers(part)))
        except ClientClosed:
            raise
        except BookKeeperError:
            return False
        return True

    def _readers(self, part: Fragment) -> int:
        """Return how many entries of a fragment are asked for at the same time: a task for each would take more memory
        than the entries.
        """
        assert part.stored is not None
        first, last = part.stored
        between = max(last - first - 1, 0) if self._percentage > 0 else 0
        return min(between + 2, self._reads_max)

    def _sample(self, metadata: LedgerMetadata, part: Fragment) -> Iterator[int]:
        """Yield the first entry, the last one, and one at random out of each of as many equal parts between them as the
        percentage demands.
        """
        assert part.stored is not None
        first, last = part.stored
        yield first
        if last != first:
            yield last
        size, quorum = metadata.ensemble_size, metadata.write_quorum
        between = max(last - first - 1, 0)
        count = -(-between * min(max(self._percentage, 0), 100) // 100)
        for k in range(count):
            low, high = between * k // count, between * (k + 1) // count
            entry = first + 1 + (low if high - low == 1 else self._random.randrange(low, high))
            if holds(part.index, entry, size, quorum):
                yield entry

    async def _read_each(self, ledger: int, bookie: str, entries: Iterator[int]) -> None:
        for entry in entries:
            await self._read(ledger, bookie, entry)

    async def _read(self, ledger: int, bookie: str, entry: int) -> None:
        async with self._reads:
            await self._bookies.read(bookie, ledger, entry)
