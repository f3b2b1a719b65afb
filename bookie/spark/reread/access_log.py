"""A bookie's access log (docs/operations.md): reads in the order of their answers. Memory: all lines at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bookie.errors import IllegalOperation

__all__ = ["AccessLog", "files_of", "read_log"]

COLUMNS = "ts_us,op,ledger_id,entry_id,size,source,log_id,position,client,latency_us"
READS = {"read", "batch_read"}
Row = tuple[int, str, int, int, int, str, str]
"""Time, operation, ledger, entry, bytes, source, client's address."""


@dataclass(frozen=True, slots=True)
class AccessLog:
    """Reads of what is on disk: (ledger, entry, entries, client). Sizes are of records: an entry and its length."""

    reads: list[tuple[int, int, int, str]]
    record_bytes: dict[int, int]
    """By ledger, the mean."""
    last: dict[int, int]
    """By ledger, the last entry that any line tells of."""
    lines: int
    from_write_cache: int
    from_disk: int


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Each log's older files (`.2`, `.1`) before it. IllegalOperation: there is none."""
    found: list[Path] = []
    for path in paths:
        older = [one for one in path.parent.glob(f"{path.name}.*") if one.suffix[1:].isdigit()]
        found += sorted(older, key=lambda one: -int(one.suffix[1:]))
        if path.is_file():
            found.append(path)
        elif not older:
            raise IllegalOperation(f"{path}: no such file; accessLogFile of a bookie says where its access log is")
    return found


def read_log(paths: Iterable[Path]) -> AccessLog:
    """All of it, sorted by time. IllegalOperation names a line that is none."""
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
    """Of an entry, where only batches were read: a reader who goes on begins behind the batch before."""
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
                raise IllegalOperation(f"{path}: no access log of a bookie: its first line is not {COLUMNS}")
            for number, line in enumerate(file, 2):
                try:
                    at, op, ledger, entry, size, source, _, _, client, _ = line.split(",")
                    yield int(at), op, int(ledger), int(entry), int(size), source, client.rpartition(":")[0]
                except ValueError:
                    if not line.endswith("\n"):
                        continue  # the bookie is just writing it
                    raise IllegalOperation(f"{path} line {number} is no line of an access log: {line[:60]!r}") from None
