"""Parses a bookie's access log (docs/operations.md) into reads, in the order of their answers. All lines are held in
memory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bookie.errors import IllegalOperation

__all__ = ["AccessLog", "files_of", "read_log"]

COLUMNS = "ts_us,op,ledger_id,entry_id,size,source,log_id,position,client,latency_us"
READS = {"read", "batch_read"}
Row = tuple[int, str, int, int, int, str, str]
"""Time in microseconds, operation, ledger, entry, bytes, source, address of the client."""


@dataclass(frozen=True, slots=True)
class AccessLog:
    """The reads that missed the write cache, as (ledger, entry, number of entries, client). Sizes are those of
    records: an entry and its length field.
    """

    reads: list[tuple[int, int, int, str]]
    record_bytes: dict[int, int]
    """The mean size of a record by ledger."""
    last: dict[int, int]
    """The last entry by ledger that occurs in any line."""
    lines: int
    from_write_cache: int
    from_disk: int


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files of each log, rotated ones (`.2`, `.1`) first.

    Raises:
        IllegalOperation: there is no such log.
    """
    found: list[Path] = []
    for path in paths:
        older = [one for one in path.parent.glob(f"{path.name}.*") if one.suffix[1:].isdigit()]
        found += sorted(older, key=lambda one: -int(one.suffix[1:]))
        if path.is_file():
            found.append(path)
        elif not older:
            raise IllegalOperation(f"{path}: no such file; the key accessLogFile of a bookie names its access log")
    return found


def read_log(paths: Iterable[Path]) -> AccessLog:
    """Return the content of all files, sorted by time.

    Raises:
        IllegalOperation: a line is not one of an access log.
    """
    rows = sorted(_rows(paths))
    sizes: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    for _, op, ledger, entry, size, *_ in rows:
        if op in {"add", "read"}:
            known = sizes.setdefault(ledger, [0, 0])
            known[0] += size
            known[1] += 1
        last[ledger] = max(last.get(ledger, 0), entry)
    for ledger, size in _sizes_by_batches(row for row in rows if row[2] not in sizes):
        sizes[ledger] = [size, 1]
    whole = [sum(column) for column in zip(*sizes.values(), strict=True)] or [1024, 1]
    mean = {ledger: max(round(total / count), 16) + 4 for ledger, (total, count) in sizes.items()}
    usual = max(round(whole[0] / whole[1]), 16) + 4
    reads, cached, disk = [], 0, 0
    for _, op, ledger, entry, size, source, client in rows:
        if op not in READS:
            continue
        if source == "write_cache":
            cached += 1
            continue
        disk += source == "disk"
        record = mean.setdefault(ledger, usual)
        count = max(1, round(size / (record - 4))) if op == "batch_read" else 1
        last[ledger] = max(last[ledger], entry + count - 1)
        reads.append((ledger, entry, count, client))
    return AccessLog(reads, mean, last, len(rows), cached, disk)


def _sizes_by_batches(rows: Iterable[Row]) -> Iterator[tuple[int, int]]:
    """Estimate the size of an entry of ledgers with batch reads only: a sequential reader begins where the last batch
    ended.
    """
    before: dict[tuple[int, str], tuple[int, int]] = {}
    found: dict[int, list[float]] = {}
    for _, op, ledger, entry, size, _, client in rows:
        if op == "batch_read":
            first, bytes_before = before.get((ledger, client), (entry, 0))
            if entry > first:
                found.setdefault(ledger, []).append(bytes_before / (entry - first))
            before[ledger, client] = entry, size
    return ((ledger, round(median(each))) for ledger, each in found.items())


def _rows(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        with path.open() as file:
            if file.readline().rstrip("\n") != COLUMNS:
                raise IllegalOperation(f"{path}: not an access log of a bookie: its first line is not {COLUMNS}")
            for number, line in enumerate(file, 2):
                try:
                    at, op, ledger, entry, size, source, _, _, client, _ = line.split(",")
                    yield int(at), op, int(ledger), int(entry), int(size), source, client.rpartition(":")[0]
                except ValueError:
                    if not line.endswith("\n"):
                        continue  # the bookie is still writing this line
                    raise IllegalOperation(
                        f"{path}, line {number}: not a line of an access log: {line[:60]!r}"
                    ) from None
