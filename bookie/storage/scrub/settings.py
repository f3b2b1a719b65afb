"""Settings of the scrub: frozen values with units in their names, filled by the server's configuration loader."""

from dataclasses import dataclass

from bookie.storage.settings import MIB

__all__ = ["ScrubSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """When entry logs are read, and how fast."""

    enabled: bool = True
    """False if only a command of an operator begins a pass."""
    rate_bytes_per_s: int = 8 * MIB
    """The rate over all ledger directories; 0 means no limit."""
    interval_s: int = 604_800
    """From the beginning of one pass to the beginning of the next."""
