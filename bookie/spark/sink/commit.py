"""The driver's part: what all tasks wrote becomes part of the logs, or nothing.

Each log changes by one compare-and-set: the winning ledgers, ordered by partition, and the mark (query, batch). That
is what is atomic. Several logs are committed one after the other: a driver that dies between them leaves some with the
batch and some without. Spark then repeats the batch of a stream; the logs that have it take it for committed, the
others get it. A batch job that is run again is another job: it writes again to all of them.
"""

import time
from collections.abc import Iterable

from bookie.client import BookKeeper
from bookie.errors import BookKeeperError
from bookie.spark.sink import orphans
from bookie.spark.sink.manifest import write_manifest
from bookie.spark.sink.results import Result
from bookie.spark.sink.settings import Settings

__all__ = ["abort", "commit"]

CLEAN_EVERY = 100
"""Batches of a stream after which orphans are looked for; also at its first, and after each batch job."""


def commit(bk: BookKeeper, settings: Settings, results: Iterable[Result], batch: int = 0) -> None:
    """Make what the tasks wrote part of the logs, once. BookKeeperError: it was not, or is not known to be."""
    ordered = sorted(results, key=lambda result: result.partition)
    _still_fresh(ordered, batch)
    query = next((result.query for result in ordered if result.query), "")
    by_log: dict[str, list[int]] = {settings.log: []} if settings.log and settings.overwrite else {}
    for result in ordered:
        for one in result.written:
            by_log.setdefault(one.log, []).append(one.ledger)
    for log, ledgers in by_log.items():
        if log:
            _commit_to(bk, log, ledgers, (query, batch) if query else None, overwrite=settings.overwrite)
    if settings.manifest:
        write_manifest(settings.manifest, settings.job, batch, ordered)
    if settings.orphan_ttl_s > 0 and (not query or batch % CLEAN_EVERY == 0):
        orphans.clean(bk, [log for log in by_log if log])


def abort(bk: BookKeeper, settings: Settings, results: Iterable[Result], began_ms: int | None) -> None:
    """Delete what was written, unless a log has it: an abort also follows a commit whose answer was lost.

    `began_ms`: when the job of `settings` began, to find what is in no result too; None: `settings` are of another job.
    """
    if settings.keep_on_abort:
        return
    found = orphans.of_job(bk, settings.job, began_ms) if began_ms is not None else {}
    for result in results:
        for one in result.written:
            found.setdefault(one.log, []).append(one.ledger)
    orphans.delete_uncommitted(bk, {log: sorted(set(ledgers)) for log, ledgers in found.items()})


def _commit_to(bk: BookKeeper, log: str, ledgers: list[int], batch: tuple[str, int] | None, *, overwrite: bool) -> None:
    dropped: tuple[int, ...] = ()
    if overwrite:
        now, dropped = bk.logs.replace(log, ledgers, batch)
    else:
        now = bk.logs.append(log, ledgers, batch)
    named = frozenset(now.value.ledgers)
    for ledger in (*dropped, *ledgers):  # of `ledgers` only where the batch had been committed before
        if ledger not in named:
            bk.delete_ledger(ledger)


def _still_fresh(results: list[Result], batch: int) -> None:
    now = time.time_ns() // 1_000_000
    late = next((result for result in results if 0 < result.stale_at_ms < now), None)
    if late is not None:
        raise BookKeeperError(
            f"format bookkeeper: batch {batch}: partition {late.partition} was written longer ago than orphanTtl, its"
            " ledgers may be deleted already: write again with a larger orphanTtl"
        )
