from typing import NamedTuple

class Bounds(NamedTuple):
    entry_id: int
    frame_bytes_least: int
    frame_bytes: int
    record_bytes: int
    group_bytes: int
    journal_file_bytes: int
    log_limit_bytes: int
    lac_packet_bytes: int
    directories: int
    io_loops: int
    read_threads: int
    journal_backups: int

BOUNDS: Bounds

def entry_bytes_max(frame_bytes: int) -> int: ...
def half_entry_bytes(cache_bytes: int) -> int: ...
def group_entry_bytes(buffer_bytes: int, alignment: int) -> int: ...
