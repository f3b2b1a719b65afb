"""A million ledgers on one directory: what they take of memory, and what adds wait while 100,000 of them are flushed.

    python -m perf.many_ledgers DIR fill|table|flush [--ledgers 1000000] [--dirty 100000]

The storage alone, in this process, on an empty directory DIR. First ledgers of two entries each are made and flushed,
and the memory of the process is compared with the sum of the storage's budgets. Then the storage is opened anew, the
index goes out of the page cache, and one entry is added to each of `--dirty` ledgers; while they are flushed another
thread adds to ledgers at random and notes how long each add took until it was in the caches and the journal's group.
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

from bookie._fast.direct import Direct, Refused
from bookie._fast.read_pool import ReadPoolRoom
from bookie.storage.ledger_storage import LedgerStorage
from bookie.storage.settings import MIB, JournalSettings, StorageSettings

KEY = b"k" * 20
MADV_PAGEOUT = 21
PERCENTILES = (50.0, 99.0, 99.9, 100.0)


@contextlib.contextmanager
def opened(root: Path) -> Iterator[tuple[LedgerStorage, Direct]]:
    """The storage with small journals, and somebody who adds. Left without a checkpoint."""
    storage = LedgerStorage(
        StorageSettings(ledger_directories=(root / "ledgers",), index_map_bytes=1 << 36),
        JournalSettings(directories=(root / "journal",), file_bytes_max=64 * MIB, prealloc_bytes=MIB),
    )
    storage.open()
    assert storage.stores is not None
    pool = ReadPoolRoom(storage.stores, queue_max=100)
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
    """What the process holds, file pages aside, which are the system's to take."""
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
    """Make the ledgers; memory with all of them, with caches that were full."""
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


def table_bytes(root: Path, ledgers: int) -> float:
    """Bytes a ledger that is only known; in a process that did nothing else."""
    before = anonymous_bytes()
    with opened(root):
        return (anonymous_bytes() - before) / ledgers


def forget_index() -> None:
    """The index's pages go to the disk that they came from."""
    libc = ctypes.CDLL(None, use_errno=True)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("data.mdb"):
            begin, end = (int(at, 16) for at in line.split()[0].split("-"))
            length = min(end - begin, Path(line.split()[-1]).stat().st_size)
            libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(length), MADV_PAGEOUT)


def beside(user: Direct, ledgers: int, done: threading.Event, took: list[int]) -> None:
    numbers = random.Random(7)
    at = 1000
    while not done.is_set():
        at += 1
        data = entry(numbers.randrange(ledgers), at)
        begun = time.perf_counter_ns()
        try:
            user.add(data, KEY)
        except Refused:
            user.commit()
            continue
        took.append(time.perf_counter_ns() - begun)
        if at % 200 == 0:
            user.commit()


def flush(root: Path, ledgers: int, dirty: int) -> dict[str, float]:
    """Fence `dirty` ledgers, so that as many records change, and add beside the flush."""
    numbers = random.Random(11)
    with opened(root) as (storage, user):
        assert storage.stores is not None
        assert storage.checkpoints is not None
        for ledger in numbers.sample(range(ledgers), dirty):
            while True:
                try:
                    user.fence(ledger, KEY)
                    break
                except Refused:
                    assert user.commit()
        assert user.commit()
        other = Direct(storage.stores, None)
        done = threading.Event()
        took: list[int] = []
        adding = threading.Thread(target=beside, args=(other, ledgers, done, took))
        forget_index()
        adding.start()
        begun = time.perf_counter()
        storage.checkpoints.flush_alone()
        flushed = time.perf_counter() - begun
        done.set()
        adding.join()
        other.close()
    took.sort()
    at = {f"p{p:g}_us": took[min(len(took) - 1, int(len(took) * p / 100))] / 1000 for p in PERCENTILES}
    return {"flush_s": flushed, "adds": len(took), **at}


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("what", choices=["fill", "table", "flush"])
    parser.add_argument("--ledgers", type=int, default=1_000_000)
    parser.add_argument("--dirty", type=int, default=100_000)
    args = parser.parse_args()
    if args.what == "fill":
        found = fill(args.directory, args.ledgers)
    elif args.what == "table":
        found = {"bytes_a_ledger": table_bytes(args.directory, args.ledgers)}
    else:
        found = flush(args.directory, args.ledgers, args.dirty)
    print(json.dumps({"what": args.what, "ledgers": args.ledgers, **{k: round(v, 2) for k, v in found.items()}}))


if __name__ == "__main__":
    main()
