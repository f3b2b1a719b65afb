"""What a metadata store can do, cut by who needs it, and the one door that opens it.

All calls block until the store answered, raise `MetadataStoreError` (retriable) when it does not in time, and may come
from any thread. Listeners are told the present state first and run on the driver's watch thread (`watching`).
A version is what the store counts per node or key; a write that names one fails unless it is still the stored one.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bookie.metadata.ledger_metadata import LedgerMetadata
from bookie.metadata.uri import parse_uri

T = TypeVar("T")
SESSION_TIMEOUT_MS = 10_000


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

    def is_initialized(self) -> bool: ...

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
        """What the bookie publishes (`service_info`); None if it is not registered."""
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


class Replication(Protocol):
    """Who copies a ledger from bookie to bookie: one at a time."""

    def lock(self, ledger_id: int) -> AbstractContextManager[bool]:
        """Hold the lock that replicators take, or False if somebody has it. It ends with this driver's session."""
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
    def replication(self) -> Replication: ...

    def start(self) -> None: ...
    def stop(self) -> None: ...


def open_driver(uri: str, *, session_timeout_ms: int = SESSION_TIMEOUT_MS, secure: bool = False) -> MetadataDriver:
    """The driver that `uri` asks for, not yet started. `secure` makes new ZooKeeper nodes the creator's alone.

    Raises ConfigurationError. Only the modules of the chosen store are imported.
    """
    where = parse_uri(uri)
    session_timeout_s = session_timeout_ms / 1000
    if where.scheme == "zk":
        from bookie.metadata.zookeeper import ZooKeeperDriver  # noqa: PLC0415

        return ZooKeeperDriver(where, session_timeout_s=session_timeout_s, secure=secure)
    from bookie.metadata.key_value_driver import KeyValueDriver  # noqa: PLC0415

    if where.scheme == "lmdb":
        from bookie.metadata.embedded import EmbeddedStore  # noqa: PLC0415

        return KeyValueDriver(EmbeddedStore(where.path), session_timeout_s=session_timeout_s)
    from bookie.metadata.remote import RemoteStore  # noqa: PLC0415

    store = RemoteStore(where.hosts[0], session_timeout_s=session_timeout_s)
    return KeyValueDriver(store, session_timeout_s=session_timeout_s)
