from bookie._fast.file import Files
from bookie._fast.journal import JournalRoom
from bookie._fast.op_stats import OpView

class StoreRoom:
    directory: str
    def __init__(
        self,
        directory: str,
        index_directory: str,
        files: Files,
        *,
        write_cache_bytes: int,
        read_cache_bytes: int,
        read_segment_bytes: int,
        reread_table_bytes: int,
        index_map_bytes: int,
        next_log_id: int,
        log_bytes_max: int,
        open_logs_max: int,
        ledger_logs_max: int = 0,
        log_idle_ms_max: int = ...,
    ) -> None: ...
    def load_ledgers(self) -> int: ...
    def ledger_count(self) -> int: ...
    def fence_count(self) -> int: ...
    def limit_ledgers(self, most: int) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def take_failed_reads(self) -> tuple[int, list[tuple[int, int]]] | None: ...
    def ops(self) -> dict[str, OpView | tuple[OpView, OpView]]: ...
    def readahead(self) -> tuple[int, int]: ...
    def close(self) -> None: ...

class StoresRoom:
    def __init__(
        self,
        rooms: list[StoreRoom],
        journals: list[JournalRoom],
        files: Files,
        *,
        write_data: bool,
        readahead_bytes: int,
        readahead_entries: int,
        adaptive_readahead: bool,
        flush_bytes: int,
        uncached_bytes: int = ...,
    ) -> None: ...
    def full(self) -> tuple[list[int], list[int]]: ...
    def uncached(self) -> dict[str, int]: ...
    def allow(self, *, high_priority: bool, any_full: bool, held: list[int]) -> None: ...
    def set_read_only(self, read_only: bool) -> None: ...
