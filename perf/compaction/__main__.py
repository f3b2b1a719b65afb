"""Compaction compared with a plain sequential copy of the same bytes, on the file system of a directory.

    python -m perf.compaction DIRECTORY [--mib 512] [--log-mib 128] [--entry 1024] [--ledgers 64] [--dead 0.0]
    python -m perf.compaction DIRECTORY --directories 4 --mib 832 --log-mib 64 --dead 0.5 [--rate BYTES] [--pairs 3]

Writes entries of many ledgers into closed logs, deletes a share of the ledgers, and compacts all logs without a rate
limit. The copy reads the same logs in pieces of 4 MiB and writes the amount that compaction moved, with one sync per
log. Prints the bytes moved per second by both, and their ratio; before each, the logs are dropped from the page cache.

With several directories, measures collection and compaction in all of them at once beside the same in one after the
other, and appends a row to perf/results/compaction.jsonl, of which `perf.compaction.table` makes a table.
"""

import argparse
import json
import os
import shutil
import time
from pathlib import Path

from bookie.storage.garbage.settings import GarbageSettings
from perf.compaction.at_once import at_once
from perf.compaction.stored import MIB, fill, opened
from perf.compaction.table import RESULTS, table
from perf.side_by_side.card import append, machine_card
from perf.side_by_side.drive import drop_pages


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


def beside_copy(root: Path, given: argparse.Namespace) -> None:
    """Compact in one directory, and compare it with the copy."""
    fill(root, given.mib * MIB, given.entry, given.ledgers, log_mib=given.log_mib)
    storage = opened(root, log_mib=given.log_mib)
    [collector] = storage.collectors()
    dead = list(range(int(given.ledgers * given.dead)))
    collector.delete_ledgers(dead)
    closed = collector.closed_logs().ids.tolist()
    paths = [Path(collector.directory) / f"{log_id:x}.log" for log_id in closed]
    collector.live_bytes()
    size = sum(path.stat().st_size for path in paths)
    drop_pages(paths)
    copied = copy(paths, root / "copy", 1 - len(dead) / given.ledgers)
    drop_pages(paths)
    begun = time.perf_counter()
    moved = sum(collector.compact(log_id).moved_bytes for log_id in closed)
    collector.finish()
    taken = time.perf_counter() - begun
    print(f"{len(closed)} logs of {size / MIB:.0f} MiB, {moved / MIB:.0f} MiB moved")
    print(f"compaction {moved / MIB / taken:.0f} MiB/s, plain copy {moved / MIB / copied:.0f} MiB/s")
    print(f"ratio {copied / taken:.2f}")
    storage.stop()


def main() -> None:
    """Run one measurement."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("directory", type=Path)
    options.add_argument("--mib", type=int, default=512)
    options.add_argument("--log-mib", type=int, default=128)
    options.add_argument("--entry", type=int, default=1024)
    options.add_argument("--ledgers", type=int, default=64)
    options.add_argument("--dead", type=float, default=0.0)
    options.add_argument("--directories", type=int, default=1, help="more than one: all at once beside one by one")
    options.add_argument("--rate", type=int, default=GarbageSettings().rate_bytes_per_s,
                         help="bytes that each of several directories compacts per second; 0: no limit")  # fmt: skip
    options.add_argument("--pairs", type=int, default=3, help="measurements of several directories, of each kind")
    options.add_argument("--rows", type=Path, default=RESULTS)
    given = options.parse_args()
    root = given.directory / "compaction"
    shutil.rmtree(root, ignore_errors=True)
    try:
        if given.directories == 1:
            beside_copy(root, given)
        else:
            size = {name: getattr(given, name) for name in ("directories", "mib", "log_mib", "entry", "ledgers")}
            found = at_once(root, size, given.dead, given.rate, given.pairs)
            row = {**found, "card": machine_card(given.directory)}
            append(given.rows, row)
            print("\n".join([json.dumps(row), *table([json.dumps(row)])]))
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
