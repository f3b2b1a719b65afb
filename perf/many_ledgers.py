"""A million ledgers in one directory: their memory, the time of a start that replays them, and the latency of adds
while 100,000 of them are flushed.

    python -m perf.many_ledgers DIR fill|table|start|flush [--ledgers 1000000] [--dirty 100000]

Only the storage runs, in this process, on an empty directory DIR. First, ledgers of two entries each are created and
flushed, and the memory of the process is compared with the sum of the storage's budgets. Then the storage is reopened,
an entry is added to each of `--dirty` ledgers, which are fenced so that their records change too, and the index is
dropped from the page cache. While they are flushed, another thread adds to some thousand other ledgers at random and
measures the time until each add is in the caches and the journal's group. It does the same alone before. Run `flush`
once after each `fill`.

`start` creates the ledgers if DIR is empty, and keeps all journals. Then it takes the mark away, so that the start
reads two million entries from the journals and flushes them again, and measures that start.
"""

import argparse
import contextlib
import ctypes
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from bookie._fast.store.direct import Direct, Refused
from bookie._fast.store.read_pool import ReadPoolWorkers
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import MIB, JournalSettings, StorageSettings

KEY = b"k" * 20
LEDGERS_MAX = 2_000_000
BACKUPS_MAX = 10_000
MADV_PAGEOUT = 21
PERCENTILES = (50.0, 99.0, 99.9, 100.0)
OTHERS = 2000
PAUSE_S = 100e-6
ALONE_S = 5.0


def storage_of(root: Path) -> LedgerStorage:
    """Return the storage, with small journal files that are all kept."""
    return LedgerStorage(
        StorageSettings(ledger_directories=(root / "ledgers",), index_map_bytes=1 << 36, ledgers_max=LEDGERS_MAX),
        JournalSettings(
            directories=(root / "journal",), file_bytes_max=64 * MIB, prealloc_bytes=MIB, backups_max=BACKUPS_MAX
        ),
    )


@contextlib.contextmanager
def opened(root: Path) -> Iterator[tuple[LedgerStorage, Direct]]:
    """Open the storage, and an object to add through. It is closed without a checkpoint."""
    storage = storage_of(root)
    storage.open()
    assert storage.stores is not None
    pool = ReadPoolWorkers(storage.stores, queue_max=100)
    user = Direct(storage.stores, pool)
    try:
        yield storage, user
    finally:
        user.close()
        pool.stop()
        storage.stop()


def entry(ledger: int, at: int) -> bytes:
    return ledger.to_bytes(8, "big") + at.to_bytes(8, "big") + (at - 1).to_bytes(8, "big", signed=True) + bytes(40)


def anonymous_bytes() -> int:
    """Return the anonymous memory of the process in bytes, because file pages can be reclaimed by the system."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon")]
    return int(line.split()[1]) << 10


def add(storage: LedgerStorage, user: Direct, ledger: int, at: int) -> None:
    while True:
        try:
            user.add(entry(ledger, at), KEY)
        except Refused:
            assert user.commit()
            assert storage.checkpoints is not None
            storage.checkpoints.flush_alone()
        else:
            return


def fill(root: Path, ledgers: int) -> dict[str, float]:
    """Create the ledgers; return the memory with all of them, and with full caches."""
    before = anonymous_bytes()
    with opened(root) as (storage, user):
        for at in range(2):
            for ledger in range(ledgers):
                add(storage, user, ledger, at)
        assert user.commit()
        assert storage.checkpoints is not None
        storage.checkpoints.flush_alone()
        held, budget = anonymous_bytes(), sum(storage.memory_budget().values())
    with opened(root):
        table = anonymous_bytes()
    return {"before_mib": before / MIB, "held_mib": held / MIB, "budget_mib": budget / MIB, "opened_mib": table / MIB}


def start(root: Path, ledgers: int) -> dict[str, float]:
    """Return the seconds of a start, and the entries that it replayed."""
    if not (root / "ledgers").exists():
        fill(root, ledgers)
    (root / "ledgers/current/lastMark").unlink()
    storage = storage_of(root)
    begun = time.perf_counter()
    report = storage.open()
    took = time.perf_counter() - begun
    storage.stop()
    return {"start_s": took, "entries": report.entries}


def table_bytes(root: Path, ledgers: int) -> float:
    """Return the bytes per idle ledger, in a process that did nothing else."""
    before = anonymous_bytes()
    with opened(root):
        return (anonymous_bytes() - before) / ledgers


def forget_index() -> None:
    """Evict the index's pages from memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("data.mdb"):
            begin, end = (int(at, 16) for at in line.split()[0].split("-"))
            length = min(end - begin, Path(line.split()[-1]).stat().st_size)
            libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(length), MADV_PAGEOUT)


def beside(user: Direct, ledgers: list[int], done: threading.Event, took: list[int]) -> None:
    numbers = random.Random(7)
    at = 1000
    while not done.is_set():
        at += 1
        data = entry(numbers.choice(ledgers), at)
        begun = time.perf_counter_ns()
        user.add(data, KEY)
        took.append(time.perf_counter_ns() - begun)
        if at % 200 == 0:
            user.commit()
        time.sleep(PAUSE_S)


def flush(root: Path, ledgers: int, dirty: int) -> dict[str, float]:
    """Add to `dirty` ledgers and fence them, so that as many runs and records go into the index; measure adds during
    the flush.
    """
    numbers = random.Random(11)
    with opened(root) as (storage, user):
        assert storage.stores is not None
        assert storage.checkpoints is not None
        chosen = numbers.sample(range(ledgers), dirty + OTHERS)
        fenced, others = chosen[:dirty], chosen[dirty:]
        for ledger in fenced:
            add(storage, user, ledger, 2)
        for ledger in fenced:
            while True:
                try:
                    user.fence(ledger, KEY)
                    break
                except Refused:
                    assert user.commit()
        assert user.commit()
        other = Direct(storage.stores, None)
        found = {}
        for name in ("alone", "flush"):
            done = threading.Event()
            took: list[int] = []
            adding = threading.Thread(target=beside, args=(other, others, done, took))
            forget_index()
            adding.start()
            begun = time.perf_counter()
            if name == "alone":
                time.sleep(ALONE_S)
            else:
                storage.checkpoints.flush_alone()
            found[f"{name}_s"] = time.perf_counter() - begun
            done.set()
            adding.join()
            found |= {f"{name}_adds": len(took), **percentiles(name, took)}
        other.close()
    return found


def percentiles(name: str, took: list[int]) -> dict[str, float]:
    """Return percentiles in microseconds."""
    took.sort()
    return {f"{name}_p{p:g}_us": took[min(len(took) - 1, int(len(took) * p / 100))] / 1000 for p in PERCENTILES}


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("what", choices=["fill", "table", "start", "flush"])
    parser.add_argument("--ledgers", type=int, default=1_000_000)
    parser.add_argument("--dirty", type=int, default=100_000)
    args = parser.parse_args()
    if args.what == "fill":
        found = fill(args.directory, args.ledgers)
    elif args.what == "table":
        found = {"bytes_a_ledger": table_bytes(args.directory, args.ledgers)}
    elif args.what == "start":
        found = start(args.directory, args.ledgers)
    else:
        found = flush(args.directory, args.ledgers, args.dirty)
    print(json.dumps({"what": args.what, "ledgers": args.ledgers, **{k: round(v, 2) for k, v in found.items()}}))


if __name__ == "__main__":
    main()
