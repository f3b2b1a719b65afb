"""The interface of metadata stores: what each of them can do, as one protocol for each kind of caller.

All calls block until the store has answered, raise `MetadataStoreError` (retriable) if it does not answer in time,
and may come from any thread. Listeners are first called with the present state, and run on the driver's watch thread
(`watching`). The store counts a version for each node or key; a write that names a version fails if the stored one
differs.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metadata.records.logs import Log
from bookie.metadata.records.replication import Check, Claim, Mark

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """A value as it was read, with its version; `created_ms` is the store's own creation time, in milliseconds
    since 1970.
    """

    value: T
    version: int
    created_ms: int


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """What identifies a cluster, read at one time in one session with its store."""

    instance_id: str | None
    layout: str
    """The kind of layout in ZooKeeper; empty in stores that have only one."""
    session: int


class Subscription(Protocol):
    """The result of a watch; `close` ends it."""

    def close(self) -> None: ...


class Cluster(Protocol):
    """The cluster as a whole."""

    def initialize(self, instance_id: str | None = None) -> str:
        """Create a new cluster, and return its instance id: the given one for a copy of a cluster, else a new one.

        Raises IllegalOperation if there is a cluster already.
        """
        ...

    def destroy(self) -> None:
        """Delete all metadata, also those of all ledgers. Raises IllegalOperation while a bookie is registered."""
        ...

    def is_initialized(self) -> bool: ...

    def health_checks(self) -> bool:
        """Return whether clients may quarantine bookies that fail. In ZooKeeper they may until `disableHealthCheck`
        exists.
        """
        ...

    def enable_health_checks(self, *, enabled: bool) -> None:
        """Allow or forbid health checks. It is no error if that does not change anything."""
        ...

    def instance_id(self) -> str | None:
        """Return the instance id, or None in clusters older than instance ids. Raises ClusterNotInitialized."""
        ...

    def seen(self) -> ClusterSeen:
        """Read anew what identifies the cluster, as the store's leader knows it. Two equal results mean that the same
        session saw the same cluster. Raises ClusterNotInitialized if anything is missing, and MetadataStoreError if
        the session ended meanwhile.
        """
        ...


class Registrations(Protocol):
    """A bookie's own registration. It lives as long as this driver's session with the store."""

    def register(self, bookie_id: str, info: bytes, *, read_only: bool) -> None:
        """Register the bookie in this mode and in no other; the new mode is entered before the old one is left.

        If an earlier process left a registration, wait for its end up to the session timeout, then raise
        BookieAlreadyRegistered. It is no error if the bookie is registered already.
        """
        ...

    def unregister(self, bookie_id: str) -> None:
        """Leave both modes. It is no error if the bookie is not registered."""
        ...

    def is_registered(self, bookie_id: str, *, read_only: bool) -> bool:
        """Return whether this session is registered in exactly this mode."""
        ...

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        """Call `listener`, on a thread of the driver, whenever a session ended that we have not closed."""
        ...


class Bookies(Protocol):
    """All bookies of the cluster."""

    def present(self, *, read_only: bool) -> frozenset[str]:
        """Return the bookies that are registered in this mode."""
        ...

    def known(self) -> frozenset[str]:
        """Return all bookies that have a cookie, also those that are down."""
        ...

    def info(self, bookie_id: str) -> bytes | None:
        """Return what the bookie publishes (`bookies.service_info`), or None if it is not registered."""
        ...

    def watch(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription:
        """Call a listener with the result of `present`, now and after each change."""
        ...

    def on_interruption(self, listener: Callable[[], None]) -> None:
        """Call `listener`, on a thread of the driver, whenever bookies may have lost their registrations, or have
        been unable to register, through no fault of their own: the store was restarted, stalled, or could not be
        reached. It must not block. It may be called without a reason.
        """
        ...


class Cookies(Protocol):
    """The cookie of each bookie: the text of its VERSION files."""

    def read(self, bookie_id: str) -> tuple[bytes, int] | None:
        """Return text and version, or None if there is no cookie."""
        ...

    def write(self, bookie_id: str, text: bytes, version: int | None) -> int:
        """Replace version `version` of a cookie, or create it if None; return the new version.

        Raises MetadataVersionConflict.
        """
        ...

    def remove(self, bookie_id: str, version: int | None = None) -> None:
        """Remove a cookie; `version` None means any version. Raises MetadataVersionConflict if it is absent or has
        another version.
        """
        ...


class Ledgers(Protocol):
    """The metadata of all ledgers."""

    def create(self, ledger_id: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        """Store the metadata of a new ledger. Raises LedgerExists."""
        ...

    def read(self, ledger_id: int, *, latest: bool = False) -> Versioned[LedgerMetadata]:
        """Return the metadata of a ledger. Raises NoSuchLedgerMetadata only if the store has answered so.

        The result may be a little old: a ZooKeeper server answers with what it knows. With `latest` it is never older
        than what was stored before the call.
        """
        ...

    def write(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        """Replace version `version` of a ledger's metadata. Raises MetadataVersionConflict or NoSuchLedgerMetadata."""
        ...

    def delete(self, ledger_id: int, version: int | None = None) -> None:
        """Delete a ledger's metadata; `version` None means any version.

        Raises MetadataVersionConflict or NoSuchLedgerMetadata.
        """
        ...

    def ranges(self) -> Iterator[list[int]]:
        """Yield all ledger ids in ascending order, in lists. After an error the lists are incomplete."""
        ...

    def watch(self, ledger_id: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription:
        """Watch one ledger; the listener receives None if it does not exist."""
        ...

    def new_id(self) -> int:
        """Return a ledger id that was never assigned before."""
        ...

    def last_id(self) -> int:
        """Return the highest ledger id that `new_id` may have returned, or -1 if none was assigned."""
        ...

    def leave_ids(self, last: int) -> None:
        """Never return `last` or a lower id from `new_id` again. Does nothing if that is so already. Only for stores
        that nobody else uses at the time: other processes may know the new limit after their next start only.
        """
        ...


class Logs(Protocol):
    """Named, ordered lists of ledgers. An invalid name (see `records.logs.check_name`) raises IncorrectParameter."""

    def create(self, name: str, log: Log) -> Versioned[Log]:
        """Store a new log. Raises LogExists or LogTooLarge."""
        ...

    def read(self, name: str) -> Versioned[Log]:
        """Return a log. Raises NoSuchLog only if the store has answered so."""
        ...

    def write(self, name: str, log: Log, version: int) -> Versioned[Log]:
        """Replace version `version` of a log. Raises MetadataVersionConflict, NoSuchLog or LogTooLarge."""
        ...

    def delete(self, name: str, version: int | None = None) -> None:
        """Delete a log's list, not its ledgers; `version` None means any version. Raises MetadataVersionConflict or
        NoSuchLog.
        """
        ...

    def names(self) -> Iterator[list[str]]:
        """Yield all names in ascending order, in lists."""
        ...

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        """Watch one log; the listener receives None if it does not exist."""
        ...


class Replication(Protocol):
    """Ledgers with too few replicas: auditors mark them, and workers copy them, one worker per ledger. Shared with
    Java.
    """

    def lock(self, ledger_id: int) -> AbstractContextManager[bool]:
        """Hold the lock that replication workers take; the context is False if it is held already.

        It ends with this driver's session at the latest.
        """
        ...

    def mark(self, ledger_id: int, missing: Collection[str], now_ms: int | None) -> None:
        """Record that the replicas on `missing` are lost, in addition to those recorded before.

        The mark gets another version even if all of them were recorded before, so that a worker which is copying
        does not remove it.
        """
        ...

    def marked(self, ledger_id: int) -> Mark | None: ...

    def marks(self) -> Iterator[list[Mark]]:
        """Yield all marks in lists, in no particular order."""
        ...

    def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        """Lock a marked ledger that is not locked. The lock ends with this driver's session at the latest.

        Returns None if there is none, or replication is disabled. `changed`, which must not block, is then called on
        a thread of the driver as soon as that may be different, and now and then without a reason.
        """
        ...

    def finish(self, claim: Claim) -> bool:
        """Remove mark and lock. Returns False if the ledger was marked again in the meantime, or our session no longer
        holds its lock; the mark then stays.
        """
        ...

    def release(self, claim: Claim) -> None:
        """Remove the lock, and leave the mark."""
        ...

    def holds(self, claim: Claim) -> bool:
        """Return whether this driver's session still holds the lock of `claim`."""
        ...

    def holders(self) -> dict[int, str]:
        """Return which worker is copying which ledger."""
        ...

    def enabled(self) -> bool: ...

    def enable(self, *, enabled: bool) -> None:
        """Let all workers of the cluster take ledgers, or stop them from it. It is no error if that does not change
        anything.
        """
        ...

    def lost_bookie_delay_s(self) -> int | None:
        """Return how many seconds a bookie may be away, or None if that is not set."""
        ...

    def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None:
        """Set how many seconds a bookie may be away. Writing the same value again requests an audit."""
        ...

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription:
        """Call a listener at each write of the delay, even of the same value."""
        ...

    def last_check_ms(self, check: Check) -> int | None: ...
    def set_last_check_ms(self, check: Check, at_ms: int) -> None: ...


class Election(Protocol):
    """The election of the auditor among the processes of the cluster."""

    def stand(self, bookie_id: str, listener: Callable[[bool], None]) -> Subscription:
        """Be a candidate until the subscription is closed. `listener` receives True when elected, and False when
        that ends.
        """
        ...

    def auditor(self) -> str | None:
        """Return the elected candidate, or None."""
        ...


class MetadataDriver(Protocol):
    """An open store. `start` connects and checks the layout, `stop` ends the session; both are idempotent."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def registrations(self) -> Registrations: ...
    @property
    def bookies(self) -> Bookies: ...
    @property
    def cookies(self) -> Cookies: ...
    @property
    def ledgers(self) -> Ledgers: ...
    @property
    def logs(self) -> Logs: ...
    @property
    def replication(self) -> Replication: ...
    @property
    def election(self) -> Election: ...

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def hurry(self, patience_s: float) -> None:
        """Let calls wait for the store for this long at most, as the process is about to end.

        That includes calls that wait already. Once one had no answer in that time, all fail at once.
        """
