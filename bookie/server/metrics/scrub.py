"""Metrics of the scrub and of repairs."""

from bookie.server.metrics.rows import counters, gauges
from bookie.storage.scrub.findings import Kind

__all__ = ["ROWS"]

MEANT = {
    Kind.DIGEST: "Entries with a wrong digest that the scrub found.",
    Kind.PLACE: "Entries that the scrub found missing from their place in the index.",
    Kind.ORPHAN: "Entries that the scrub found in a log but not in the index.",
    Kind.UNREADABLE: "Entry logs that the scrub found to be unreadable, or not to be entry logs.",
    Kind.MAP: "Entry logs that the scrub found to have a ledgers map that contradicts their records.",
    Kind.TORN: "Entry logs in which the scrub found bytes that are not a record.",
    Kind.INDEX: "Parts of the location index that the scrub could not read.",
}

ENTRIES = (Kind.DIGEST, Kind.PLACE, Kind.ORPHAN, Kind.READ)
"""The kinds that concern a single entry."""

ROWS = (
    *counters(
        ("scrub_bytes", "pybookie_scrub_bytes_total", "Bytes of entry logs that the scrub read."),
        ("scrub_logs", "pybookie_scrub_logs_total", "Entry logs that the scrub read completely."),
        ("scrub_records", "pybookie_scrub_records_total", "Records that the scrub read."),
        ("scrub_verified", "pybookie_scrub_verified_total", "Records whose digest the scrub verified."),
        ("scrub_passes", "pybookie_scrub_passes_total", "Complete passes over all entry logs."),
        ("scrub_thread_ms", "pybookie_scrub_cpu_seconds_total", "Processor time of the scrub.", 1e-3),
        *[(f"scrub_found_{kind.value}", f"pybookie_scrub_found_{kind.value}_total", text)
          for kind, text in MEANT.items()],
        ("repair_bytes", "pybookie_repair_bytes_total", "Bytes of entries that repairs wrote."),
        ("repair_failed_rounds", "pybookie_repair_failed_rounds_total", "Repairs that failed and are retried."),
        ("repair_quarantines_lifted", "pybookie_repair_quarantines_lifted_total",
         "Ledgers whose quarantine was lifted because they were complete again."),
        *[(f"repair_repaired_{kind.value}", f"pybookie_repair_repaired_{kind.value}_total",
           f"Repaired entries that were found as `{kind.value}`.") for kind in ENTRIES],
    ),
    *gauges(
        ("scrub_running_now", "pybookie_scrub_running", "1 while a pass is running."),
        ("scrub_paused_now", "pybookie_scrub_paused", "1 while an operator pauses the scrub."),
        ("scrub_rate_now", "pybookie_scrub_rate_bytes", "Bytes per second that the scrub may read; 0 for no limit."),
        ("scrub_last_pass_ended_ms", "pybookie_scrub_last_pass_end_seconds",
         "When the last complete pass ended, in seconds since 1970; 0 for never.", 1e-3),
        ("repair_waiting_now", "pybookie_repair_waiting", "Entries that wait for their repair, or for another try."),
        *[(f"repair_unrepairable_{kind.value}_now", f"pybookie_repair_unrepairable_{kind.value}",
           f"Entries found as `{kind.value}` for which no intact copy was found so far.") for kind in ENTRIES],
        ("scrub_last_pass_took_ms", "pybookie_scrub_last_pass_duration_seconds", "Duration of the last complete pass.",
         1e-3),
    ),
)  # fmt: skip
