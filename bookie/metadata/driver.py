"""The contract of metadata stores: what each can do, as one protocol for each kind of caller.

All calls block until the store answered, raise `MetadataStoreError` (retriable) when it does not in time, and may come
from any thread. Listeners are told the present state first and run on the driver's watch thread (`watching`).
A version is what the store counts per node or key; a write that names one fails unless it is still the stored one.
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
    """A value as it was read; `created_ms` is the store's own creation time."""

    value: T
    version: int
    created_ms: int


class Subscription(Protocol):
    """What a watch returns."""

    def close(self) -> None: ...


class Cluster(Protocol):
    """The cluster as a whole."""

    def initialize(self) -> str:
        """Create a new cluster; its instance id. Raises IllegalOperation if there is one already."""
        ...

    def destroy(self) -> None:
        """Delete all metadata, every ledger's too. IllegalOperation while a bookie is registered."""
        ...

    def is_initialized(self) -> bool: ...

    def health_checks(self) -> bool:
        """Whether clients may quarantine bookies that fail; in ZooKeeper until somebody makes `disableHealthCheck`."""
        ...

    def enable_health_checks(self, *, enabled: bool) -> None:
        """Twice is no error."""
        ...

    def instance_id(self) -> str | None:
        """None in clusters older than instance ids. Raises ClusterNotInitialized."""
        ...


class Registrations(Protocol):
    """A bookie's own registration. It lives as long as this driver's session with the store."""

    def register(self, bookie_id: str, info: bytes, *, read_only: bool) -> None:
        """Be registered in this mode and in no other; the new mode is entered before the old one is left.

        A registration left by an earlier process is waited for, up to the session timeout; then
        BookieAlreadyRegistered. Doing it twice changes nothing.
        """
        ...

    def unregister(self, bookie_id: str) -> None:
        """Leave both modes; no error if not registered."""
        ...

    def is_registered(self, bookie_id: str, *, read_only: bool) -> bool:
        """Whether this very session is registered in exactly this mode."""
        ...

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        """`listener` runs, on a thread of the driver, whenever a session ended that was not closed by us."""
        ...


class Bookies(Protocol):
    """All bookies of the cluster."""

    def present(self, *, read_only: bool) -> frozenset[str]:
        """The bookies that are registered in this mode."""
        ...

    def known(self) -> frozenset[str]:
        """All bookies that have a cookie, dead ones included."""
        ...

    def info(self, bookie_id: str) -> bytes | None:
        """What the bookie publishes (`bookies.service_info`); None if it is not registered."""
        ...

    def watch(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription:
        """Follow `present`."""
        ...


class Cookies(Protocol):
    """The cookie of each bookie: the text of its VERSION files."""

    def read(self, bookie_id: str) -> tuple[bytes, int] | None:
        """Text and version."""
        ...

    def write(self, bookie_id: str, text: bytes, version: int | None) -> int:
        """Replace `version`, or create if None; the new version. Raises MetadataVersionConflict."""
        ...

    def remove(self, bookie_id: str, version: int | None = None) -> None:
        """Raises MetadataVersionConflict if there is none or another version; None means any version."""
        ...


class Ledgers(Protocol):
    """The metadata of all ledgers."""

    def create(self, ledger_id: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        """Raises LedgerExists."""
        ...

    def read(self, ledger_id: int) -> Versioned[LedgerMetadata]:
        """Raises NoSuchLedgerMetadata only if the store said so."""
        ...

    def write(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        """Replace `version`. Raises MetadataVersionConflict, NoSuchLedgerMetadata."""
        ...

    def delete(self, ledger_id: int, version: int | None = None) -> None:
        """None means any version. Raises MetadataVersionConflict, NoSuchLedgerMetadata."""
        ...

    def ranges(self) -> Iterator[list[int]]:
        """All ledger ids, ascending, in pieces. An error ends it: what was seen so far is not all there is."""
        ...

    def watch(self, ledger_id: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription:
        """Follow one ledger; None: it does not exist."""
        ...

    def new_id(self) -> int:
        """An id that nobody was given before."""
        ...


class Logs(Protocol):
    """Named, ordered lists of ledgers. A name that `records.logs.check_name` refuses raises IncorrectParameter."""

    def create(self, name: str, log: Log) -> Versioned[Log]:
        """Raises LogExists, LogTooLarge."""
        ...

    def read(self, name: str) -> Versioned[Log]:
        """Raises NoSuchLog only if the store said so."""
        ...

    def write(self, name: str, log: Log, version: int) -> Versioned[Log]:
        """Replace `version`. Raises MetadataVersionConflict, NoSuchLog, LogTooLarge."""
        ...

    def delete(self, name: str, version: int | None = None) -> None:
        """The list, not the ledgers. None means any version. Raises MetadataVersionConflict, NoSuchLog."""
        ...

    def names(self) -> Iterator[list[str]]:
        """All names, ascending, in pieces."""
        ...

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        """Follow one log; None: it does not exist."""
        ...


class Replication(Protocol):
    """Ledgers that lack replicas: who marks them, and who copies them, one at a time. Shared with Java's."""

    def lock(self, ledger_id: int) -> AbstractContextManager[bool]:
        """Hold the lock that replicators take, or False if somebody has it. It ends with this driver's session."""
        ...

    def mark(self, ledger_id: int, missing: Collection[str], now_ms: int | None) -> None:
        """Say that replicas on `missing` are lost; bookies that were named before stay named."""
        ...

    def marked(self, ledger_id: int) -> Mark | None: ...

    def marks(self) -> Iterator[list[Mark]]:
        """All of them, in pieces and in no order."""
        ...

    def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        """Lock some marked ledger that nobody has locked. It ends with this driver's session.

        None: there is nothing to do, or replication is disabled. `changed`, which must not block, is then called on a
        thread of the driver as soon as that may be different, and now and then without a reason.
        """
        ...

    def finish(self, claim: Claim) -> bool:
        """Take the mark away and unlock. False: it was marked anew meanwhile, and stays."""
        ...

    def release(self, claim: Claim) -> None:
        """Unlock, and leave the mark."""
        ...

    def holds(self, claim: Claim) -> bool:
        """Whether the lock of `claim` is still that of this driver's session."""
        ...

    def holders(self) -> dict[int, str]:
        """Who copies which ledger now."""
        ...

    def enabled(self) -> bool: ...

    def enable(self, *, enabled: bool) -> None:
        """Let all replicators of the cluster go on, or stop them from taking ledgers. Twice is no error."""
        ...

    def lost_bookie_delay_s(self) -> int | None:
        """How long a bookie may be away; None: nobody said."""
        ...

    def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None:
        """The same value again asks for an audit."""
        ...

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription:
        """Told at each write, of the same value too."""
        ...

    def last_check_ms(self, check: Check) -> int | None: ...
    def set_last_check_ms(self, check: Check, at_ms: int) -> None: ...


class Election(Protocol):
    """Which process of the cluster is the auditor."""

    def stand(self, bookie_id: str, listener: Callable[[bool], None]) -> Subscription:
        """Be a candidate until closed. `listener` is told True once elected, and False when that ended."""
        ...

    def auditor(self) -> str | None:
        """Who is elected now."""
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
