"""Settings of garbage collection: frozen values with units in their names, filled by the configuration loader."""

from dataclasses import dataclass

from bookie.storage.settings import MIB

__all__ = ["GarbageSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageSettings:
    """When and how space is reclaimed. docs/configuration.md lists the configuration key of each field."""

    wait_ms: int = 600_000
    """The pause between two cycles, and before the first."""
    metadata_reads_per_s: int = 1000
    """The highest rate of metadata reads which confirm that a ledger was deleted."""
    delete_share_max: float = 0.5
    """The largest share of ledgers that a cycle deletes without an operator's confirmation; 1 allows any number."""
    on_empty_list: bool = True
    """Whether ledgers are deleted although the metadata store lists none at all."""
    empty_list_wait_ms: int = 3_600_000
    """How long the store must list none before that."""
    fence_kept_ms: int = 7 * 86_400_000
    """How long after its deletion a fenced ledger still refuses its writer; fixed in Apache BookKeeper."""
    over_replicated_interval_ms: int = 86_400_000
    """The interval of the check for ledgers that are stored elsewhere; 0 keeps them."""
    minor_threshold: float = 0.2
    minor_interval_s: int = 3600
    minor_ms_max: int = -1
    major_threshold: float = 0.8
    major_interval_s: int = 86_400
    major_ms_max: int = -1
    """A compaction begins no further log after this time; -1 means no limit."""
    throttle_by_bytes: bool = True
    rate_bytes_per_s: int = 32 * MIB
    """The most bytes that a compaction copies per second; 0 means no limit."""
    rate_entries_per_s: int = 1000
    """The limit that applies instead if `throttle_by_bytes` is false; 0 means no limit."""
    force_allows_disabled: bool = False
    """A forced compaction runs even if the interval of its kind disables it."""
    usage_of_full_log: bool = False
    """Judge a log smaller than a full one as if it were full."""
    collect_when_full: bool = False
    """Force a compaction when the disk is full instead of suspending it."""

    @property
    def minor_enabled(self) -> bool:
        """Whether minor compaction runs by itself."""
        return self.minor_threshold > 0 and self.minor_interval_s > 0

    @property
    def major_enabled(self) -> bool:
        """Whether major compaction runs by itself."""
        return self.major_threshold > 0 and self.major_interval_s > 0
