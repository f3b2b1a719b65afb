"""Settings of the storage modules: frozen values with units in their names, filled by the configuration loader."""

from dataclasses import dataclass
from pathlib import Path

from bookie._fast.store.index_slices import transaction_bytes

MIB = 1 << 20
READ_THREADS = 32
"""Threads that read from disk, unless the configuration says otherwise."""

INDEX_BYTES = 16 << 20
"""Memory for the index of one directory: its upper pages, and the checksums of the branch pages below them for three
commits, for an index of up to 14 GiB. Each further GiB takes 0.3 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """How adds become durable. docs/configuration.md lists the configuration key of each field."""

    directories: tuple[Path, ...]
    file_bytes_max: int = 128 * MIB
    """At most 2 GiB, so that the start of every group fits into 32 bits."""
    backups_max: int = 5
    backlog_bytes_max: int = 0
    """The most that may lie above the lowest mark of a journal before adds are refused; 0 derives it from the disk."""
    prealloc_bytes: int = 64 * MIB
    buffer_bytes: int = 32 * MIB
    """Memory per journal: two group buffers of half this size. Full buffers pause the sockets; no add is dropped."""
    alignment_bytes: int = 4096
    sync_data: bool = True
    write_data: bool = True
    group_wait_ms: float = 2.0
    group_bytes: int = 512 * 1024
    group_entries: int = 0
    flush_when_empty: bool = True
    """Write a group as soon as the last one is on disk, so that a group is what arrived during the last sync."""
    reuse_files: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Caches, entry logs and index. Sizes are totals over all ledger directories."""

    ledger_directories: tuple[Path, ...]
    index_directories: tuple[Path, ...] = ()
    check_integrity: bool = False
    """Start after a crash without a journal; ledgers that may lack entries are put into limbo first."""
    write_cache_bytes: int = 512 * MIB
    read_cache_bytes: int = 512 * MIB
    read_segment_bytes: int = 64 * MIB
    uncached_read_bytes: int = 16 * MIB
    """Memory for reads that the read cache cannot take at the moment; at least one entry."""
    readahead_entries: int = 1000
    readahead_bytes: int = 4 * MIB
    readahead_policy: str = "forward"
    """Who gets readahead: readers that go `forward`, `always` each miss, or nobody (`off`)."""
    adaptive_readahead: bool = False
    """Read ahead less while entries that were read ahead leave the cache unused."""
    reread_table_bytes: int = 4 * MIB
    """Memory for detecting entries that are read from disk repeatedly; 0 detects none."""
    flush_interval_ms: int = 10_000
    flush_bytes: int = 64 * MIB
    """Flush a half of the write cache when it holds this much, or a quarter of the write cache if that is less."""
    keep_flushed: bool = True
    """Keep what was flushed readable in memory until that is needed; it takes at most half of the write cache."""
    index_slice_ledgers: int = 1000
    """Flushes of at least this many ledgers put the runs of a sixteenth of them into the index; 0: no flush does."""
    throttle_ms_max: int = 10_000
    log_bytes_max: int = 1 << 30
    open_logs_max: int = 256
    log_per_ledger: bool = False
    """Each ledger writes to an entry log of its own."""
    ledger_logs_max: int = 500
    """The most such logs open at a time, over all directories; for a new one, the least recently used is closed."""
    log_idle_ms_max: int = 300_000
    """A log that nothing was appended to for this long is closed by the next checkpoint."""
    index_leaves: int = 1 << 13
    """Leaf pages of an index that a transaction changes, about. LMDB holds them in memory until the transaction ends,
    and keeps that memory for the next one."""
    index_map_bytes: int = 1 << 40
    """Address space reserved for LMDB, not memory or disk."""
    ledgers_max: int = 500_000
    """The most ledgers that the bookie holds, over all directories; writers of further ledgers are refused."""
    read_threads: int = READ_THREADS
    read_queue_max: int = 10_000
    frame_bytes_max: int = 5 * MIB
    skip_damaged_journal: bool = False
    fence_all: bool = False
    """Take over a Java bookie's disks without its ledgers index, with every ledger fenced."""

    @property
    def read_threads_each(self) -> int:
        """The threads that read from the disk of a ledger directory."""
        return max(self.read_threads // len(self.ledger_directories), 1)

    @property
    def index_pending_bytes(self) -> int:
        """The memory that runs may take that wait for the location index, over all directories."""
        return self.write_cache_bytes // 8 if self.index_slice_ledgers else 0

    @property
    def index_bytes(self) -> int:
        """The memory of the location indexes, over all directories."""
        each = INDEX_BYTES + transaction_bytes(self.index_leaves, self.ledgers_max)
        return each * len(self.ledger_directories) + self.index_pending_bytes
