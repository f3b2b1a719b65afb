"""What auto-recovery needs besides bookies, metadata and placement. Event loop, as all of `bookie.client.contracts`."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies, Metadata, Placement
from bookie.client.replication.counters import Counters
from bookie.client.replication.settings import RecoverySettings
from bookie.metadata.driver import Subscription
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metadata.records.replication import Check, Claim

__all__ = ["Cluster", "Ledgers", "Queue", "World"]


class Queue(Protocol):
    """Marks and locks of ledgers that lack replicas, shared by the cluster: `metadata.driver.Replication`.

    Listeners are called on the event loop.
    """

    async def mark(self, ledger: int, missing: Collection[str], now_ms: int | None) -> None: ...
    async def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None: ...
    async def finish(self, claim: Claim) -> bool: ...
    async def release(self, claim: Claim) -> None: ...
    async def holds(self, claim: Claim) -> bool: ...
    async def enabled(self) -> bool: ...
    def lock(self, ledger: int) -> AbstractAsyncContextManager[bool]: ...
    async def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None: ...
    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription: ...
    async def last_check_ms(self, check: Check) -> int | None: ...
    async def set_last_check_ms(self, check: Check, at_ms: int) -> None: ...
    def stand(self, bookie: str, listener: Callable[[bool], None]) -> Subscription: ...


class Ledgers(Protocol):
    """Opening a ledger as an administrator does, by the digest and the password in its metadata."""

    async def last_confirmed(self, ledger: int, metadata: LedgerMetadata) -> int:
        """The LAC of a ledger that is not closed, without disturbing its writer."""
        ...

    async def recover(self, ledger: int) -> None:
        """Fence the ledger and close it. LedgerRecoveryError, NoSuchLedgerMetadata."""
        ...


@dataclass(slots=True)
class Cluster:
    """Which bookies are registered now, in either mode; kept up to date by whoever watches them."""

    writable: frozenset[str] = frozenset()
    read_only: frozenset[str] = frozenset()
    free_bytes: Mapping[str, int] = field(default_factory=dict)
    """What is known of free space; nothing where no pause depends on it."""
    listeners: list[Callable[[], None]] = field(default_factory=list)
    """Told after each change of the members."""

    def changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        """These are the members now."""
        self.writable, self.read_only = writable, read_only
        for listener in self.listeners:
            listener()

    def room(self, free_bytes: Mapping[str, int]) -> None:
        """This is known of free space now."""
        self.free_bytes = free_bytes

    @property
    def alive(self) -> frozenset[str]:
        """Whoever may answer."""
        return self.writable | self.read_only


@dataclass(frozen=True, slots=True)
class World:
    """All that the parts of auto-recovery share. `name` is the bookie's id, under which it votes and locks."""

    name: str
    queue: Queue
    metadata: Metadata
    bookies: Bookies
    ledgers: Ledgers
    placement: Placement
    cluster: Cluster
    config: ClientConfig
    settings: RecoverySettings
    random: Random
    epoch_ms: Callable[[], int]
    counters: Counters = field(default_factory=Counters)
