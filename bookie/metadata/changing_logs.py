"""Change a log: read it, change it, write it by compare-and-set, and repeat if another client was faster.

Any thread may call; calls block. Every change may be repeated. A writer that names itself and its batch gets the
batch into the log exactly once, whatever happens to answers, processes and clocks, because the list of ledgers and
the mark of the batch are one value of the metadata store.
"""

import random
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from bookie.errors import IncorrectParameter, LogExists, MetadataVersionConflict, NoSuchLog
from bookie.metadata.driver import Logs, Versioned
from bookie.metadata.records.logs import Commit, Log, check_name, without

__all__ = ["append", "forget", "remove", "replace_all", "touch", "update"]

TRIES = 200
PAUSE_S_MAX = 0.05

Batch = tuple[str, int]
"""A writer and the number of its batch, which is higher for later batches."""


def update(logs: Logs, name: str, change: Callable[[Log], Log], *, create: bool = False) -> Versioned[Log]:
    """Write the result of `change(log)`, unless it equals the log. `change` may be called several times.

    Raises NoSuchLog if the log does not exist and `create` is false, and MetadataVersionConflict if other clients
    were faster 200 times in a row.
    """
    check_name(name)
    for _ in range(TRIES):
        try:
            found = logs.read(name)
        except NoSuchLog:
            if not create:
                raise
            found = None
        old = found.value if found else Log()
        new = change(old)
        try:
            if found is None:
                return logs.create(name, new)
            return found if new == old else logs.write(name, new, found.version)
        except (MetadataVersionConflict, LogExists):
            time.sleep(random.uniform(0, PAUSE_S_MAX))
        except NoSuchLog:
            if not create:
                raise
    raise _lost_too_often(name)


def append(logs: Logs, name: str, ledgers: Iterable[int], batch: Batch | None = None) -> Versioned[Log]:
    """Append ledgers to a log, which is created if needed. Ledgers that are in the list already stay in place.

    If the log already holds `batch`, or a later one of the same writer, nothing changes; the entries in those of
    `ledgers` that are not in the result were then written in vain.
    """
    wanted = tuple(ledgers)

    def change(log: Log) -> Log:
        if _committed(log, batch):
            return log
        there = frozenset(log.ledgers)
        return _marked(replace(log, ledgers=log.ledgers + tuple(one for one in wanted if one not in there)), batch)

    return update(logs, name, change, create=True)


def replace_all(
    logs: Logs, name: str, ledgers: Iterable[int], batch: Batch | None = None
) -> tuple[Versioned[Log], tuple[int, ...]]:
    """Replace the list of a log, and return also the ledgers that it no longer has. `batch` is that of `append`."""
    wanted, before = tuple(ledgers), [Log()]

    def change(log: Log) -> Log:
        before[0] = log
        if _committed(log, batch):
            return log
        settled = min((log.settled, *without(log, wanted)))  # they are orphans until they are deleted
        return _marked(replace(log, ledgers=wanted, settled=settled), batch)

    now = update(logs, name, change, create=True)
    return now, without(before[0], now.value.ledgers)


def remove(logs: Logs, name: str, ledgers: Collection[int]) -> Versioned[Log]:
    """Remove ledgers from a log's list; the ledgers themselves are not deleted. Raises NoSuchLog.

    A ledger that a Spark sink wrote for this log may later be deleted as an orphan.
    """
    return update(logs, name, lambda log: replace(log, ledgers=without(log, ledgers)))


def touch(logs: Logs, name: str) -> Versioned[Log]:
    """Give a log a new version without changing it; create it if it does not exist.

    Changes that began before cannot succeed any more without reading the log again.
    """
    check_name(name)
    for _ in range(TRIES):
        try:
            found = logs.read(name)
            return logs.write(name, found.value, found.version)
        except NoSuchLog:
            with suppress(LogExists):
                return logs.create(name, Log())
        except MetadataVersionConflict:
            time.sleep(random.uniform(0, PAUSE_S_MAX))
    raise _lost_too_often(name)


def forget(logs: Logs, name: str, writer: str) -> Versioned[Log]:
    """Drop the mark of a writer that will not come back; if it repeats a batch, that counts as new. Raises
    NoSuchLog.
    """

    def change(log: Log) -> Log:
        return replace(log, commits={one: mark for one, mark in log.commits.items() if one != writer})

    return update(logs, name, change)


def _lost_too_often(name: str) -> MetadataVersionConflict:
    return MetadataVersionConflict(f"log {name!r} was changed by others {TRIES} times in a row: try again")


def _committed(log: Log, batch: Batch | None) -> bool:
    mark = log.commits.get(batch[0]) if batch else None
    return batch is not None and mark is not None and mark.batch >= batch[1]


def _marked(log: Log, batch: Batch | None) -> Log:
    if batch is None:
        return log
    writer, number = batch
    if number < 0:
        raise IncorrectParameter(f"batch {number} of writer {writer!r} must be at least 0")
    mark = Commit(number, time.time_ns() // 1_000_000)
    return replace(log, commits={**log.commits, writer: mark})
