"""`python -m perf.index_rebuild`: rebuilding a location index, compared with a plain sequential read of the same entry
logs.

Logs are as a flush writes them (ledgers and entries ascending) or as an interleaved bookie does (entries of many
ledgers in the order of arrival). Cold: the files were dropped from the page cache; warm: they have just been read.
Prints one JSON object per row; `ratio` is the rebuild's rate in bytes per second relative to the read's.
"""

import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from bookie.storage.tools.log_files import entry_logs
from bookie.storage.tools.rebuild_index import rebuild_index
from perf.side_by_side.card import ROOT

DATA = ROOT / "build/perf/index-rebuild"
MIB = 1 << 20
CHUNK = 4 * MIB
LEDGERS = 1000
A_LEDGER = 500  # entries of one ledger per flush


def records(first: int, size: int, count: int, *, interleaved: bool) -> bytes:
    """Return `count` records with entries of `size` bytes; the first is record `first` of all."""
    kind = np.dtype([("length", ">u4"), ("ledger", ">i8"), ("entry", ">i8"), ("rest", f"V{size - 16}")])
    rows = np.zeros(count, kind)
    at = np.arange(first, first + count)
    rows["length"] = size
    if interleaved:
        rows["ledger"], rows["entry"] = at % LEDGERS, at // LEDGERS
    else:
        flush, within = np.divmod(at, LEDGERS * A_LEDGER)
        rows["ledger"], rows["entry"] = within // A_LEDGER, flush * A_LEDGER + within % A_LEDGER
    return rows.tobytes()


def make_logs(directory: Path, size: int, mib: int, *, interleaved: bool) -> None:
    """Write entry logs of 512 MiB, synced, without ledgers maps."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.glob("*.log"):
        path.unlink()
    step = 16 * MIB // (size + 4)
    done = 0
    for log_id in range(max(mib // 512, 1)):
        with (directory / f"{log_id:x}.log").open("wb") as file:
            file.write(b"BKLO\0\0\0\1".ljust(1024, b"\0"))
            while file.tell() < min(mib, 512) * MIB:
                file.write(records(done, size, step, interleaved=interleaved))
                done += step
            file.flush()
            os.fsync(file.fileno())


def each_open(directory: Path) -> Iterator[int]:
    """Yield an open descriptor of each log in turn."""
    for log in entry_logs(directory):
        fd = os.open(log.path, os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)


def forget(directory: Path) -> None:
    """Drop the logs from the page cache."""
    for fd in each_open(directory):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def read_all(directory: Path) -> float:
    """Return the seconds of a plain read, 4 MiB per call into one buffer."""
    buffer = bytearray(CHUNK)
    begun = time.perf_counter()
    for fd in each_open(directory):
        at = 0
        while got := os.preadv(fd, [buffer], at):
            at += got
    return time.perf_counter() - begun


def rebuild(directory: Path) -> float:
    """Return the seconds of a rebuild, including its commits and syncs."""
    begun = time.perf_counter()
    rebuild_index(directory, directory / "locations.lmdb", records=[])
    return time.perf_counter() - begun


def row(directory: Path, *, cold: bool, rounds: int) -> dict[str, object]:
    """Measure reading and rebuilding in turn; return medians."""
    reads: list[float] = []
    rebuilds: list[float] = []
    for _ in range(rounds):
        for run, seconds in ((read_all, reads), (rebuild, rebuilds)):
            if cold:
                forget(directory)
            seconds.append(run(directory))
    size = sum(log.bytes for log in entry_logs(directory))
    read, built = statistics.median(reads), statistics.median(rebuilds)
    return {
        "cache": "cold" if cold else "warm",
        "mib": size // MIB,
        "read_mb_s": round(size / read / 1e6),
        "rebuild_mb_s": round(size / built / 1e6),
        "ratio": round(read / built, 2),
    }


@click.command()
@click.option("--mib", default=1024, show_default=True, help="Size of the entry logs in MiB.")
@click.option(
    "--size",
    "sizes",
    default=[1024],
    show_default=True,
    multiple=True,
    help="Size of an entry in bytes; may be repeated.",
)
@click.option("--order", "orders", default=["flushed", "interleaved"], show_default=True, multiple=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(mib: int, sizes: list[int], orders: list[str], rounds: int, directory: Path) -> None:
    """Print a row for each size, order and state of the page cache."""
    for size in sizes:
        for order in orders:
            make_logs(directory, size, mib, interleaved=order == "interleaved")
            for cold in (True, False):
                print(json.dumps({"entry_bytes": size, "order": order, **row(directory, cold=cold, rounds=rounds)}))
    forget(directory)


if __name__ == "__main__":
    main()
