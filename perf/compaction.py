"""Compaction compared with a plain sequential copy of the same bytes, on the file system of a directory.

    python -m perf.compaction DIRECTORY [--mib 512] [--entry 1024] [--ledgers 64] [--dead 0.0]

Writes entries of many ledgers into closed logs, deletes a share of the ledgers, and compacts all logs without a rate
limit. The copy reads the same logs in pieces of 4 MiB and writes the amount that compaction moved, with one sync per
log. Prints the bytes moved per second by both, and their ratio; before each, the logs are dropped from the page cache.
"""

import argparse
import os
import shutil
import time
from pathlib import Path

from bookie._fast.store.direct import Direct
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import JournalSettings, StorageSettings

MIB = 1 << 20


def opened(root: Path) -> LedgerStorage:
    """Open a storage without threads; its journal is replayed."""
    storage = LedgerStorage(
        StorageSettings(
            ledger_directories=(root / "ledgers",),
            write_cache_bytes=128 * MIB,
            read_cache_bytes=8 * MIB,
            log_bytes_max=128 * MIB,
        ),
        JournalSettings(directories=(root / "journal",), write_data=False),
    )
    storage.open()
    return storage


def fill(root: Path, total: int, size: int, ledgers: int) -> None:
    """Write entries of all ledgers in turn, as clients do."""
    storage = opened(root)
    assert storage.stores is not None
    assert storage.checkpoints is not None
    direct = Direct(storage.stores)
    body = os.urandom(size - 24)
    for at in range(total // (size + 4)):
        ledger, entry = at % ledgers, at // ledgers
        direct.add(ledger.to_bytes(8, "big") + entry.to_bytes(8, "big") + bytes(8) + body)
        if at % (48 * MIB // size) == 0:
            storage.checkpoints.flush_alone()
    storage.checkpoints.flush_alone()
    direct.close()
    storage.stop()


def forget(paths: list[Path]) -> int:
    """Drop files from the page cache; return their size in bytes."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    return sum(path.stat().st_size for path in paths)


def copy(paths: list[Path], target: Path, share: float) -> float:
    """Return the seconds to read all logs and to write the live share of them."""
    target.mkdir()
    begun = time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as source, (target / path.name).open("wb", buffering=0) as copied:
            while data := source.read(4 * MIB):
                copied.write(memoryview(data)[: int(len(data) * share)])
            os.fdatasync(copied.fileno())
    taken = time.perf_counter() - begun
    shutil.rmtree(target)
    return taken


def main() -> None:
    """Run one measurement."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("directory", type=Path)
    options.add_argument("--mib", type=int, default=512)
    options.add_argument("--entry", type=int, default=1024)
    options.add_argument("--ledgers", type=int, default=64)
    options.add_argument("--dead", type=float, default=0.0)
    given = options.parse_args()
    root = given.directory / "compaction"
    shutil.rmtree(root, ignore_errors=True)
    fill(root, given.mib * MIB, given.entry, given.ledgers)
    storage = opened(root)
    [collector] = storage.collectors()
    dead = list(range(int(given.ledgers * given.dead)))
    collector.delete_ledgers(dead)
    closed = collector.closed_logs().ids.tolist()
    paths = [Path(collector.directory) / f"{log_id:x}.log" for log_id in closed]
    collector.live_bytes()
    size = forget(paths)
    copied = copy(paths, root / "copy", 1 - len(dead) / given.ledgers)
    forget(paths)
    begun = time.perf_counter()
    moved = sum(collector.compact(log_id).moved_bytes for log_id in closed)
    collector.finish()
    taken = time.perf_counter() - begun
    print(f"{len(closed)} logs of {size / MIB:.0f} MiB, {moved / MIB:.0f} MiB moved")
    print(f"compaction {moved / MIB / taken:.0f} MiB/s, plain copy {moved / MIB / copied:.0f} MiB/s")
    print(f"ratio {copied / taken:.2f}")
    storage.stop()
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
