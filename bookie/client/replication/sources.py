"""Read entries that are to be copied: each from a replica with a valid digest, in batches where possible.

Event loop. Everything that is returned is verified: a damaged or false replica is skipped in favour of the next one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bookie._fast.wire import payloads, record
from bookie.client.entries.batch import LENGTH_PREFIX
from bookie.client.ledgers.opening import digest_of
from bookie.client.replication.contracts import Environment
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    DigestMismatch,
    IllegalOperation,
    NoSuchEntry,
    ReplicationError,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Sources", "Verified"]

BATCH_BYTES = 1 << 20
HEADER_BYTES = 32
"""The header that each entry begins with: ledger, entry, LAC and length."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Entries from `first` on with valid digests, as stored: records of `u32 length | entry`."""

    first: int
    records: memoryview
    offsets: NDArray[np.int64]

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The ledger's payload bytes up to and including each entry, according to its header."""
        return payloads.heads([(self.records, self.offsets)], LENGTH_PREFIX + HEADER_BYTES)[2]


class Sources:
    """The replicas of one ledger."""

    def __init__(self, environment: Environment, ledger: int, metadata: LedgerMetadata) -> None:
        self._bookies = environment.bookies
        self._placement = environment.placement
        self._cluster = environment.cluster
        self._ledger = ledger
        self._metadata = metadata
        self._digest = digest_of(metadata, environment.config)
        self._unbatched: set[str] = set()
        batches = environment.config.batch_read_enabled and environment.config.recovery_batch_reads
        self._whole = batches and metadata.ensemble_size == metadata.write_quorum

    def batched(self, ensemble: Sequence[str], doubted: frozenset[str]) -> bool:
        """Return whether some replica that is not doubted may support batch reads."""
        good = (bookie for bookie in ensemble if bookie in self._cluster.alive and bookie not in doubted)
        return self._whole and any(self._bookies.batches(bookie) for bookie in good)

    async def read(
        self,
        first: int,
        count_max: int,
        ensemble: Sequence[str],
        doubted: frozenset[str],
        barred: Collection[str] = (),
    ) -> Verified:
        """Read entries from `first` on, one or more, from the replicas, those of `doubted` last and those of `barred`
        not at all.

        Raises ReplicationError with what each replica answered.
        """
        said: list[str] = []
        for bookie in self._order(first, ensemble, doubted):
            if bookie in barred:
                said.append(f"{bookie} differs from the others")
                continue
            if bookie not in self._cluster.alive:
                said.append(f"{bookie} is not registered")
                continue
            try:
                return await self.ask(bookie, first, count_max)
            except ClientClosed:
                raise
            except BookKeeperError as error:
                said.append(f"{bookie}: {error}")
        raise ReplicationError(f"ledger {self._ledger}, entry {first}: no replica has a valid copy ({'; '.join(said)})")

    async def ask(self, bookie: str, first: int, count_max: int) -> Verified:
        """Read entries from `first` on, one or more, from this bookie. Raises DigestMismatch, and errors of the
        bookie.
        """
        if self._whole and count_max > 1 and bookie not in self._unbatched and self._bookies.batches(bookie):
            try:
                batch = await self._bookies.batch_read(bookie, self._ledger, first, count_max, BATCH_BYTES)
            except IllegalOperation:
                self._unbatched.add(bookie)
            else:
                return self._verified(bookie, first, batch.buffer, batch.offsets[: count_max + 1])
        answer = await self._bookies.read(bookie, self._ledger, first)
        if answer.stored is None:
            raise NoSuchEntry(f"ledger {self._ledger}, entry {first}: {bookie} does not hold it")
        records = memoryview(len(answer.stored).to_bytes(LENGTH_PREFIX, "big") + answer.stored)
        return self._verified(bookie, first, records, record.offsets(records))

    def _order(self, entry: int, ensemble: Sequence[str], doubted: frozenset[str]) -> list[str]:
        size, quorum = self._metadata.ensemble_size, self._metadata.write_quorum
        write_set = [(entry + k) % size for k in range(quorum)]
        order = self._placement.read_order(ensemble, write_set, self._bookies.pending)
        return sorted((ensemble[index] for index in order), key=lambda bookie: bookie in doubted)

    def _verified(self, bookie: str, first: int, records: memoryview, offsets: NDArray[np.int64]) -> Verified:
        run = records[: int(offsets[-1])]
        good = record.verify(self._digest.digester, run, offsets, self._ledger, first)
        if not good:
            raise DigestMismatch(f"ledger {self._ledger}, entry {first}: no valid digest at {bookie}")
        return Verified(first, run, offsets[: good + 1])
