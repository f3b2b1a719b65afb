"""The counters of garbage collection. Only the thread `garbage` writes them, and those of a directory the thread that
works there; any thread may read them.

The names in `stats` are Apache BookKeeper's in lower case with the prefix `gc_`, so an exporter can derive its names
from them.
"""

from dataclasses import dataclass, field

__all__ = ["Counters", "OfDirectory"]


@dataclass(slots=True)
class OfDirectory:
    """Counters of one ledger directory since the start of the process; gauges as of the last cycle."""

    compacted_logs: int = 0
    deleted_ledgers: int = 0
    failed_deletions: int = 0
    compaction_bytes: int = 0
    deletion_bytes: int = 0
    """File bytes freed by compacting logs, and by unlinking dead ones."""
    ledgers: int = 0
    logs: int = 0
    log_bytes: int = 0
    live_bytes: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * 10)

    def stats(self) -> dict[str, int | float]:
        """Return counters and gauges by name."""
        return {
            "gc_compacted_log_total": self.compacted_logs,
            "gc_deleted_ledger_total": self.deleted_ledgers,
            "gc_reclaim_failed_to_delete": self.failed_deletions,
            "gc_reclaimed_compaction_space_bytes": self.compaction_bytes,
            "gc_reclaimed_deletion_space_bytes": self.deletion_bytes,
            "gc_active_ledger_total": self.ledgers,
            "gc_active_entry_log_total": self.logs,
            "gc_active_entry_log_space_bytes": self.live_bytes,
            "gc_entry_log_space_bytes": self.log_bytes,
            "gc_entry_log_compact_ratio": self.live_bytes / self.log_bytes if self.log_bytes else 1.0,
            **{f"gc_entry_log_usage_buckets_le_{10 * at}": logs for at, logs in enumerate(self.buckets, 1)},
        }


@dataclass(slots=True)
class Counters:
    """Counters of all directories together, and of each."""

    directories: list[OfDirectory]
    cycles: int = 0
    failed_cycles: int = 0
    minor_compactions: int = 0
    major_compactions: int = 0
    over_replicated: int = 0
    kept_logs: int = 0
    """Logs that could not be collected because something is wrong with them; a forced cycle tries them again."""
    thread_ms: int = 0
    ledgers_ms: int = 0
    compact_ms: int = 0
    usage_ms: int = 0

    def of_directories(self) -> list[dict[str, int | float]]:
        """Return the counters of each directory; every compaction covers all, so each has the same number of them."""
        ran = {
            "gc_minor_compaction_total": self.minor_compactions,
            "gc_major_compaction_total": self.major_compactions,
        }
        return [{**ran, **one.stats()} for one in self.directories]

    def stats(self) -> dict[str, int | float]:
        """Return the counters summed over all directories."""
        each = [one.stats() for one in self.directories]
        found: dict[str, int | float] = {name: sum(one[name] for one in each) for name in OfDirectory().stats()}
        log_bytes = found["gc_entry_log_space_bytes"]
        found["gc_entry_log_compact_ratio"] = found["gc_active_entry_log_space_bytes"] / log_bytes if log_bytes else 1.0
        return {
            **found,
            "gc_cycles_total": self.cycles,
            "gc_failed_cycles_total": self.failed_cycles,
            "gc_minor_compaction_total": self.minor_compactions,
            "gc_major_compaction_total": self.major_compactions,
            "gc_over_replicated_ledger_total": self.over_replicated,
            "gc_kept_logs": self.kept_logs,
            "gc_thread_runtime_ms": self.thread_ms,
            "gc_gc_ledger_runtime_ms": self.ledgers_ms,
            "gc_compact_runtime_ms": self.compact_ms,
            "gc_extract_meta_runtime_ms": self.usage_ms,
        }
