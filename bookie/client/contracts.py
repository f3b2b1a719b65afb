"""The interfaces that the ledger protocol needs: requests to bookies, a metadata store, and a placement policy.

The code in `ledgers` and `replication` uses nothing else. It therefore runs on sockets and a real metadata store as
well as in a simulation with a simulated clock: it takes time from `asyncio` only (`loop.time`, `asyncio.sleep`) and
randomness from the `random.Random` that it is given, and it never starts a thread.

Everything runs on one event loop, and all calls must be made from it.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
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


class AddSender(Protocol):
    """A channel for the adds of one ledger to one bookie, in bulk. It ends with `close`, or when the connection is
    lost.
    """

    def send(self, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]) -> None:
        """Send records[offsets[k]:offsets[k + 1]], which is `u32 length | entry as stored`, as entry entries[k], for
        every k.

        The call never waits, and it keeps no reference to `records`. It may be made before the connection is
        established. When the connection fails or cannot be established, all unanswered adds fail.
        """
        ...

    @property
    def full(self) -> bool:
        """Whether more output is queued for the socket than its limit allows; `SenderOwner.on_room` tells when not."""
        ...

    def close(self) -> None:
        """Discard the responses to all adds that were sent."""
        ...


class SenderOwner(Protocol):
    """The receiver of a sender's responses. Its methods are called on the event loop, never from within `send`."""

    def answered(self, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Handle some responses, in the order of their arrival: code 0, or the `code` of the error's class in
        `bookie.errors`.
        """
        ...

    def lost(self, error: BookKeeperError) -> None:
        """Handle the end of the sender: the connection was lost, or the oldest add timed out. Called at most once.

        No add that is unanswered at this time will be answered.
        """
        ...

    def on_room(self) -> None:
        """Handle that the sender is no longer full."""
        ...


class Fallback(StrEnum):
    """Why entries that were requested in a batch were read one by one."""

    DISABLED = "disabled"
    """The client is configured with `batchReadEnabled=false`."""
    STRIPED = "striped"
    """The ensemble is larger than the write quorum, so no bookie has consecutive entries."""
    UNSUPPORTED = "unsupported"
    """No bookie of the ensemble supports batch reads."""
    FAILED = "failed"
    """Those that support them failed, and others may have the entries."""


class Bookies(Protocol):
    """Requests to all bookies, by bookie id. Every call returns or raises within the timeouts of the configuration.

    Any call may raise BookieUnavailable, RequestTimeout, TooManyRequests, ClientClosed or SecurityError.
    """

    def adds(
        self,
        bookie: str,
        ledger: int,
        master_key: bytes,
        owner: SenderOwner,
        *,
        flags: int = 0,
        deferred_sync: bool = False,
    ) -> AddSender:
        """Open a sender. A ledger may open several senders to one bookie, one after the other."""
        ...

    async def add(
        self, bookie: str, ledger: int, entry: int, stored: Buffer, master_key: bytes, *, flags: int = 0
    ) -> None:
        """Store one entry, given with header and digest.

        Raises LedgerFenced, UnauthorizedAccess, BookieReadOnly or WriteError.
        """
        ...

    async def read(
        self, bookie: str, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None
    ) -> ReadAnswer:
        """Read one entry as stored, or the last entry if `entry` is -1. A V2 response has no LAC.

        Raises NoSuchLedger, NoSuchEntry or ReadError.
        """
        ...

    async def read_many(self, bookie: str, ledger: int, entries: NDArray[np.int64]) -> ReadAnswers:
        """Read these entries, given in ascending order, with single reads.

        Returns all responses that arrived, or raises the error if none arrived.
        """
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
        """Read one or more consecutive entries as stored, beginning with `start`.

        Raises IllegalOperation where `batches` returns False.
        """
        ...

    def batches(self, bookie: str) -> bool:
        """Return whether a batch read may be tried at this bookie.

        That depends on the protocol, on what the bookie advertises, and on its earlier responses.
        """
        ...

    def fell_back(self, reason: Fallback) -> None:
        """Note that entries that were requested in a batch are read one by one."""
        ...

    async def wait_for_lac(self, bookie: str, ledger: int, previous_lac: int, timeout_ms: int) -> ReadAnswer:
        """Wait at the bookie until its LAC exceeds `previous_lac`; the response brings the next entry along if it is
        there.

        With V2 it is a plain read of the LAC, which does not wait.
        """
        ...

    async def read_lac(self, bookie: str, ledger: int) -> LacAnswer: ...
    async def write_lac(self, bookie: str, ledger: int, lac: int, packet: bytes, master_key: bytes) -> None: ...
    async def force(self, bookie: str, ledger: int) -> None: ...
    async def list_entries(self, bookie: str, ledger: int) -> AvailableEntries: ...
    async def bookie_info(self, bookie: str) -> BookieInfo: ...

    def announce_end(self, ledger: int, master_key: bytes, bookies: Collection[str]) -> None:
        """Announce that these bookies get no more entries of the ledger, without waiting. It is a hint, which is sent
        only to bookies that listen for it.
        """
        ...

    def pending(self, bookie: str) -> int:
        """Return the number of requests to this bookie that are not answered yet."""
        ...

    async def close(self) -> None: ...


class Metadata(Protocol):
    """The metadata store, without blocking. It raises the errors that `bookie.metadata.driver` documents."""

    async def new_id(self) -> int: ...
    async def create(self, ledger: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]: ...
    async def read(self, ledger: int, *, latest: bool = False) -> Versioned[LedgerMetadata]: ...
    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]: ...
    async def delete(self, ledger: int, version: int | None = None) -> None: ...
    def ledgers(self) -> AsyncIterator[list[int]]: ...
    def watch(self, ledger: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription: ...
    async def bookies(self, *, read_only: bool) -> frozenset[str]: ...
    def watch_bookies(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription: ...
    async def close(self) -> None: ...


class Adherence(IntEnum):
    """How well an ensemble satisfies the placement policy."""

    FAIL = 1
    MEETS_SOFT = 3
    MEETS_STRICT = 5


@dataclass(slots=True)
class Drawn:
    """How a bookie was drawn by weight so far.

    Attributes:
        count: How often.
        capped: How often with a weight below its own, since no weight among the candidates counts more than their cap.
        weight: The weight, in bytes, with which it was drawn last, among the candidates of that time.
    """

    count: int = 0
    capped: int = 0
    weight: float = 0.0


class Placement(Protocol):
    """A placement policy: it chooses the bookies of a ledger and the order in which replicas are read. It never
    waits.
    """

    def bookies_changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None: ...

    def info_changed(self, known: Mapping[str, BookieInfo]) -> None:
        """Take over what bookies told: space, load, and whether they are read-only. Bookies that are not named told
        nothing.
        """
        ...

    @property
    def drawn(self) -> Mapping[str, Drawn]:
        """How registered bookies were drawn by weight; empty if the policy does not weigh."""
        return {}

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """Choose an ensemble for a new ledger. Raises NotEnoughBookies."""
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
        """Choose a bookie for ensemble[index] that is not in the ensemble yet. Raises NotEnoughBookies."""
        ...

    def neighbours(self, bookie: str) -> Collection[str]:
        """Return the writable bookies that are preferred as replacements of this one, and are likely lost with it."""
        ...

    def read_order(
        self, ensemble: Sequence[str], write_set: Sequence[int], pending: Callable[[str], int]
    ) -> Sequence[int]:
        """Return the write set in the order in which its replicas should be read."""
        ...

    def spans_fault_domains(self, acked: Collection[str], write_quorum: int, ack_quorum: int) -> bool:
        """Return whether the bookies that stored an entry span enough fault domains for it to be acknowledged.

        It is called only if the configuration demands this.
        """
        ...

    def adheres(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> Adherence:
        """Return how well an existing ensemble satisfies the policy."""
        ...

    def slow(self, bookie: str) -> None:
        """Note that the bookie answered late, so that it is read later for a while."""
        ...

    def failed(self, bookie: str, entry: int) -> None:
        """Note that a long poll for this entry ended with "no such entry", so that the bookie is read later for a
        while.
        """
        ...
