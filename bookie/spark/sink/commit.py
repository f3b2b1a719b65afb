"""The driver's side of the sink: adds what all tasks wrote to the logs, or deletes it.

Each log is changed by one compare-and-set, which adds the successful ledgers, ordered by partition, and the mark
(query, batch). That step is atomic. Several logs are committed one after the other: if the driver crashes in between,
some have the batch and some do not. Spark then repeats the batch of a stream; a log that has it recognises it as
committed, the others receive it. A batch job that is run again is another job, and writes to all logs again.
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
"""A stream looks for orphans in its first batch and every so many batches; a batch job looks at its end."""


def commit(bk: BookKeeper, settings: Settings, results: Iterable[Result], batch: int = 0) -> None:
    """Commit what the tasks wrote to the logs, once.

    Args:
        bk: an open client.
        settings: the settings of the sink.
        results: the results of all tasks.
        batch: the number of the stream's batch.

    Raises:
        BookKeeperError: the commit failed, or it is unknown whether it succeeded.
    """
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
    """Delete what was written, unless a log already lists it: Spark also aborts after a commit whose response was
    lost.

    Args:
        bk: an open client.
        settings: the settings of the sink.
        results: the results of the tasks that succeeded.
        began_ms: when the job began, in milliseconds since 1970, to find ledgers that are in no result; None if
            `settings` are not those of the tasks.
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
    for ledger in (*dropped, *ledgers):  # `ledgers` remain only if the batch had been committed before
        if ledger not in named:
            bk.delete_ledger(ledger)


def _still_fresh(results: list[Result], batch: int) -> None:
    now = time.time_ns() // 1_000_000
    late = next((result for result in results if 0 < result.stale_at_ms < now), None)
    if late is not None:
        raise BookKeeperError(
            f"format bookkeeper: batch {batch}: partition {late.partition} was written longer ago than orphanTtl, its"
            " ledgers may have been deleted already: write again with a larger orphanTtl"
        )
