"""The narrow door between the bookie and its planes (admin service, later consoles): what they may see and do.

A plane is found through the entry-point group `bookie.planes`, whose entries are callables `(Control) -> Plane`; so
this package never imports them. Every method of Control may be called from any thread.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol

__all__ = ["Control", "discover", "GROUP", "Plane", "PlaneFactory"]

GROUP = "bookie.planes"


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
    def metadata(self) -> Any:
        """The metadata driver of this bookie; a plane checks for the kind that it can serve."""

    @property
    def garbage(self) -> Any:
        """The garbage collection of this bookie, a `bookie.storage.garbage.collection.Garbage`; None before it runs."""

    def stats(self) -> Mapping[str, int | float]:
        """Counters and gauges of storage and data port."""

    def checkpoint(self) -> None:
        """Flush the write caches now; returns when the mark has moved."""

    def set_read_only(self, *, read_only: bool) -> None:
        """The operator's wish; a full disk keeps the bookie read-only all the same."""


class Plane(Protocol):
    """A service that lives as long as the bookie."""

    def start(self) -> tuple[str, int]:
        """Serve; return the bound address. Raises StartRefused."""

    def stop(self, grace_s: float) -> None:
        """End calls within `grace_s` and close; idempotent."""


class PlaneFactory(Protocol):
    """What an entry point names."""

    def __call__(self, control: Control) -> Plane | None:
        """None: it has nothing to serve for this bookie."""


def discover() -> Iterator[tuple[str, PlaneFactory]]:
    """Name and factory of each installed plane, in the order of their names."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.name, entry.load()
