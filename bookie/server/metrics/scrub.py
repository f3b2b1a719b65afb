"""Metrics of the scrub, and of repairs."""

from bookie.server.metrics.rows import counters, gauges
from bookie.storage.scrub.findings import Kind

__all__ = ["ROWS"]

MEANT = {
    Kind.DIGEST: "Entries whose digest did not hold, as the scrub found.",
    Kind.PLACE: "Entries that were not where the index has them, as the scrub found.",
    Kind.ORPHAN: "Entries in a log that the index has nowhere, as the scrub found.",
    Kind.UNREADABLE: "Entry logs that could not be read, or were none, as the scrub found.",
    Kind.MAP: "Entry logs whose ledgers map contradicts their records, as the scrub found.",
    Kind.TORN: "Entry logs that hold bytes which are no record, as the scrub found.",
    Kind.INDEX: "Parts of the location index that could not be read, as the scrub found.",
}

ENTRIES = (Kind.DIGEST, Kind.PLACE, Kind.ORPHAN, Kind.READ)
"""Kinds that are about one entry."""

ROWS = (
    *counters(
        ("scrub_bytes", "pybookie_scrub_bytes_total", "Bytes of entry logs that the scrub read."),
        ("scrub_logs", "pybookie_scrub_logs_total", "Entry logs that it read to their end."),
        ("scrub_records", "pybookie_scrub_records_total", "Records in them."),
        ("scrub_verified", "pybookie_scrub_verified_total", "Of these, records whose digest was computed."),
        ("scrub_passes", "pybookie_scrub_passes_total", "Passes over all entry logs that ended."),
        ("scrub_thread_ms", "pybookie_scrub_cpu_seconds_total", "Processor time of the scrub.", 1e-3),
        *[(f"scrub_found_{kind.value}", f"pybookie_scrub_found_{kind.value}_total", text)
          for kind, text in MEANT.items()],
        ("repair_bytes", "pybookie_repair_bytes_total", "Bytes of entries that repairs wrote."),
        ("repair_failed_rounds", "pybookie_repair_failed_rounds_total", "Repairs that met an error; tried again."),
        ("repair_quarantines_lifted", "pybookie_repair_quarantines_lifted_total",
         "Ledgers that came out of quarantine because they were whole again."),
        *[(f"repair_repaired_{kind.value}", f"pybookie_repair_repaired_{kind.value}_total",
           f"Entries repaired that were found as `{kind.value}`.") for kind in ENTRIES],
    ),
    *gauges(
        ("scrub_running_now", "pybookie_scrub_running", "1 while a pass is under way."),
        ("scrub_paused_now", "pybookie_scrub_paused", "1 while an operator holds it."),
        ("scrub_rate_now", "pybookie_scrub_rate_bytes", "Bytes a second that it may read; 0: no limit."),
        ("scrub_last_pass_ended_ms", "pybookie_scrub_last_pass_end_seconds",
         "When the last whole pass ended, since 1970; 0: never.", 1e-3),
        ("repair_waiting_now", "pybookie_repair_waiting", "Entries that wait to be repaired, or to be tried again."),
        *[(f"repair_unrepairable_{kind.value}_now", f"pybookie_repair_unrepairable_{kind.value}",
           f"Entries found as `{kind.value}` of which nobody gave a good copy so far.") for kind in ENTRIES],
        ("scrub_last_pass_took_ms", "pybookie_scrub_last_pass_duration_seconds", "How long it took.", 1e-3),
    ),
)  # fmt: skip
