"""`python -m perf.log_by_reference`: an entry log made of what the journal holds already, or written from memory.

A journal of records of ten ledgers in turn lies on the disk and not in the page cache, because a bookie writes it past
that; the write cache holds the same records, ledger by ledger. An entry log is made in four ways, and synced:

    memory     copies the write cache to an aligned buffer and writes that past the page cache, as a bookie does
    ranges     copy_file_range(2) of each record, ledger by ledger
    whole      copy_file_range(2) of the whole journal, which leaves the records of all ledgers mixed
    reflink    FICLONE of the whole journal, which only some file systems have

Prints a JSON object for each way: seconds, CPU seconds including the kernel's, and MB/s.
"""

import errno
import fcntl
import json
import mmap
import os
import shutil
import time
from pathlib import Path

import click

from perf.side_by_side.card import ROOT, disk_of

__all__ = ["MAKERS", "records"]

LEDGERS = 10
BUFFER_BYTES = 2 << 20
FICLONE = 0x40049409


def records(total: int, size: int) -> list[int]:
    """Return the offsets of the records in the journal, ledger by ledger."""
    count = total // size
    return [at * size for ledger in range(LEDGERS) for at in range(ledger, count, LEDGERS)]


def by_memory(_journal: int, log: int, cache: memoryview, _size: int) -> None:
    """Write the write cache, through a buffer."""
    fcntl.fcntl(log, fcntl.F_SETFL, os.O_DIRECT)
    with mmap.mmap(-1, BUFFER_BYTES) as buffer:
        for at in range(0, len(cache), BUFFER_BYTES):
            buffer[:] = cache[at : at + BUFFER_BYTES]
            os.pwrite(log, buffer, at)


def by_ranges(journal: int, log: int, cache: memoryview, size: int) -> None:
    """Copy each record."""
    for at in records(len(cache), size):
        os.copy_file_range(journal, log, size, offset_src=at)


def by_whole(journal: int, log: int, cache: memoryview, _size: int) -> None:
    """Copy the file."""
    done = 0
    while done < len(cache):
        done += os.copy_file_range(journal, log, len(cache) - done)


def by_reflink(journal: int, log: int, _cache: memoryview, _size: int) -> None:
    """Share the blocks of the file."""
    fcntl.ioctl(log, FICLONE, journal)


MAKERS = {"memory": by_memory, "ranges": by_ranges, "whole": by_whole, "reflink": by_reflink}


def measure(way: str, directory: Path, cache: memoryview, size: int) -> dict[str, float | str]:
    """Make a journal, then an entry log in one way; return what it took."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "journal").write_bytes(cache)
    journal = os.open(directory / "journal", os.O_RDONLY)
    log = os.open(directory / "log", os.O_CREAT | os.O_RDWR)
    os.fsync(journal)
    os.posix_fadvise(journal, 0, 0, os.POSIX_FADV_DONTNEED)
    begun, spent = time.perf_counter(), time.process_time()
    try:
        MAKERS[way](journal, log, cache, size)
        os.fdatasync(log)
    except OSError as error:
        return {"failed": errno.errorcode.get(error.errno or 0, str(error))}
    finally:
        os.close(journal)
        os.close(log)
    took, spent = time.perf_counter() - begun, time.process_time() - spent
    return {"s": round(took, 3), "cpu_s": round(spent, 3), "mb_s": round(len(cache) / took / 1e6)}


@click.command()
@click.option("--directory", type=click.Path(path_type=Path), default=ROOT / "build/perf/reference", show_default=True)
@click.option("--mib", default=256, show_default=True, help="Size of the journal.")
@click.option("--size", "sizes", default=(1064, 4136), show_default=True, multiple=True, help="Bytes of a record.")
@click.option("--rounds", default=3, show_default=True)
def main(directory: Path, mib: int, sizes: tuple[int, ...], rounds: int) -> None:
    """Measure each way `rounds` times, in turn."""
    with mmap.mmap(-1, mib << 20) as memory:
        cache = memoryview(memory)
        cache[:] = bytes(range(256)) * (len(cache) // 256)
        for size in sizes:
            for _ in range(rounds):
                for way in MAKERS:
                    found = measure(way, directory, cache, size)
                    print(json.dumps({"way": way, "record": size, "disk": disk_of(directory), **found}), flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        cache.release()


if __name__ == "__main__":
    main()
