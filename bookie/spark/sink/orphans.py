"""Finds and deletes orphans: ledgers of failed attempts and of jobs and batches that were aborted or crashed.

A ledger is an orphan if a sink wrote it for a log, the log does not list it, and it has expired: `orphanTtl` after its
task began. An expired ledger is no longer committed (see `commit`), so it cannot belong to a running query; a grace
period allows for clock skew. Before anything is deleted the log is touched, so that a commit in progress can no longer
add the ledger. Ids grow with time, so a log records the id below which no ledger is left to judge, and the next search
begins there.
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
"""Listing from the newest ledger on ends after this many consecutive ledgers that are older than the job."""
log = logging.getLogger(__name__)


def clean(bk: BookKeeper, logs: Collection[str], now_ms: int | None = None) -> list[int]:
    """Delete the orphans of some logs and return their ids. This reads the metadata of each ledger not judged before.

    Args:
        bk: an open client.
        logs: the names of the logs.
        now_ms: the current time in milliseconds since 1970; None: that of the clock.
    """
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
        log.info("deleted orphaned ledgers count=%d logs=%s", len(deleted), ",".join(sorted(settled)))
    return deleted


def of_job(bk: BookKeeper, job: str, began_ms: int) -> dict[str, list[int]]:
    """Return the ledgers that a job wrote, by log. It goes from the newest ledger back to those older than the job."""
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
    """Delete those of the given ledgers that their log does not list and can no longer add; return their ids."""
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
    except NoSuchLedgerMetadata:  # the ledger was deleted after it was listed
        return None
