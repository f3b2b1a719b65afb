"""Settings of the scrub: frozen values with units in their names. The server's loader fills them."""

from dataclasses import dataclass

from bookie.storage.settings import MIB

__all__ = ["ScrubSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """When entry logs are read, and how fast."""

    enabled: bool = True
    """False: only when an operator says so."""
    rate_bytes_per_s: int = 8 * MIB
    """Of entry logs, over all ledger directories; 0: no limit."""
    interval_s: int = 604_800
    """From the beginning of one pass to that of the next."""
