"""Settings of garbage collection: frozen values with units in their names. The server's loader fills them."""

from dataclasses import dataclass

from bookie.storage.settings import MIB

__all__ = ["GarbageSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageSettings:
    """When and how space is reclaimed. Upstream's key of each field is listed in docs/configuration.md."""

    wait_ms: int = 600_000
    """Pause between two cycles, and before the first."""
    metadata_reads_per_s: int = 1000
    """Most reads that verify that a ledger is gone."""
    delete_share_max: float = 0.5
    """More of the bookie's ledgers than this never go at once, unless an operator says so; 1: any number."""
    fence_kept_ms: int = 7 * 86_400_000
    """For so long after its deletion a ledger that was fenced refuses its writer; as upstream, and as fixed."""
    over_replicated_interval_ms: int = 86_400_000
    """0: ledgers that exist, but not on this bookie, are kept."""
    minor_threshold: float = 0.2
    minor_interval_s: int = 3600
    minor_ms_max: int = -1
    major_threshold: float = 0.8
    major_interval_s: int = 86_400
    major_ms_max: int = -1
    """A compaction begins no further log after this; -1: it takes as long as it takes."""
    throttle_by_bytes: bool = True
    rate_bytes_per_s: int = 32 * MIB
    """Bytes that a compaction copies in a second at most; 0: no limit."""
    rate_entries_per_s: int = 1000
    """The limit in place of it where `throttle_by_bytes` is false; 0: no limit."""
    force_allows_disabled: bool = False
    """A forced compaction runs also where its kind is switched off by its interval."""
    usage_of_full_log: bool = False
    """A log that is smaller than a full one is judged as if it were full."""
    collect_when_full: bool = False
    """On a full disk compaction is forced instead of suspended."""

    @property
    def minor_enabled(self) -> bool:
        """Whether minor compaction runs by itself."""
        return self.minor_threshold > 0 and self.minor_interval_s > 0

    @property
    def major_enabled(self) -> bool:
        """Whether major compaction runs by itself."""
        return self.major_threshold > 0 and self.major_interval_s > 0
