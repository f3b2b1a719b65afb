"""Settings of the storage modules: plain frozen values with units in their names. The server's loader fills them."""

from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """How adds become durable. Upstream's key of each field is listed in docs/configuration.md."""

    directories: tuple[Path, ...]
    file_bytes_max: int = 128 * MIB
    """At most 4 GiB: a group notes where it starts in 32 bits."""
    backups_max: int = 5
    backlog_bytes_max: int = 0
    """Of each journal: what may lie behind the lowest mark before adds are refused. 0: `backlog` judges by its disk."""
    prealloc_bytes: int = 64 * MIB
    buffer_bytes: int = 32 * MIB
    """Memory per journal: two group buffers of half this size. Full buffers pause the sockets, never drop."""
    alignment_bytes: int = 4096
    sync_data: bool = True
    write_data: bool = True
    group_wait_ms: float = 2.0
    group_bytes: int = 512 * 1024
    group_entries: int = 0
    flush_when_empty: bool = True
    """Write a group as soon as the last one is on disk: a group is what arrived during the last sync."""
    reuse_files: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Caches, entry logs and index; sizes are totals over all ledger directories."""

    ledger_directories: tuple[Path, ...]
    index_directories: tuple[Path, ...] = ()
    check_integrity: bool = False
    """Start after an unclean end without a journal: what may lack entries is put into limbo first."""
    write_cache_bytes: int = 512 * MIB
    read_cache_bytes: int = 512 * MIB
    read_segment_bytes: int = 64 * MIB
    uncached_read_bytes: int = 16 * MIB
    """Memory for reads that the read cache cannot take at the moment; one entry at least."""
    readahead_entries: int = 1000
    readahead_bytes: int = 4 * MIB
    adaptive_readahead: bool = False
    """Read ahead less while what was read ahead leaves the cache unused."""
    reread_table_bytes: int = 4 * MIB
    """Memory to tell by which entries are read from disk again; 0 counts none."""
    flush_interval_ms: int = 10_000
    flush_bytes: int = 64 * MIB
    """A half of the write cache in use up to here is flushed; a quarter of the write cache when that is less."""
    throttle_ms_max: int = 10_000
    log_bytes_max: int = 1 << 30
    open_logs_max: int = 256
    log_per_ledger: bool = False
    """Each ledger writes into an entry log of its own."""
    ledger_logs_max: int = 500
    """Of those at a time, over all directories; the coldest is closed for another ledger's."""
    log_idle_ms_max: int = 300_000
    """One that was not appended to for so long is closed by the next checkpoint."""
    index_map_bytes: int = 1 << 40
    """Address space reserved for LMDB, not memory or disk."""
    ledgers_max: int = 500_000
    """Ledgers that the bookie holds, over all directories; further ones are refused to their writers."""
    read_threads: int = 32
    read_queue_max: int = 10_000
    frame_bytes_max: int = 5 * MIB
    skip_damaged_journal: bool = False
    fence_all: bool = False
    """Take over a Java bookie's disks without its ledgers index, every ledger fenced."""
