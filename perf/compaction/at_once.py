"""Collection and compaction in several ledger directories at once, beside the same in one after the other."""

import shutil
import time
from pathlib import Path
from typing import Any

from bookie.storage.garbage.contracts import Directory
from bookie.storage.garbage.counters import Counters, OfDirectory
from bookie.storage.garbage.directory import LedgerDirectory
from bookie.storage.garbage.everywhere import everywhere
from bookie.storage.garbage.logs import Kind, LogCollector
from bookie.storage.garbage.settings import GarbageSettings
from perf.compaction.stored import MIB, fill, opened
from perf.side_by_side.drive import drop_pages

__all__ = ["at_once"]


def collect(directories: list[Directory], dead: list[list[int]], settings: GarbageSettings) -> None:
    """Delete ledgers, measure the logs, and compact them, in all `directories` at once."""
    everywhere(len(directories), lambda number: directories[number].delete_ledgers(dead[number]))  # type: ignore[arg-type]
    counters = Counters([OfDirectory() for _ in directories])
    logs = LogCollector(settings, directories, counters, lambda _kind, _number: True, 0)
    logs.measure()
    logs.compact(Kind.MAJOR, settings.major_threshold, None, lambda: None)


def spread(size: dict[str, int], share: float) -> list[list[int]]:
    """Return the ledgers of each directory that are deleted. They are spread evenly, because flushes write in the order
    of ledgers, so that a log would be all dead or all live otherwise.
    """
    many = size["directories"]
    of = [range(number, size["ledgers"], many) for number in range(many)]
    return [[id_ for at, id_ in enumerate(ids) if int((at + 1) * share) > int(at * share)] for ids in of]


def once(root: Path, size: dict[str, int], share: float, rate: int, *, in_turn: bool) -> tuple[float, int]:
    """Fill a storage and collect a share of its ledgers; return the seconds of that, and how many logs there were.

    Raises:
        RuntimeError: a log was left.
    """
    shutil.rmtree(root, ignore_errors=True)
    many = size["directories"]
    where = {"log_mib": size["log_mib"], "directories": many}
    fill(root, size["mib"] * MIB, size["entry"], size["ledgers"], **where)
    storage = opened(root, **where)
    settings = GarbageSettings(rate_bytes_per_s=rate)
    collectors = storage.collectors()
    logs = [Path(one.directory) / f"{log_id:x}.log" for one in collectors for log_id in one.closed_logs().ids.tolist()]
    drop_pages(logs)
    directories: list[Directory] = [LedgerDirectory(collector, settings) for collector in collectors]
    ids = spread(size, share)
    begun = time.monotonic()
    if in_turn:
        for one, mine in zip(directories, ids, strict=True):
            collect([one], [mine], settings)
    else:
        collect(directories, ids, settings)
    taken = time.monotonic() - begun
    for collector in collectors:
        collector.finish()
    storage.stop()
    left = sum(path.exists() for path in logs)
    shutil.rmtree(root)
    if left:
        raise RuntimeError(f"{left} of {len(logs)} logs were not compacted: more of each must be dead (--dead)")
    return taken, len(logs)


def at_once(root: Path, size: dict[str, int], share: float, rate: int, pairs: int) -> dict[str, Any]:
    """Measure both ways `pairs` times, in alternating order, each on a storage of its own.

    Args:
        root: A directory, which is removed.
        size: `directories`, `mib` in all, `log_mib` of each log, `entry` in bytes, and the number of `ledgers`.
        share: The share of the ledgers that is deleted.
        rate: Bytes of logs that each directory may compact in a second; 0 means no limit.
        pairs: The number of measurements of each kind.

    Returns:
        A row for the results: the sizes, the number of logs, and the seconds of each measurement.
    """
    seconds: dict[bool, list[float]] = {True: [], False: []}
    logs = 0
    for pair in range(pairs):
        for in_turn in (True, False) if pair % 2 == 0 else (False, True):
            taken, logs = once(root, size, share, rate, in_turn=in_turn)
            seconds[in_turn].append(round(taken, 3))
    figures = {"logs": logs, "in_turn_s": seconds[True], "at_once_s": seconds[False]}
    return {**size, "dead": share, "rate": rate, **figures}
