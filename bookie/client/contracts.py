"""What the protocol of ledgers stands on: bookies that answer, a metadata store, and a choice of bookies.

The code under `ledgers` and `replication` knows only these. So it runs on sockets and a real store, or on modelled ones
under a modelled clock: time is `asyncio`'s own (`loop.time`, `asyncio.sleep`), randomness is a `random.Random` that is
handed in, and nothing there reads a clock, sleeps, or starts a thread by itself.

Everything runs on one event loop, and every call is made from it.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.availability import AvailableEntries
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.read_answers import ReadAnswers
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import BookKeeperError
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata


class AddLane(Protocol):
    """The adds of one ledger on their way to one bookie, in bulk. Ends with `close`, or when the connection is lost."""

    def send(self, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]) -> None:
        """Send records[offsets[k]:offsets[k + 1]], a `u32 length | entry as stored`, as entry entries[k], for every k.

        Never waits and keeps nothing of `records`. May be called before the connection stands; when it is lost, or was
        never made, everything unanswered fails.
        """
        ...

    @property
    def full(self) -> bool:
        """Whether more is waiting for the socket than should; `on_room` is told when it no longer is."""
        ...

    def close(self) -> None:
        """Answers to what was sent are no longer wanted."""
        ...


class LaneOwner(Protocol):
    """Whoever opened a lane. Called on the event loop, never from within `send`."""

    def answered(self, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Some answers, in the order of their arrival: 0, or the `code` of the error's class in `bookie.errors`."""
        ...

    def lost(self, error: BookKeeperError) -> None:
        """Nothing that is unanswered will be: the connection is gone, or the time of the oldest add is up. Once."""
        ...

    def on_room(self) -> None:
        """The lane is no longer full."""
        ...


class Bookies(Protocol):
    """All bookies, by id. Every call ends within the timeouts of the configuration, by its answer or by an error.

    BookieUnavailable, RequestTimeout, TooManyRequests, ClientClosed and SecurityError may come from any of them.
    """

    def adds(
        self,
        bookie: str,
        ledger: int,
        master_key: bytes,
        owner: LaneOwner,
        *,
        flags: int = 0,
        deferred_sync: bool = False,
    ) -> AddLane:
        """Open a lane. One ledger may have several to one bookie, one after the other."""
        ...

    async def add(
        self, bookie: str, ledger: int, entry: int, stored: Buffer, master_key: bytes, *, flags: int = 0
    ) -> None:
        """Store one entry, header and digest included. LedgerFenced, UnauthorizedAccess, BookieReadOnly, WriteError."""
        ...

    async def read(
        self, bookie: str, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None
    ) -> ReadAnswer:
        """One entry as stored, -1 for the last; in V2 without a LAC. NoSuchLedger, NoSuchEntry, ReadError."""
        ...

    async def read_many(self, bookie: str, ledger: int, entries: NDArray[np.int64]) -> ReadAnswers:
        """Single reads of these entries, ascending. Answers as far as they came; an error when there was none."""
        ...

    async def batch_read(
        self,
        bookie: str,
        ledger: int,
        start: int,
        max_count: int,
        max_size: int,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> StoredBatch:
        """Entries as stored from `start` on, one at least. IllegalOperation where `batches` said no."""
        ...

    def batches(self, bookie: str) -> bool:
        """Whether a batch read can be tried there: by protocol, by what the bookie advertises, by what it answered."""
        ...

    async def wait_for_lac(self, bookie: str, ledger: int, previous_lac: int, timeout_ms: int) -> ReadAnswer:
        """Wait at the bookie until its LAC has passed; the entry behind comes along. On V2: a plain read of the LAC."""
        ...

    async def read_lac(self, bookie: str, ledger: int) -> LacAnswer: ...
    async def write_lac(self, bookie: str, ledger: int, lac: int, packet: bytes, master_key: bytes) -> None: ...
    async def force(self, bookie: str, ledger: int) -> None: ...
    async def list_entries(self, bookie: str, ledger: int) -> AvailableEntries: ...
    async def bookie_info(self, bookie: str) -> BookieInfo: ...

    async def write_close(self, bookie: str, ledger: int, master_key: bytes) -> None:
        """Nothing happens, at once, where the bookie does not advertise it."""
        ...

    def pending(self, bookie: str) -> int:
        """Requests that wait for an answer."""
        ...

    async def close(self) -> None: ...


class Metadata(Protocol):
    """The metadata store, without blocking. Errors as in `bookie.metadata.driver`."""

    async def new_id(self) -> int: ...
    async def create(self, ledger: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]: ...
    async def read(self, ledger: int) -> Versioned[LedgerMetadata]: ...
    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]: ...
    async def delete(self, ledger: int, version: int | None = None) -> None: ...
    def ledgers(self) -> AsyncIterator[list[int]]: ...
    def watch(self, ledger: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription: ...
    async def bookies(self, *, read_only: bool) -> frozenset[str]: ...
    def watch_bookies(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription: ...
    async def close(self) -> None: ...


class Adherence(IntEnum):
    """How well an ensemble keeps the placement policy."""

    FAIL = 1
    MEETS_SOFT = 3
    MEETS_STRICT = 5


class Placement(Protocol):
    """Which bookies a ledger goes to, and in which order its replicas are read. Plain computation, no waiting."""

    def bookies_changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None: ...

    def weights_changed(self, free_bytes: Mapping[str, int]) -> None:
        """What is known of free space; bookies that are not named have none known."""
        ...

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """NotEnoughBookies."""
        ...

    def replacement(
        self,
        write_quorum: int,
        ack_quorum: int,
        ensemble: Sequence[str],
        index: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> str:
        """A bookie for ensemble[index], in none of its places yet. NotEnoughBookies."""
        ...

    def read_order(
        self, ensemble: Sequence[str], write_set: Sequence[int], pending: Callable[[str], int]
    ) -> Sequence[int]:
        """The write set, best replica first."""
        ...

    def spans_fault_domains(self, acked: Collection[str], write_quorum: int, ack_quorum: int) -> bool:
        """Whether those who stored an entry are far enough apart; asked only where the configuration demands it."""
        ...

    def adheres(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> Adherence:
        """How well an ensemble of old keeps the policy."""
        ...

    def slow(self, bookie: str) -> None:
        """It answered late: it is read later for a while."""
        ...

    def failed(self, bookie: str, entry: int) -> None:
        """A long poll for this entry ended there with "no such entry": it is read later for a while."""
        ...
