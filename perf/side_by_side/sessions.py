"""One server from an empty directory to its end, with the loads applied to it. Yields a result for each row.

Adds get a fresh server per row. Reads share one: it is filled, its memory is measured, it is stopped (so that
everything is in entry logs) and restarted on the same directory with empty caches.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perf.side_by_side.drive import Result, bkload, bound_server, drop_pages, kept_apart, program
from perf.side_by_side.rows import Row
from perf.side_by_side.servers import Server

SIZE = 1024
ENTRY_BYTES = 36 + SIZE
IN_LOG_BYTES = 4 + ENTRY_BYTES
CACHED_LEDGER = 1
COLD_LEDGER = 100
ADD_BOUNDS = {"add": "add_bound", "lone": "lone_add"}
MakeServer = Callable[[Path], Server]
Measured = Iterator[tuple[str, Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The durations and sizes of the loads."""

    directory: Path
    seconds: float
    warmup: float
    cold_entries: int
    cached_entries: int = 150_000


def fresh(directory: Path) -> Path:
    """Create an empty directory, with the disk idle."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    os.sync()
    return directory


def adds(make: MakeServer, rows: Sequence[Row], plan: Plan) -> Measured:
    """Run each row on a server of its own, long enough that flushes run at the same time."""
    for row in rows:
        server = make(fresh(plan.directory / "server"))
        try:
            server.start(row.settings)
            yield row.name, add_load(row, plan, server.port, server.pid)
        finally:
            server.stop()


def add_load(row: Row, plan: Plan, port: int, pid: int) -> Result:
    """Return the load of an add row."""
    return bkload(*row.load, port=port, pid=pid, size=row.size, warmup=plan.warmup, seconds=plan.seconds)


def cached_load(row: Row, plan: Plan, port: int, pid: int) -> Result:
    """Return the load of a row that reads from cache."""
    with kept_apart(pid) if row.apart else contextlib.nullcontext():
        return bkload(*row.load, port=port, pid=pid, size=SIZE, first_ledger=CACHED_LEDGER,
                      entries=plan.cached_entries, warmup=min(plan.warmup, 5), seconds=plan.seconds / 2,
                      verify=1009)  # fmt: skip


def read_through(server: Server, ledger: int, entries: int) -> Result:
    """Read a ledger once in batches, from beginning to end."""
    return bkload("batch", "--outstanding", "4", port=server.port, size=SIZE, first_ledger=ledger, entries=entries,
                  count=-(-entries // 100), verify=101)  # fmt: skip


def fill(server: Server, ledger: int, entries: int) -> None:
    """Write one ledger, entries 0 to entries - 1."""
    bkload("fill", "--outstanding", "1000", port=server.port, size=SIZE, first_ledger=ledger, entries=entries)


def disk_bytes(directories: Sequence[Path]) -> int:
    """Return the disk space of the files below a directory."""
    files = [path for directory in directories for path in directory.rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files)


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in 10^6 bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def io_bytes(pid: int, name: str) -> int:
    """Return a count of /proc/PID/io: `rchar` is what a process has read, also from the page cache;
    `write_bytes` is what it has written to disks.
    """
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)[name])


def reads(make: MakeServer, rows: Sequence[Row], plan: Plan) -> Measured:
    """Fill, measure memory, restart; then read from cache, then from disk."""
    server = make(fresh(plan.directory / "server"))
    cold = [row for row in rows if row.kind == "cold"]
    try:
        yield "start to first answer", {"seconds": server.start()}
        fill(server, CACHED_LEDGER, plan.cached_entries)
        for place in range(len(cold) + bool(cold)):
            fill(server, COLD_LEDGER + place, plan.cold_entries)
        if cold:
            read_through(server, COLD_LEDGER, plan.cold_entries)
        yield "resident memory, caches full", {"rss_mb": resident_mb(server.pid)}
        server.stop()
        written = plan.cached_entries + (len(cold) + bool(cold)) * plan.cold_entries
        yield "location index", {"bytes_per_entry": disk_bytes(server.index_directories()) / written}
        yield from cached(server, [row for row in rows if row.kind == "cached"], plan)
        if cold:
            yield from from_disk(server, cold, plan)
    finally:
        server.stop()


def cached(server: Server, rows: Sequence[Row], plan: Plan) -> Measured:
    """Run rows with the same settings on one server, whose cache is filled by reading the ledger."""
    for settings in [dict(pairs) for pairs in dict.fromkeys(tuple(row.settings.items()) for row in rows)]:
        server.start(settings)
        for _ in range(2):
            read_through(server, CACHED_LEDGER, plan.cached_entries)
        for row in rows:
            if row.settings == settings:
                yield row.name, cached_load(row, plan, server.port, server.pid)
        server.stop()


def from_disk(server: Server, rows: Sequence[Row], plan: Plan) -> Measured:
    """Let each row read a ledger of its own once.

    Another ledger was read from disk through the entire read cache before, so that code is warm (for a JIT compiler)
    and all pages of the cache have been touched, which takes long on a virtual machine.
    """
    server.start()
    drop_pages(server.entry_logs())
    yield "first ledger from disk after a start", read_through(server, COLD_LEDGER + len(rows), plan.cold_entries)
    for place, row in enumerate(rows):
        drop_pages(server.entry_logs())
        entries = plan.cold_entries // 500 * 500
        batch = int(row.load[row.load.index("--batch") + 1])
        yield row.name, bkload(*row.load, port=server.port, pid=server.pid, size=SIZE, entries=entries,
                               first_ledger=COLD_LEDGER + place, count=entries // batch)  # fmt: skip
    file = file_rate(server.entry_logs())
    for row in rows:
        yield f"bound: {row.name}", file


def file_rate(files: list[Path]) -> Result:
    """Measure reading the same entry logs sequentially, in units of entries."""
    result = program("cold_read", *files)
    return {**result, "entries_s": result["mb_s"] * 1e6 / IN_LOG_BYTES}


def bounds(rows: Sequence[Row], plan: Plan) -> Measured:
    """Run the programs that do only the I/O, under the same loads."""
    reading = [row for row in rows if row.bound == "read"]
    for spin in (False, True):
        rows_of_kind = [row for row in reading if row.spins == spin]
        if not rows_of_kind:
            continue
        with bound_server("read_bound", CACHED_LEDGER, plan.cached_entries, SIZE, int(spin)) as (port, pid):
            for row in rows_of_kind:
                yield row.name, cached_load(row, plan, port, pid)
    for row in rows:
        directory = plan.directory / "server"
        if row.bound in ADD_BOUNDS:
            with bound_server(ADD_BOUNDS[row.bound], fresh(directory)) as (port, pid):
                yield row.name, add_load(row, plan, port, pid)


def syncs(rows: Sequence[Row], plan: Plan) -> Measured:
    """Measure how often per second the disk writes and syncs a block without a client."""
    for row in rows:
        result = program("sync_rate", fresh(plan.directory / "server"), max(1, int(plan.seconds / 2)))
        yield row.name, {**result, "entries_s": result["syncs_s"]}
