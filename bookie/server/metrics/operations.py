"""Summaries of operations, under each name that Apache BookKeeper has for them."""

from collections.abc import Iterator, Mapping, Sequence

from bookie._fast.base.op_stats import OpView
from bookie._fast.server.directory_ops import DirectoryView
from bookie.metrics.family import Family, Labels
from bookie.server.metrics.rows import MS
from bookie.server.metrics.windows import Series, Windows

__all__ = [
    "directory_times",
    "entry_sizes",
    "journal_families",
    "JOURNALS",
    "port_families",
    "REQUESTS",
    "store_families",
    "STORES",
]

S = 1e-9
"""Converts nanoseconds to seconds."""
SERVER = "bookkeeper_server_"

REQUESTS: dict[str, tuple[tuple[str, ...], str, float]] = {
    "add": ((f"{SERVER}ADD_ENTRY_REQUEST", f"{SERVER}ADD_ENTRY", "bookie_BOOKIE_ADD_ENTRY"),
            "Time of an add until it is durable and its response is ready, in milliseconds.", MS),
    "read": ((f"{SERVER}READ_ENTRY_REQUEST", f"{SERVER}READ_ENTRY", "bookie_BOOKIE_READ_ENTRY"),
             "Time of a read of one entry until its response is ready, in milliseconds.", MS),
    "read_queued": ((f"{SERVER}READ_ENTRY_SCHEDULING_DELAY",),
                    "Time that reads from disk waited for a thread, in milliseconds.", MS),
    "read_fence": ((f"{SERVER}READ_ENTRY_FENCE_REQUEST", f"{SERVER}READ_ENTRY_FENCE_READ"),
                   "Time of a read that fences its ledger, in milliseconds.", MS),
    "fence_wait": ((f"{SERVER}READ_ENTRY_FENCE_WAIT",),
                   "Part of it: until the fence was durable, in milliseconds.", MS),
    "read_long_poll": ((f"{SERVER}READ_ENTRY_LONG_POLL_REQUEST",),
                       "Time of a long poll, including its wait, in milliseconds.", MS),
    "poll_pre_wait": ((f"{SERVER}READ_ENTRY_LONG_POLL_PRE_WAIT",),
                      "Part of it: until the wait began, or was found unnecessary, in milliseconds.", MS),
    "poll_wait": ((f"{SERVER}READ_ENTRY_LONG_POLL_WAIT",),
                  "Part of it: the wait, in milliseconds; failed if it timed out.", MS),
    "poll_read": ((f"{SERVER}READ_ENTRY_LONG_POLL_READ",),
                  "Part of it: the read after the wait, in milliseconds.", MS),
    "write_lac": ((f"{SERVER}WRITE_LAC_REQUEST", f"{SERVER}WRITE_LAC"),
                  "Time of writing an explicit LAC, in milliseconds.", MS),
    "read_lac": ((f"{SERVER}READ_LAC_REQUEST", f"{SERVER}READ_LAC"),
                 "Time of reading an explicit LAC, in milliseconds.", MS),
    "force": ((f"{SERVER}FORCE_LEDGER_REQUEST", f"{SERVER}FORCE_LEDGER"),
              "Time of forcing a ledger to disk, in milliseconds.", MS),
    "bookie_info": ((f"{SERVER}GET_BOOKIE_INFO_REQUEST", f"{SERVER}GET_BOOKIE_INFO"),
                    "Time of a bookie info request, in milliseconds.", MS),
    "list_entries": ((f"{SERVER}GET_LIST_OF_ENTRIES_OF_LEDGER_REQUEST", f"{SERVER}GET_LIST_OF_ENTRIES_OF_LEDGER",
                      "bookie_BOOKIE_GET_LIST_OF_ENTRIES_OF_LEDGER"),
                     "Time of listing a ledger's entries, in milliseconds.", MS),
    "channel_write": ((f"{SERVER}CHANNEL_WRITE",),
                      "Time of writing the responses of one round of an I/O loop to sockets, in milliseconds.", MS),
    "add_blocked": ((f"{SERVER}ADD_ENTRY_BLOCKED_WAIT",),
                    "Time that requests waited for space in the write cache or the journal, in milliseconds.", MS),
    "write_close": (("pybookie_write_close_seconds",),
                    "Time of a write close.", S),
}  # fmt: skip
"""By the name in the I/O loops: metric names, help, and the factor that converts nanoseconds to the unit."""

JOURNALS: dict[str, tuple[str, str, float]] = {
    "added": ("JOURNAL_ADD_ENTRY", "Time of an add until it is in the journal, in milliseconds.", MS),
    "sync": ("JOURNAL_SYNC", "Time of the sync of a group, in milliseconds.", MS),
    "write": ("JOURNAL_FLUSH_LATENCY", "Time of the write of a group, in milliseconds.", MS),
    "queued": ("JOURNAL_QUEUE_LATENCY", "Time from a group's first record to its write, in milliseconds.", MS),
    "created": ("JOURNAL_CREATION_LATENCY", "Time of switching to a new file, in milliseconds.", MS),
    "group_entries": ("JOURNAL_FORCE_WRITE_BATCH_ENTRIES", "Records in a group.", 1),
    "group_bytes": ("JOURNAL_FORCE_WRITE_BATCH_BYTES", "Bytes in a group.", 1),
}

STORES: dict[str, tuple[str, str, float]] = {
    "flush": ("bookie_flush", "Time of a flush of a ledger directory, in milliseconds.", MS),
    "flush_entrylog": (
        "bookie_flush_entrylog",
        "Part of a flush: writing and syncing entry logs, in milliseconds.",
        MS,
    ),
    "flush_locations_index": ("bookie_flush_locations_index", "Part of a flush: the commit of the index, in ms.", MS),
    "flush_size": ("bookie_flush_size", "Bytes of entries that a flush wrote.", 1),
    "flush_readers": (
        "pybookie_flush_readers_wait_seconds",
        "Time that a flush waited for slow readers to release the memory that it needs.",
        S,
    ),
    "logs_per_ledger": (
        "bookie_entrylogger_ENTRYLOGS_PER_LEDGER",
        "Number of entry logs that a ledger with logs of its own filled until it was closed.",
        1,
    ),
    "lookup_entry_location": ("bookie_lookup_entry_location", "Time of a look-up in the index, in milliseconds.", MS),
    "lookup_last_entry": ("pybookie_last_entry_lookup_seconds", "Time of looking up a ledger's last entry.", S),
    "read_entrylog": ("bookie_read_entry_log", "Time of a read of an entry log, including read-ahead, in ms.", MS),
    "readahead_batch_count": ("bookie_readahead_batch_count", "Entries per read from disk.", 1),
    "readahead_batch_size": ("bookie_readahead_batch_size", "Bytes of entries per read from disk.", 1),
}

DIRECTORIES: dict[str, tuple[str, str]] = {
    "add": (
        "bookie_add_entry",
        "Time of an add until it is in the write cache, including its wait for space, in milliseconds.",
    ),
    "blocked": (
        "bookie_throttled_write",
        "Time that adds waited for space in the write cache or the journal, in milliseconds.",
    ),
    "read": ("bookie_read_entry", "Time of a read from when a thread or memory serves it, in milliseconds."),
    "last": ("bookie_get_last_entry_in_ledger", "The same for reads of a ledger's last entry, in milliseconds."),
}
"""By the name in the I/O loops, for each ledger directory: metric names and help."""

Ops = Mapping[str, OpView | tuple[OpView, OpView]]


def port_families(
    windows: Windows, loops: Sequence[tuple[Mapping[str, tuple[OpView, OpView]], list[OpView]]]
) -> Iterator[Family]:
    """Yield the request times of all I/O loops together. An add counts with its journal, or as answered without one."""
    for op, (names, text, scale) in REQUESTS.items():
        failed, well = [named[op][0] for named, _ in loops], [named[op][1] for named, _ in loops]
        if op == "add":
            well += [view for _, adds in loops for view in adds]
        for name in names:
            yield windows.family(name, text, [Series(failed, well)], scale)


def journal_families(
    windows: Windows, journals: Sequence[tuple[Labels, Ops]], loops: Sequence[tuple[object, list[OpView]]]
) -> Iterator[Family]:
    """Yield the families of each journal; `loops` know when its adds were durable."""
    parts = [
        (labels, {**ops, "added": [adds[index] for _, adds in loops if index < len(adds)]})
        for index, (labels, ops) in enumerate(journals)
    ]
    for op, (name, text, scale) in JOURNALS.items():
        yield windows.family(f"bookie_journal_{name}", text, [_series(ops[op], labels) for labels, ops in parts], scale)


def store_families(windows: Windows, stores: Sequence[tuple[Labels, Ops]]) -> Iterator[Family]:
    """Yield the families of each ledger directory."""
    for op, (name, text, scale) in STORES.items():
        yield windows.family(name, text, [_series(ops[op], labels) for labels, ops in stores if op in ops], scale)


def directory_times(
    windows: Windows, directories: Sequence[Labels], loops: Sequence[Sequence[DirectoryView]]
) -> Iterator[Family]:
    """Yield the times of each ledger directory, of all I/O loops together."""
    parts = [(labels, [loop[at] for loop in loops if at < len(loop)]) for at, labels in enumerate(directories)]
    for op, (name, text) in DIRECTORIES.items():
        series = [
            Series([view.times[op][0] for view in views], [view.times[op][1] for view in views], labels)
            for labels, views in parts
        ]
        yield windows.family(name, text, series, MS)


def entry_sizes(windows: Windows, loops: Sequence[Sequence[DirectoryView]]) -> Iterator[Family]:
    """Yield the entry sizes of all directories together."""
    views = [view for loop in loops for view in loop]
    for name, text, sizes in (
        ("ADD", "Bytes of an entry added.", [view.added for view in views]),
        ("READ", "Bytes of an entry in a response; for a batch, their mean.", [view.answered for view in views]),
    ):
        yield windows.family(f"bookie_BOOKIE_{name}_ENTRY_BYTES", text, [Series((), sizes)])


def _series(views: OpView | tuple[OpView, OpView] | list[OpView], labels: Labels) -> Series:
    if isinstance(views, OpView):
        return Series((), (views,), labels)
    if isinstance(views, list):
        return Series((), views, labels)
    return Series(views[:1], views[1:], labels)
