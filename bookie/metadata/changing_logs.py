"""How a log changes: read, change, compare-and-set, again if somebody else was first. Any thread; calls block.

Every change may be repeated. A writer that names itself and its batch has the batch in the log once, whatever happens
to answers, processes and clocks: the list and the mark of the batch are one value of the metadata store.
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
"""A writer and the number of its batch; a later batch has a higher one."""


def update(logs: Logs, name: str, change: Callable[[Log], Log], *, create: bool = False) -> Versioned[Log]:
    """Write what `change` makes of the log, unless it is the same; it may be called several times.

    NoSuchLog unless it may `create` it; MetadataVersionConflict if others were first two hundred times.
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
    """Put `ledgers` at the end; what is in the list stays where it is. The log is made if there is none.

    With a `batch` that the log holds already, or one behind it, nothing changes: those of `ledgers` that are not in
    the result were written for nothing.
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
    """Let `ledgers` be the list, and say what it was before; with a batch as in `append`."""
    wanted, before = tuple(ledgers), [Log()]

    def change(log: Log) -> Log:
        before[0] = log
        if _committed(log, batch):
            return log
        settled = min((log.settled, *without(log, wanted)))  # until they are deleted they are orphans
        return _marked(replace(log, ledgers=wanted, settled=settled), batch)

    now = update(logs, name, change, create=True)
    return now, without(before[0], now.value.ledgers)


def remove(logs: Logs, name: str, ledgers: Collection[int]) -> Versioned[Log]:
    """Take `ledgers` out of the list; they stay where they are. NoSuchLog.

    One that a sink of Spark's wrote for this log may then be deleted as an orphan, when its time is over.
    """
    return update(logs, name, lambda log: replace(log, ledgers=without(log, ledgers)))


def touch(logs: Logs, name: str) -> Versioned[Log]:
    """The log as it is, at a new version; made if there was none.

    Then no change that was under way before can succeed any more without reading the log again.
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
    """Drop the mark of a writer that will not come back: a batch it repeated would be taken for new. NoSuchLog."""

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
