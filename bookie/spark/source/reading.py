"""A partition, read: what a task does. A worker's main thread; entries are received on the client's.

What a worker holds: answers under way and taken ahead (`readsInFlight` times `readBatchBytes`), and one block.
"""

import gc
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from bookie.client import EntryBatch
from bookie.client.blocking.handles import ReadHandle
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
"""What all replicas of an entry say where it is lost. A bookie that does not answer has lost nothing yet."""


def read_ranges(settings: SourceSettings, ranges: tuple[Range, ...]) -> Iterator["pa.RecordBatch"]:
    """Everything in them, in order."""
    for block in _blocks(settings, ranges):
        yield block
        _freeze()


@cache
def _freeze() -> None:
    """Once in a worker, when Spark has taken a block and all modules are loaded: the collection of garbage
    behind each task need not look at these.
    """
    gc.freeze()


def _blocks(settings: SourceSettings, ranges: tuple[Range, ...]) -> Iterator["pa.RecordBatch"]:
    client = client_of(settings.cluster)
    for one in ranges:
        try:
            handle = opened(client, one.ledger, settings).result()
        except NoSuchLedgerMetadata as error:
            lost(settings, f"ledger {one.ledger} was deleted, entries {one.first} to {one.end - 1} are not read", error)
            continue
        with handle:
            blocks = Blocks(settings, one.ledger, handle.metadata)
            yield from blocks.of(_confirmed(settings, handle, one))
            if one.open_end:
                yield from blocks.of(_unconfirmed(settings, handle, max(one.end, one.first)))


def _confirmed(settings: SourceSettings, handle: ReadHandle, wanted: Range) -> Iterator[EntryBatch]:
    """The entries of a range, or those that are left of it (`failOnDataLoss`)."""
    at, last = wanted.first, wanted.end - 1
    if at <= last and handle.last_add_confirmed < last:
        handle.read_last_add_confirmed()
    while at <= last:
        try:
            with handle.batches(at, last, max_count=settings.batch_entries, max_size=settings.batch_bytes) as batches:
                for batch in batches:
                    yield batch
                    at = batch.last + 1
        except LOSS as error:
            lost(settings, f"entry {at} of ledger {handle.id} is not read", error)
            at += 1


def _unconfirmed(settings: SourceSettings, handle: ReadHandle, at: int) -> Iterator[EntryBatch]:
    """What bookies hold beyond the LAC, up to the first entry that none of them has."""
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
