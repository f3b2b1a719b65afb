"""Metrics of auto-recovery."""

from collections.abc import Iterator, Mapping

from bookie.metrics.family import Family
from bookie.server.metrics.rows import counters, gauges
from bookie.server.metrics.windows import totals

__all__ = ["copied", "ROWS"]

ROWS = (
    *counters(
        ("autorecovery_ledgers", "replication_replication_worker_NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED",
         "Ledgers that now have all their replicas, or were found to have them."),
        ("autorecovery_entries", "replication_replication_worker_NUM_ENTRIES_READ", "Entries copied."),
        ("autorecovery_entries", "replication_replication_worker_NUM_ENTRIES_WRITTEN", "Entries copied."),
        ("autorecovery_ledgers_deferred",
         "replication_replication_worker_NUM_DEFER_LEDGER_LOCK_RELEASE_OF_FAILED_LEDGER",
         "Ledgers deferred because they are being written to, or failed before."),
        ("autorecovery_ledgers_failed", "pybookie_replication_failed_rounds_total",
         "Rounds after which a ledger still had too few replicas."),
        ("autorecovery_ledgers_recovered", "pybookie_replication_ledgers_recovered_total",
         "Open ledgers fenced and closed because one of their bookies was gone for too long."),
        ("autorecovery_ledgers_unrecoverable", "pybookie_replication_unrecoverable_rounds_total",
         "Rounds in which an entry had no replica left."),
        ("autorecovery_fragments", "pybookie_replication_fragments_total", "Fragments copied."),
        ("autorecovery_paused_ms", "pybookie_replication_paused_seconds_total",
         "Time spent waiting for bookies with more free space, or for room.", 1e-3),
        ("autorecovery_targets_short", "pybookie_replication_targets_short_total",
         "Bookies that got no copy because they were short of room, while others had some."),
        ("autorecovery_elections", "replication_auditor_election_attempts",
         "Elections of an auditor in which this bookie took part."),
        ("autorecovery_bookie_audits", "pybookie_auditor_bookie_audits_total", "Searches for lost bookies."),
        ("autorecovery_audits_delayed", "replication_auditor_NUM_BOOKIE_AUDITS_DELAYED",
         "Searches delayed because a bookie may come back."),
        ("autorecovery_marks", "pybookie_auditor_ledgers_marked_total", "Ledgers marked as under-replicated."),
        ("autorecovery_ledgers_checked", "replication_auditor_NUM_LEDGERS_CHECKED", "Ledgers checked."),
        ("autorecovery_checks_failed", "pybookie_auditor_checks_failed_total", "Ledgers that could not be checked."),
        ("autorecovery_holes_found", "pybookie_auditor_holes_found_total",
         "Entries that live bookies lacked inside their parts of ledgers."),
        ("autorecovery_holes_filled", "pybookie_auditor_holes_filled_total",
         "Entries written again because live bookies lacked them."),
    ),
    *gauges(
        ("autorecovery_elected_now", "pybookie_auditor_elected", "1 while this bookie is the auditor."),
        ("autorecovery_bookies_lost_now", "pybookie_auditor_bookies_lost",
         "Bookies that ledgers name but that are not registered."),
        ("autorecovery_fragments_lacking", "pybookie_auditor_fragments_lacking",
         "Fragments that the last check of all ledgers found to have too few replicas."),
        ("autorecovery_segments_misplaced", "replication_auditor_NUM_LEDGERS_NOT_ADHERING_TO_PLACEMENT_POLICY",
         "Ensembles that violate the placement policy, as of the last check."),
        ("autorecovery_segments_placed_softly", "replication_auditor_NUM_LEDGERS_SOFTLY_ADHERING_TO_PLACEMENT_POLICY",
         "Ensembles that follow it only softly, as of the last check."),
        ("autorecovery_ledgers_without_replica", "replication_auditor_NUM_LEDGERS_HAVING_NO_REPLICA_OF_AN_ENTRY",
         "Ledgers with an entry that no bookie has, as of the last count."),
        ("autorecovery_ledgers_below_ack_quorum",
         "replication_auditor_NUM_LEDGERS_HAVING_LESS_THAN_AQ_REPLICAS_OF_AN_ENTRY",
         "Ledgers with an entry on fewer bookies than the ack quorum, as of the last count."),
        ("autorecovery_ledgers_below_write_quorum",
         "replication_auditor_NUM_LEDGERS_HAVING_LESS_THAN_WQ_REPLICAS_OF_AN_ENTRY",
         "Ledgers with an entry on fewer bookies than the write quorum, as of the last count."),
    ),
)  # fmt: skip


def copied(stats: Mapping[str, float]) -> Iterator[Family]:
    """Yield the sizes of copied entries; what is read is also written."""
    if "autorecovery_entries" in stats:
        sizes = [((), int(stats["autorecovery_entries"]), stats["autorecovery_bytes"])]
        for what in ("READ", "WRITTEN"):
            yield totals(f"replication_replication_worker_NUM_BYTES_{what}", "Bytes of entries copied.", sizes)
