"""Reads one partition, in a task. It runs on the worker's main thread; the client's thread receives the entries.

A worker holds the responses in flight and those read ahead (`readsInFlight` times `readBatchBytes`), and one block.
"""

import gc
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from bookie.client import EntryBatch
from bookie.client.blocking.handles import ReadHandle
from bookie.client.entries.verified import PayloadBlock
from bookie.errors import BookKeeperError, DigestMismatch, NoSuchEntry, NoSuchLedger, NoSuchLedgerMetadata
from bookie.spark.clients import client_of
from bookie.spark.source.blocks import Blocks
from bookie.spark.source.ledgers import lost, opened
from bookie.spark.source.ranges import Range
from bookie.spark.source.settings import SourceSettings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_ranges"]

LOSS = (DigestMismatch, NoSuchEntry, NoSuchLedger)
"""The errors that mean that an entry is lost, if all its replicas say so. An unreachable bookie is not a loss."""


def read_ranges(settings: SourceSettings, ranges: tuple[Range, ...]) -> Iterator["pa.RecordBatch"]:
    """Yield all entries of the ranges, in order, as Arrow record batches."""
    for block in _blocks(settings, ranges):
        yield block
        _freeze()


@cache
def _freeze() -> None:
    """Exempt all modules from garbage collection, once in a worker, after Spark has taken the first block.

    Spark collects garbage after each task, which would scan all these objects again.
    """
    gc.freeze()


def _blocks(settings: SourceSettings, ranges: tuple[Range, ...]) -> Iterator["pa.RecordBatch"]:
    client = client_of(settings.cluster)
    for one in ranges:
        try:
            handle = opened(client, one.ledger, settings).result()
        except NoSuchLedgerMetadata as error:
            lost(
                settings, f"ledger {one.ledger} was deleted; entries {one.first} to {one.end - 1} cannot be read", error
            )
            continue
        with handle:
            blocks = Blocks(settings, one.ledger, handle.metadata)
            yield from blocks.of(_confirmed(settings, handle, one, blocks.block))
            if one.open_end:
                yield from blocks.of(_unconfirmed(settings, handle, max(one.end, one.first)))


def _confirmed(
    settings: SourceSettings, handle: ReadHandle, wanted: Range, block: PayloadBlock
) -> Iterator[EntryBatch]:
    """Yield the entries of a range, for `block`; with failOnDataLoss=false, those that can be read."""
    at, last = wanted.first, wanted.end - 1
    if at <= last and handle.last_add_confirmed < last:
        handle.read_last_add_confirmed()
    while at <= last:
        try:
            with handle.batches(at, last, max_count=settings.batch_entries, max_size=settings.batch_bytes) as batches:
                batches.receive_into(block)
                for batch in batches:
                    yield batch
                    at = batch.last + 1
        except LOSS as error:
            lost(settings, f"entry {at} of ledger {handle.id} is not read", error)
            at += 1


def _unconfirmed(settings: SourceSettings, handle: ReadHandle, at: int) -> Iterator[EntryBatch]:
    """Yield the entries after the LAC, up to the first one that no bookie has."""
    while True:
        try:
            batch = handle.batch_read_unconfirmed(at, settings.batch_entries, settings.batch_bytes)
        except (NoSuchEntry, NoSuchLedger):
            return
        except BookKeeperError as error:
            lost(settings, f"entry {at} of ledger {handle.id} is not read", error)
            return
        yield batch
        at = batch.last + 1
