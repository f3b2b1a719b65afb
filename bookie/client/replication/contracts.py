"""The interfaces that auto-recovery needs besides `bookie.client.contracts`. Event loop, like those."""

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

__all__ = ["Cluster", "Environment", "Ledgers", "Queue"]


class Queue(Protocol):
    """The marks and locks of ledgers with too few replicas, shared by the cluster; see `metadata.driver.Replication`.

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
    """Opens ledgers as an administrator, with the digest type and the password in their metadata."""

    async def last_confirmed(self, ledger: int, metadata: LedgerMetadata) -> int:
        """Return the LAC of a ledger that is not closed, without disturbing its writer."""
        ...

    async def recover(self, ledger: int) -> None:
        """Fence a ledger and close it. Raises LedgerRecoveryError or NoSuchLedgerMetadata."""
        ...


@dataclass(slots=True)
class Cluster:
    """The bookies that are registered now. It is kept up to date by the code that watches them."""

    writable: frozenset[str] = frozenset()
    read_only: frozenset[str] = frozenset()
    free_bytes: Mapping[str, int] = field(default_factory=dict)
    """The known free space by bookie; empty if no pause depends on it."""
    listeners: list[Callable[[], None]] = field(default_factory=list)
    """Called after each change of the bookies, and after each interruption."""
    interruptions: int = 0
    """How often registrations may have been lost or unseen; see `metadata.driver.Bookies.on_interruption`."""

    def changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        """Take over the registered bookies, and call the listeners."""
        self.writable, self.read_only = writable, read_only
        for listener in self.listeners:
            listener()

    def interrupted(self) -> None:
        """Note an interruption, and call the listeners."""
        self.interruptions += 1
        for listener in self.listeners:
            listener()

    def room(self, free_bytes: Mapping[str, int]) -> None:
        """Take over the known free space."""
        self.free_bytes = free_bytes

    @property
    def alive(self) -> frozenset[str]:
        """All registered bookies."""
        return self.writable | self.read_only


@dataclass(frozen=True, slots=True)
class Environment:
    """What all parts of auto-recovery share. `name` is the bookie's id, under which it stands for election and
    takes locks.
    """

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
