"""The interface of the bookie for its planes (admin service, HTTP port): what they may see and do.

A plane is found through the entry-point group `bookie.planes`, whose entries are callables `(Control) -> Plane`, so
that this package never imports planes. A service, found through `bookie.services`, starts once the bookie is
registered and stops before the registration ends. A startup check, found through `bookie.startup_checks`, runs
before the storage opens. Every method of Control may be called from any thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bookie.metadata.driver import Ledgers
from bookie.metrics.family import Family
from bookie.server.configuration.settings import AccessSettings, AdminSettings, HttpSettings
from bookie.server.disks.state import DiskState
from bookie.server.storage.stored import Stored
from bookie.storage.tools.files import DiskFile, MarkFound

__all__ = [
    "BookieDirectories",
    "Control",
    "discover",
    "discover_services",
    "discover_startup_checks",
    "GROUP",
    "Plane",
    "PlaneFactory",
    "Service",
    "ServiceFactory",
    "SERVICES",
    "STARTUP_CHECKS",
    "StartupCheck",
]

FLUSH_WAIT_S = 300.0
"""How long a flush on request is waited for, in seconds."""
MODE_WAIT_S = 10.0
"""How long a change of the operator's mode waits for the registration to follow, in seconds."""
GROUP = "bookie.planes"
STARTUP_CHECKS = "bookie.startup_checks"
SERVICES = "bookie.services"


class BookieDirectories(NamedTuple):
    """A bookie's directories as configured. Its files are in the subdirectory `current` of each."""

    journals: tuple[Path, ...]
    ledgers: tuple[Path, ...]
    indexes: tuple[Path, ...]


class Control(Protocol):
    """What a running bookie offers to its planes."""

    @property
    def bookie_id(self) -> str: ...

    @property
    def state(self) -> str:
        """`starting`, `writable`, `read-only`, `stopping` or `stopped`."""

    @property
    def awaits(self) -> str:
        """What a start waits for, as the end of a sentence; empty if it waits for nothing."""

    @property
    def admin_host(self) -> str:
        """The address of the admin plane."""

    @property
    def admin_port(self) -> int:
        """The port of the admin plane; 0 lets the system choose."""

    @property
    def admin(self) -> AdminSettings:
        """The limits of the admin plane's connections."""

    @property
    def access(self) -> AccessSettings:
        """The access control of the ports of planes (`bookie_admin.access`)."""

    @property
    def own_token(self) -> Path | None:
        """The file with the token for processes of the bookie's own user; None before the start, or without planes."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which others know this bookie: its id, and its advertised host."""

    @property
    def metadata(self) -> Any:
        """The metadata driver of this bookie; a plane checks that it can serve its kind."""

    @property
    def garbage(self) -> Any:
        """The garbage collection of this bookie, a `bookie.storage.garbage.collection.Garbage`; None before it runs."""

    @property
    def scrub(self) -> Any:
        """The scrub of this bookie, a `bookie.storage.scrub.scrubbing.Scrub`; None before it runs."""

    @property
    def stored(self) -> Stored:
        """The entry logs, ledgers and entries of this bookie."""

    @property
    def recovery(self) -> Mapping[str, Any] | None:
        """The keys of auto-recovery, or None if it is disabled in this process."""

    @property
    def client_keys(self) -> Mapping[str, Any]:
        """The keys for this bookie as a client of others: those of auto-recovery, whether that runs or not."""

    @property
    def http(self) -> HttpSettings:
        """The settings of the HTTP port."""

    @property
    def read_only(self) -> bool:
        """Whether the bookie refuses writes, whatever its state."""

    @property
    def read_only_reasons(self) -> frozenset[str]:
        """The reasons for being read-only: `operator`, `disk`, `config`."""

    @property
    def directories(self) -> BookieDirectories:
        """The directories of the bookie, as configured."""

    def configuration(self) -> Mapping[str, str]:
        """Return every key with its effective text; secrets are masked."""

    def disk_state(self) -> DiskState:
        """Return the state of the directories and their disks, as of the last check."""

    def last_marks(self) -> Sequence[MarkFound]:
        """Return the mark of each ledger directory for each journal. Reads files."""

    def files(self) -> Iterable[DiskFile]:
        """Return every file of this bookie. Walks its directories."""

    def stats(self) -> Mapping[str, int | float]:
        """Return counters and gauges of storage and data port."""

    def metrics(self) -> Iterable[Family]:
        """Return all metrics as families under Apache BookKeeper's names, which `bookie.metrics.text` formats. No
        lock is taken, and no data thread waits.
        """

    def note_sanity(self, *, passed: bool) -> None:
        """Record the result of a test through the bookie's own data port."""

    def checkpoint(self, within_s: float = FLUSH_WAIT_S) -> None:
        """Flush the write caches now; return when the mark has moved. Raises IllegalOperation if that
        failed, and RequestTimeout if it has not ended within `within_s` seconds; it goes on.
        """

    def set_read_only(self, *, read_only: bool, within_s: float = MODE_WAIT_S) -> None:
        """Set or clear the operator's read-only mode, and wait until the registration has followed, for `within_s`
        seconds at most; a full disk keeps the bookie read-only nevertheless.
        """


class Plane(Protocol):
    """A server that lives as long as the bookie."""

    def check(self) -> None:
        """Read what a start will need. Raises ConfigurationError."""

    def listen(self) -> None:
        """Begin to answer probes if this plane has any. It is called before the start reaches the metadata store or
        a disk, so nothing else is answered before `start`. Raises StartRefused.
        """

    def start(self) -> tuple[str, int]:
        """Begin to serve, and return the bound address. Raises StartRefused."""

    def stop(self, grace_s: float) -> None:
        """End calls within `grace_s` seconds and close. Idempotent."""

    def stats(self) -> Mapping[str, int | float]:
        """Return counters and gauges. Any thread, even before `start` and after `stop`."""


class PlaneFactory(Protocol):
    """The callable that an entry point of planes names."""

    def __call__(self, control: Control) -> Plane | None:
        """Return a plane, or None if it has nothing to serve for this bookie."""


class Service(Protocol):
    """A background task that lives as long as the bookie is registered."""

    def start(self) -> None:
        """Start without waiting. Raises StartRefused."""

    def stop(self) -> None:
        """Stop. Idempotent."""

    def stats(self) -> Mapping[str, int | float]:
        """Return counters and gauges."""

    def families(self) -> Iterable[Family]:
        """Return metrics that have labels, for the bookie's page. Any thread."""


class ServiceFactory(Protocol):
    """The callable that an entry point of services names."""

    def __call__(self, control: Control) -> Service | None:
        """Return a service, or None if it is not wanted. Raises StartRefused."""


class StartupCheck(Protocol):
    """A check that runs before a bookie starts on directories that may lack acknowledged entries."""

    def __call__(self, bookie_id: str, ledgers: Ledgers, indexes: Sequence[Path]) -> int:
        """Mark what cannot be trusted in these indexes, one for each ledger directory; return the number of ledgers."""


def discover() -> Iterator[tuple[str, PlaneFactory]]:
    """Yield the name and factory of each installed plane, sorted by name."""
    return _entries(GROUP)


def discover_services() -> Iterator[tuple[str, ServiceFactory]]:
    """Yield the name and factory of each installed service, sorted by name."""
    return _entries(SERVICES)


def discover_startup_checks() -> Iterator[tuple[str, StartupCheck]]:
    """Yield the name and factory of each installed startup check, sorted by name."""
    return _entries(STARTUP_CHECKS)


def _entries(group: str) -> Iterator[tuple[str, Any]]:
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        yield entry.name, entry.load()
