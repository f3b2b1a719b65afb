"""Metrics of garbage collection: of its thread, and of each ledger directory."""

from collections.abc import Iterator, Mapping

from bookie.metrics.family import Family
from bookie.server.metrics.rows import counters, gauges
from bookie.server.metrics.windows import totals

__all__ = ["DIRECTORY_ROWS", "ROWS", "runtimes"]

ROWS = (
    *counters(
        ("gc_cycles_total", "pybookie_gc_cycles_total", "Cycles of garbage collection."),
        ("gc_failed_cycles_total", "pybookie_gc_failed_cycles_total", "Cycles that ended with an error."),
        ("gc_over_replicated_ledger_total", "pybookie_gc_over_replicated_ledgers_total",
         "Ledgers deleted because they had moved to other bookies."),
    ),
    *gauges(
        ("gc_kept_logs", "pybookie_gc_kept_logs", "Entry logs that cannot be collected because they are damaged."),
        ("gc_alarm", "pybookie_gc_alarm", "1 while an operator must confirm an unusually large deletion of ledgers."),
    ),
)  # fmt: skip

DIRECTORY_ROWS = (
    *counters(
        ("gc_minor_compaction_total", "bookie_MINOR_COMPACTION_TOTAL", "Minor compactions."),
        ("gc_major_compaction_total", "bookie_MAJOR_COMPACTION_TOTAL", "Major compactions."),
        ("gc_compacted_log_total", "pybookie_gc_compacted_logs_total", "Entry logs compacted."),
        ("gc_deleted_ledger_total", "bookie_DELETED_LEDGER_TOTAL", "Ledgers deleted."),
        ("gc_reclaim_failed_to_delete", "bookie_RECLAIM_FAILED_TO_DELETE", "Entry logs that could not be deleted."),
        ("gc_reclaimed_compaction_space_bytes", "bookie_RECLAIMED_COMPACTION_SPACE_BYTES",
         "Bytes freed by compaction."),
        ("gc_reclaimed_deletion_space_bytes", "bookie_RECLAIMED_DELETION_SPACE_BYTES",
         "Bytes freed by deleting entry logs without live entries."),
    ),
    *gauges(
        ("gc_active_ledger_total", "bookie_ACTIVE_LEDGER_TOTAL", "Ledgers stored, as of the last collection."),
        ("gc_active_entry_log_total", "bookie_ACTIVE_ENTRY_LOG_TOTAL", "Entry logs, as of the last collection."),
        ("gc_active_entry_log_space_bytes", "bookie_ACTIVE_ENTRY_LOG_SPACE_BYTES",
         "Live bytes in entry logs, as of the last collection."),
        ("gc_entry_log_space_bytes", "bookie_ENTRY_LOG_SPACE_BYTES", "Bytes of entry logs, as of the last collection."),
        ("gc_entry_log_compact_ratio", "bookie_ENTRY_LOG_COMPACT_RATIO", "Share of live bytes in entry logs, 0 to 1."),
        *[(f"gc_entry_log_usage_buckets_le_{edge}", f"bookie_entry_log_usage_buckets_le_{edge}",
           f"Entry logs with more than {edge - 10} and at most {edge} percent of live bytes.")
          for edge in range(10, 101, 10)],
    ),
)  # fmt: skip
"""With the labels `ledgerDir` and `indexDir`."""


def runtimes(stats: Mapping[str, float]) -> Iterator[Family]:
    """Yield the number of runs of each part of a collection, and their durations in milliseconds."""
    if "gc_cycles_total" not in stats:
        return
    compactions = stats["gc_minor_compaction_total"] + stats["gc_major_compaction_total"]
    for stat, name, text, count in (
        ("gc_thread_runtime_ms", "THREAD_RUNTIME", "Time of a cycle, in milliseconds.", stats["gc_cycles_total"]),
        ("gc_gc_ledger_runtime_ms", "GC_LEDGER_RUNTIME", "Part of it: deleting ledgers.", stats["gc_cycles_total"]),
        (
            "gc_extract_meta_runtime_ms",
            "EXTRACT_META_RUNTIME",
            "Part of it: summing live bytes.",
            stats["gc_cycles_total"],
        ),
        ("gc_compact_runtime_ms", "COMPACT_RUNTIME", "Part of it: compaction.", compactions),
    ):
        yield totals(f"bookie_{name}", text, [((), int(count), stats[stat])])
