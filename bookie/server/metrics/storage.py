"""Metrics of ledger directories and journals."""

from collections.abc import Iterator, Mapping, Sequence

from bookie._fast.base.op_stats import OpView
from bookie.metrics.family import Family, Kind, Labels, Sample, gauge
from bookie.server.metrics.rows import MS, Part, counters, gauges
from bookie.storage.settings import StorageSettings

__all__ = ["BOOKIE_ROWS", "JOURNAL_ROWS", "limits", "read_families", "STORE_ROWS"]

BOOKIE_ROWS = (
    *counters(
        ("add_bytes", "bookie_WRITE_BYTES", "Bytes of entries added."),
        ("read_pool_served", "pybookie_disk_reads_served_total", "Reads served from disk."),
        (
            "uncached_reads_refused",
            "pybookie_uncached_reads_refused_total",
            "Reads from disk refused because the memory for reads that the read cache cannot take was used up.",
        ),
    ),
    *gauges(
        ("read_pool_queued", "pybookie_disk_reads_queued", "Reads that wait for the disk."),
        (
            "uncached_read_bytes",
            "pybookie_uncached_read_bytes",
            "Memory of entries that were read while slow readers held the read cache.",
        ),
    ),
)
"""Metrics without labels: fields of the storage's statistics, names and help texts."""

STORE_ROWS = (
    *counters(
        ("adds", "pybookie_added_entries_total", "Entries added."),
        ("add_bytes", "pybookie_added_bytes_total", "Bytes of entries added."),
        ("write_cache_hits", "bookie_write_cache_hits", "Entries that reads found in the write cache."),
        ("read_cache_hits", "bookie_read_cache_hits", "Entries that reads found in the read cache."),
        ("read_cache_misses", "bookie_read_cache_misses", "Entries for which a reader waited for the disk."),
        ("flushes", "pybookie_flushes_total", "Checkpoints that flushed this directory."),
        ("flushes_put_off", "pybookie_flushes_put_off_total", "Flushes that failed and are retried."),
        ("carry_overs", "pybookie_carry_overs_total",
         "Times that unflushed entries were written to the journal again because the directory cannot be flushed."),
        ("carried_bytes", "pybookie_carried_bytes_total", "Bytes that were written to the journal again for that."),
        ("flushed_entries", "pybookie_flushed_entries_total", "Entries flushed to entry logs."),
        ("flushed_bytes", "pybookie_flushed_bytes_total", "Bytes flushed to entry logs."),
        ("corrupt_records", "pybookie_corrupt_records_total", "Records read that differed from the index."),
        ("short_batches", "pybookie_short_batches_total",
         "Batch reads with fewer entries because the disk could not read a later one."),
        ("failed_reads", "pybookie_failed_reads_total", "Reads that failed on disk."),
        ("index_damage", "pybookie_index_damage_total", "Times that damage was found in the location index."),
        ("index_repairs", "pybookie_index_repairs_total",
         "Times that the location index was replaced by its readable part."),
        ("ledgers_closed", "pybookie_ledgers_write_closed_total", "Ledgers with a write close."),
        ("disk_reads", "pybookie_disk_reads_total", "Reads of entry logs."),
        ("disk_read_bytes", "pybookie_disk_read_bytes_total", "Bytes read from entry logs."),
        ("readahead_entries", "pybookie_readahead_entries_total", "Entries read ahead."),
        ("rereads", "pybookie_reread_entries_total", "Entries read from disk that had been read from disk before."),
        ("evicted_pages", "pybookie_read_cache_evicted_pages_total", "Pages evicted from the read cache."),
        ("evicted_untouched_pages", "pybookie_read_cache_evicted_untouched_pages_total",
         "Pages evicted from the read cache before any read used them."),
        ("evicted_entries", "pybookie_read_cache_evicted_entries_total", "Entries evicted from the read cache."),
        ("evicted_bytes", "pybookie_read_cache_evicted_bytes_total", "Bytes evicted from the read cache."),
        ("evicted_unused_entries", "pybookie_read_cache_evicted_unused_entries_total",
         "Entries evicted from the read cache that no read used: a lower bound."),
        ("evicted_unused_bytes", "pybookie_read_cache_evicted_unused_bytes_total",
         "Bytes evicted from the read cache that no read used: a lower bound."),
        ("read_cache_evicted_segments", "pybookie_read_cache_evicted_segments_total",
         "Segments of the read cache that were emptied."),
        ("readahead_shrunk", "pybookie_readahead_shrunk_total", "Times that the read-ahead was reduced."),
        ("readahead_grown", "pybookie_readahead_grown_total", "Times that the read-ahead was increased again."),
        ("ledger_logs_write_closed", "pybookie_ledger_logs_write_closed_total",
         "Entry logs of one ledger closed because of a write close."),
    ),
    *gauges(
        ("held_back_bytes", "pybookie_journal_held_back_bytes",
         "Bytes of a journal from the mark of this directory on, which its next checkpoint releases."),
        ("mark_age_s", "pybookie_mark_age_seconds", "Seconds since the mark of this directory moved."),
        ("doubtful_ledgers", "pybookie_doubtful_ledgers",
         "Ledgers of which the location index may have lost entries, so that none of their entries is denied."),
        ("quarantined_ledgers", "pybookie_quarantined_ledgers", "Ledgers in quarantine."),
        ("kept_fences", "pybookie_kept_fences", "Deleted ledgers whose fence is kept."),
        ("write_cache_bytes", "bookie_write_cache_size", "Bytes in the write cache."),
        ("write_cache_entries", "bookie_write_cache_count", "Entries in the write cache."),
        ("kept_bytes", "pybookie_write_cache_kept_bytes",
         "Memory of what was flushed and is kept readable; it counts against the write cache."),
        ("index_pending_runs", "pybookie_index_pending_runs",
         "Runs of entries that were flushed and wait in memory for the location index."),
        ("index_pending_bytes", "pybookie_index_pending_bytes",
         "Memory of these runs; beyond an eighth of the write cache, none waits."),
        ("read_cache_bytes", "bookie_read_cache_size", "Bytes in the read cache."),
        ("ledgers", "bookie_ledgers_count", "Ledgers stored."),
        ("index_entries", "bookie_entries_count",
         "Entries stored: those counted by the last garbage collection, and those flushed since."),
        ("entry_logs_open", "pybookie_entry_logs_open", "Entry logs that still accept entries."),
        ("entry_logs_behind", "pybookie_entry_logs_behind",
         "Log ids allocated since the oldest log that still accepts entries."),
        ("ledger_logs_active", "bookie_entrylogger_NUM_OF_WRITE_ACTIVE_LEDGERS",
         "Ledgers with an entry log of their own that is open for writing."),
    ),
    *counters(
        ("ledger_logs_expired", "bookie_entrylogger_NUM_OF_WRITE_LEDGERS_REMOVED_CACHE_EXPIRY",
         "Entry logs of one ledger closed because nothing was written to them."),
        ("ledger_logs_displaced", "bookie_entrylogger_NUM_OF_WRITE_LEDGERS_REMOVED_CACHE_MAXSIZE",
         "Entry logs of one ledger closed because too many were open."),
        ("ledger_logs_several", "bookie_entrylogger_NUM_LEDGERS_HAVING_MULTIPLE_ENTRYLOGS",
         "Ledgers that began a second entry log of their own."),
    ),
)  # fmt: skip
"""With the labels `ledgerDir` and `indexDir`."""

JOURNAL_ROWS = (
    *counters(
        ("bytes", "bookie_journal_JOURNAL_WRITE_BYTES", "Bytes written to the journal."),
        ("flush_wait", "bookie_journal_JOURNAL_NUM_FLUSH_MAX_WAIT", "Groups written because their wait was over."),
        ("flush_bytes", "bookie_journal_JOURNAL_NUM_FLUSH_MAX_OUTSTANDING_BYTES",
         "Groups written because they were large enough."),
        ("flush_empty", "bookie_journal_JOURNAL_NUM_FLUSH_EMPTY_QUEUE",
         "Groups written because no other group was being written."),
        ("groups", "pybookie_journal_groups_total", "Groups written and synced."),
        ("entries", "pybookie_journal_records_total", "Records written."),
    ),
    *counters(
        ("queued_records", "bookie_journal_JOURNAL_QUEUE_SIZE", "Records that wait for their group to be written."),
        ("groups_in_write", "bookie_journal_JOURNAL_FORCE_WRITE_QUEUE_SIZE", "Groups that are being written."),
    ),
    *gauges(
        ("backlog_bytes", "pybookie_journal_backlog_bytes", "Bytes of journal files that a start would replay."),
        ("at_limit", "pybookie_journal_at_limit", "1 while this exceeds journalMaxBacklogMB and adds are refused."),
        ("buffer_bytes", "bookie_journal_JOURNAL_MEMORY_MAX", "Most bytes of records that may wait for the disk."),
        ("queued_bytes", "bookie_journal_JOURNAL_MEMORY_USED", "Bytes of records that wait for the disk."),
    ),
)  # fmt: skip
"""Metrics with the label `journalIndex`: fields of a journal's statistics, names and help texts."""


def limits(settings: StorageSettings) -> Iterator[Family]:
    """Yield the configured limits."""
    yield gauge("bookie_write_cache_max_size", "Most bytes in the write caches.", settings.write_cache_bytes)
    yield gauge("bookie_readahead_max_batch_size", "Most entries that are read ahead.", settings.readahead_entries)
    pool = "bookkeeper_server_BookieReadThreadPool"
    threads = settings.read_threads_each * len(settings.ledger_directories)
    yield gauge(f"{pool}_threads", "Threads that read from disk.", threads)
    yield gauge(f"{pool}_max_queue_size", "Most reads that may wait for these threads.", settings.read_queue_max)


def read_families(
    stores: Sequence[Part], ops: Sequence[tuple[Labels, Mapping[str, OpView | tuple[OpView, OpView]]]]
) -> Iterator[Family]:
    """Yield what reads did not find in the write cache, and the total times of index look-ups and disk reads."""
    missed = tuple(Sample(part["read_cache_hits"] + part["read_cache_misses"], labels) for labels, part in stores)
    yield Family(
        "bookie_write_cache_misses", Kind.COUNTER, "Entries that reads did not find in the write cache.", missed
    )
    for op, name, text in (
        ("lookup_entry_location", "read_locations_index_time", "Milliseconds spent in look-ups in the index."),
        ("read_entrylog", "read_entrylog_time", "Milliseconds spent in reads of entry logs."),
    ):
        views = [(labels, part[op]) for labels, part in ops]
        samples = tuple(Sample(view.total * MS, labels) for labels, view in views if isinstance(view, OpView))
        yield Family(f"bookie_{name}", Kind.COUNTER, text, samples)
