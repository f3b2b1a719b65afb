"""The narrow door between the bookie and its planes (admin service, later consoles): what they may see and do.

A plane is found through the entry-point group `bookie.planes`, whose entries are callables `(Control) -> Plane`; so
this package never imports them. A service, found through `bookie.services`, begins once the bookie is registered and
ends before it goes. A startup check, found through `bookie.startup_checks`, runs before the storage opens.
Every method of Control may be called from any thread.
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

GROUP = "bookie.planes"
STARTUP_CHECKS = "bookie.startup_checks"
SERVICES = "bookie.services"


class BookieDirectories(NamedTuple):
    """A bookie's directories as configured; it works in `current` below each."""

    journals: tuple[Path, ...]
    ledgers: tuple[Path, ...]
    indexes: tuple[Path, ...]


class Control(Protocol):
    """What a running bookie shows to its planes."""

    @property
    def bookie_id(self) -> str: ...

    @property
    def state(self) -> str:
        """`starting`, `writable`, `read-only`, `stopping` or `stopped`."""

    @property
    def admin_host(self) -> str:
        """The address that the admin plane binds."""

    @property
    def admin_port(self) -> int:
        """Its port; 0 lets the system choose."""

    @property
    def admin(self) -> AdminSettings:
        """Limits of its connections."""

    @property
    def access(self) -> AccessSettings:
        """Who may do what at the ports of planes (`admin.access`)."""

    @property
    def own_token(self) -> Path | None:
        """The file with the token for processes of this bookie's own user; None before a start, or without planes."""

    @property
    def names(self) -> tuple[str, ...]:
        """How it is called by others: its id, and the host that it tells them."""

    @property
    def metadata(self) -> Any:
        """The metadata driver of this bookie; a plane checks for the kind that it can serve."""

    @property
    def garbage(self) -> Any:
        """The garbage collection of this bookie, a `bookie.storage.garbage.collection.Garbage`; None before it runs."""

    @property
    def scrub(self) -> Any:
        """The scrub of this bookie, a `bookie.storage.scrub.scrubbing.Scrub`; None before it runs."""

    @property
    def stored(self) -> Stored:
        """Its entry logs, ledgers and entries."""

    @property
    def recovery(self) -> Mapping[str, Any] | None:
        """The keys of auto-recovery; None where it is not to run in this process."""

    @property
    def client_keys(self) -> Mapping[str, Any]:
        """The keys by which it is a client of other bookies: those of auto-recovery, whether that runs or not."""

    @property
    def http(self) -> HttpSettings:
        """Where the HTTP port listens, if it does."""

    @property
    def read_only(self) -> bool:
        """Whether it takes no writes, in whichever state it is."""

    @property
    def read_only_reasons(self) -> frozenset[str]:
        """`operator`, `disk`, `config`: who is against writes."""

    @property
    def directories(self) -> BookieDirectories:
        """Where its files are, as configured."""

    def configuration(self) -> Mapping[str, str]:
        """Every key with the text that counts; secrets are masked."""

    def disk_state(self) -> DiskState:
        """The directories and their disks, as of the last look."""

    def last_marks(self) -> Sequence[MarkFound]:
        """What each ledger directory holds for each journal. Reads files."""

    def files(self) -> Iterable[DiskFile]:
        """Every file of this bookie. Walks its directories."""

    def stats(self) -> Mapping[str, int | float]:
        """Counters and gauges of storage and data port."""

    def metrics(self) -> Iterable[Family]:
        """The same and more as families under Apache BookKeeper's names; `bookie.metrics.text` writes them. Nothing is
        locked and no data thread waits.
        """

    def note_sanity(self, *, passed: bool) -> None:
        """How a test by its own data port ended."""

    def checkpoint(self) -> None:
        """Flush the write caches now; returns when the mark has moved."""

    def set_read_only(self, *, read_only: bool) -> None:
        """The operator's wish; a full disk keeps the bookie read-only all the same."""


class Plane(Protocol):
    """A service that lives as long as the bookie."""

    def check(self) -> None:
        """Read what it needs before a start. Raises ConfigurationError."""

    def start(self) -> tuple[str, int]:
        """Serve; return the bound address. Raises StartRefused."""

    def stop(self, grace_s: float) -> None:
        """End calls within `grace_s` and close; idempotent."""

    def stats(self) -> Mapping[str, int | float]:
        """Its counters and gauges. Any thread, also before `start` and after `stop`."""


class PlaneFactory(Protocol):
    """What an entry point names."""

    def __call__(self, control: Control) -> Plane | None:
        """None: it has nothing to serve for this bookie."""


class Service(Protocol):
    """Work beside the bookie, which lives as long as it is registered."""

    def start(self) -> None:
        """Begin, without waiting for anybody. Raises StartRefused."""

    def stop(self) -> None:
        """End; idempotent."""

    def stats(self) -> Mapping[str, int | float]:
        """Its counters and gauges."""


class ServiceFactory(Protocol):
    """What an entry point names."""

    def __call__(self, control: Control) -> Service | None:
        """None: it is not asked for. Raises StartRefused."""


class StartupCheck(Protocol):
    """What is done before a bookie starts on directories that may lack what it acknowledged."""

    def __call__(self, bookie_id: str, ledgers: Ledgers, indexes: Sequence[Path]) -> int:
        """Mark what cannot be trusted in these indexes, one of each ledger directory; how many ledgers that are."""


def discover() -> Iterator[tuple[str, PlaneFactory]]:
    """Name and factory of each installed plane, in the order of their names."""
    return _entries(GROUP)


def discover_services() -> Iterator[tuple[str, ServiceFactory]]:
    """The same of services."""
    return _entries(SERVICES)


def discover_startup_checks() -> Iterator[tuple[str, StartupCheck]]:
    """The same of startup checks."""
    return _entries(STARTUP_CHECKS)


def _entries(group: str) -> Iterator[tuple[str, Any]]:
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        yield entry.name, entry.load()
