"""Comparison of an index with the entry logs: does every run point at records of exactly those entries?

This is the local consistency check of a stopped bookie. It reads only, on request at a limited rate, so that it may
run beside other bookies of the machine. Records that no run points at are normal: they are copies, or entries of
deleted ledgers.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bookie._fast.index.view import Run
from bookie.errors import ToolRefused
from bookie.storage.tools.read_index import reading
from bookie.storage.tools.verify_index import verify_index

__all__ = ["check_index", "IndexChecked", "WrongPlace"]

HEADER = np.dtype([("length", ">u4"), ("ledger", ">i8"), ("entry", ">i8")])
WRONG_SHOWN = 100
LOGS_OPEN_MAX = 64
SPAN_BYTES_MAX = 4 << 20
"""A run up to this size is read in one piece; of a longer one only the headers of its records are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongPlace:
    """An entry that is not where the index says."""

    ledger: int
    entry: int
    log_id: int
    offset: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChecked:
    """The result of comparing an index with its logs."""

    runs: int
    entries: int
    ledgers: int
    """Ledgers with entries."""
    wrong_count: int
    wrong: tuple[WrongPlace, ...]
    """The first ones only."""
    missing_logs: tuple[int, ...]
    without_record: tuple[int, ...]
    """Ledgers that have entries but no ledger record, so that nobody can read them."""

    @property
    def sound(self) -> bool:
        """Whether every entry is where the index says, and its ledger has a record."""
        return not (self.wrong_count or self.without_record)


def check_index(
    index: Path,
    directory: Path,
    *,
    entries_per_s: float = 0.0,
    on_run: Callable[[int], None] = lambda _: None,
) -> IndexChecked:
    """Read the header of every record that the index in `index` points at, in the logs of `directory` (a `current`
    directory).

    `entries_per_s` limits the rate; 0 means no limit. `on_run` is called with the number of entries checked so far.
    Raises ToolRefused if the index itself is damaged, because there is nothing to compare then.
    """
    verified = verify_index(index)
    if not verified.sound:
        raise ToolRefused(verified.problems[0])
    runs = entries = wrong_count = 0
    wrong: list[WrongPlace] = []
    ledgers: set[int] = set()
    begun = time.monotonic()
    with reading(index) as file, _Logs(directory) as logs:
        for run in file.runs():
            runs += 1
            ledgers.add(run.ledger)
            looked_at, found = _check_run(run, logs)
            entries += looked_at
            wrong_count += len(found)
            wrong += found[: WRONG_SHOWN - len(wrong)]
            on_run(entries)
            ahead = entries / entries_per_s - (time.monotonic() - begun) if entries_per_s > 0 else 0.0
            if ahead > 0:
                time.sleep(ahead)
        known = {row.ledger for row in file.ledgers()}
    return IndexChecked(
        runs=runs,
        entries=entries,
        ledgers=len(ledgers),
        wrong_count=wrong_count,
        wrong=tuple(wrong),
        missing_logs=tuple(sorted(logs.missing)),
        without_record=tuple(sorted(ledgers - known)),
    )


class _Logs:
    """A context manager with the descriptors of the most recently read logs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: OrderedDict[int, int] = OrderedDict()
        self.missing: set[int] = set()

    def descriptor(self, log_id: int) -> int | None:
        """Return the descriptor of a log, or None if there is no such log."""
        if log_id in self.missing:
            return None
        if log_id not in self._open:
            try:
                self._open[log_id] = os.open(self._directory / f"{log_id:x}.log", os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                self.missing.add(log_id)
                return None
            if len(self._open) > LOGS_OPEN_MAX:
                os.close(self._open.popitem(last=False)[1])
        self._open.move_to_end(log_id)
        return self._open[log_id]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


def _check_run(run: Run, logs: _Logs) -> tuple[int, list[WrongPlace]]:
    """Return the number of entries in the run, and those that are not where it says."""
    lengths = np.array(run.lengths, np.int64)
    slots = np.flatnonzero(lengths)
    sizes = lengths[slots]
    offsets = run.offset + np.concatenate([[0], np.cumsum(sizes + 4)[:-1]])
    fd = logs.descriptor(run.log_id)
    if fd is None:
        whys = [f"{run.log_id:x}.log is missing"] * len(slots)
    else:
        heads, whole = _heads(fd, offsets, sizes)
        good = (heads["length"] == sizes) & (heads["ledger"] == run.ledger) & (heads["entry"] == run.first + slots)
        whys = ["" if fine else _why(head, there) for fine, head, there in zip(good & whole, heads, whole, strict=True)]
    places = zip((run.first + slots).tolist(), offsets.tolist(), whys, strict=True)
    return len(slots), [
        WrongPlace(ledger=run.ledger, entry=entry, log_id=run.log_id, offset=offset, why=why)
        for entry, offset, why in places
        if why
    ]


def _heads(fd: int, offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """Return the header of each record, zeros where there is none, and whether the file holds the complete record."""
    end = os.fstat(fd).st_size
    start, span = int(offsets[0]), int(offsets[-1] + sizes[-1] + 4 - offsets[0])
    raw = bytearray(len(offsets) * HEADER.itemsize)
    data = os.pread(fd, span, start) if span <= SPAN_BYTES_MAX else None
    for i, offset in enumerate(offsets.tolist()):
        at = offset - start
        head = data[at : at + HEADER.itemsize] if data is not None else os.pread(fd, HEADER.itemsize, offset)
        raw[i * HEADER.itemsize : i * HEADER.itemsize + len(head)] = head
    return np.frombuffer(raw, HEADER), offsets + sizes + 4 <= end


def _why(head: np.void, whole: np.bool_) -> str:
    if not whole:
        return "the log ends before the end of the record"
    return f"entry {int(head['entry'])} of ledger {int(head['ledger'])}, {int(head['length'])} bytes, is there instead"
