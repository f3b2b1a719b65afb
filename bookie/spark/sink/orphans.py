"""Ledgers that nobody will commit: those of attempts that lost, of jobs and batches that were given up or died.

A ledger is one when a sink wrote it for a log, that log does not name it, and its time is over: `orphanTtl` after its
task began. From then on no commit takes it (`commit`), so it cannot be one of a running query; a grace makes up for
clocks that differ. Before anything is deleted the log is touched, so that no commit that was under way can name it any
more. Ids grow with time, so a log remembers below which id nothing is left to judge; the next look begins there.
"""

import logging
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from bookie.client import BookKeeper
from bookie.errors import NoSuchLedgerMetadata, NoSuchLog
from bookie.spark.sink.labels import Labels, labels_of

__all__ = ["clean", "of_job"]

GRACE_MS = 600_000
OLDER_IN_A_ROW = 1000
"""So many ledgers that are older than a job, and the newest first: the rest is older too."""
log = logging.getLogger(__name__)


def clean(bk: BookKeeper, logs: Collection[str], now_ms: int | None = None) -> list[int]:
    """Delete the orphans of these logs; their ids. Reads the metadata of each ledger that was not judged before."""
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    settled: dict[str, int] = {}
    for name in logs:
        with suppress(NoSuchLog):
            settled[name] = bk.logs.get(name).value.settled
    if not settled:
        return []
    floor = min(settled.values())
    over: dict[str, list[int]] = {name: [] for name in settled}
    young: dict[str, list[int]] = {name: [] for name in settled}
    for ledger in bk.list_ledgers():
        labels = _labels(bk, ledger) if ledger >= floor else None
        if labels is not None and labels.log in settled and labels.stale_at_ms:
            (over if now > labels.stale_at_ms + GRACE_MS else young)[labels.log].append(ledger)
    deleted = []
    for name, ledgers in over.items():
        if ledgers:
            gone = _delete_unnamed(bk, name, ledgers)
            deleted += gone
            end = min([*young[name], max(ledgers) + 1])
            bk.logs.update(name, lambda value, end=end: replace(value, settled=max(value.settled, end)))  # type: ignore[misc]
    if deleted:
        log.info("orphans deleted count=%d logs=%s", len(deleted), ",".join(sorted(settled)))
    return deleted


def of_job(bk: BookKeeper, job: str, began_ms: int) -> dict[str, list[int]]:
    """The ledgers that a job wrote, by log. Looks at the newest first, and no further than where they are too old."""
    found: dict[str, list[int]] = {}
    older = 0
    for ledger in reversed(list(bk.list_ledgers())):
        with suppress(NoSuchLedgerMetadata):
            metadata = bk.ledger_metadata(ledger)
            labels = labels_of(metadata)
            if labels is not None and labels.job == job:
                found.setdefault(labels.log, []).append(ledger)
            older = older + 1 if metadata.ctime_ms is not None and metadata.ctime_ms + GRACE_MS < began_ms else 0
        if older >= OLDER_IN_A_ROW:
            break
    return found


def delete_uncommitted(bk: BookKeeper, ledgers: dict[str, list[int]]) -> list[int]:
    """Of these ledgers, by log, delete those that their log does not name and can name no more; their ids."""
    return [one for name, ids in ledgers.items() for one in _delete_unnamed(bk, name, ids)]


def _delete_unnamed(bk: BookKeeper, name: str, ledgers: Iterable[int]) -> list[int]:
    named = frozenset(bk.logs.touch(name).value.ledgers) if name else frozenset[int]()
    gone = [ledger for ledger in ledgers if ledger not in named]
    for ledger in gone:
        bk.delete_ledger(ledger)
    return gone


def _labels(bk: BookKeeper, ledger: int) -> Labels | None:
    try:
        return labels_of(bk.ledger_metadata(ledger))
    except NoSuchLedgerMetadata:  # deleted since it was listed
        return None
