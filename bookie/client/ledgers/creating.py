"""Create a ledger: choose its bookies, get an id, write its metadata. No bookie is contacted before the first add.
Event loop.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from bookie.client.arguments import IDS_END
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.metadata_loop import Known
from bookie.errors import BookKeeperError, IncorrectParameter, LedgerExists, NotEnoughBookies
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, Segment

__all__ = ["create_ledger", "create_owned", "delete_unowned", "NewLedger"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLedger:
    """The properties of a ledger that is to be created."""

    ensemble_size: int = 3
    write_quorum: int = 3
    ack_quorum: int = 2
    digest_type: DigestType = DigestType.CRC32
    password: bytes = field(default=b"", repr=False)
    custom: Mapping[str, bytes] = field(default_factory=dict)
    ledger: int | None = None
    """The id, if the caller chooses it; None lets the metadata store assign one."""

    def check(self) -> None:
        """Raise IncorrectParameter with the first rule that is violated."""
        sizes = (self.ensemble_size, self.write_quorum, self.ack_quorum)
        if not 1 <= self.ack_quorum <= self.write_quorum <= self.ensemble_size:
            raise IncorrectParameter(
                "ensemble size, write quorum and ack quorum must be E >= W >= A >= 1, not {}, {}, {}".format(*sizes)
            )
        if self.ledger is not None and not 0 <= self.ledger < IDS_END:
            raise IncorrectParameter(f"ledger id {self.ledger} must be at least 0 and less than 2**63")


async def create_ledger(context: ClientContext, wanted: NewLedger) -> Known:
    """Create a ledger, and return its id and metadata.

    Raises IncorrectParameter and NotEnoughBookies. It raises LedgerExists only if the caller chose the id: if another
    client took an id that the store assigned, the next one is tried. The metadata drivers mark each create with a
    token, and so recognise their own create if its answer was lost.
    """
    wanted.check()
    ensemble = _ensemble(context, wanted)
    _warn_if_striped(context, wanted, len(ensemble))
    metadata = LedgerMetadata(
        ensemble_size=len(ensemble),
        write_quorum=wanted.write_quorum,
        ack_quorum=wanted.ack_quorum,
        segments=(Segment(0, ensemble),),
        digest_type=wanted.digest_type,
        password=wanted.password,
        custom=dict(wanted.custom),
        ctime_ms=context.epoch_ms() if context.config.store_creation_time else None,
    )
    if wanted.ledger is not None:
        return Known(wanted.ledger, await context.metadata.create(wanted.ledger, metadata))
    while True:
        ledger = await context.metadata.new_id()
        try:
            return Known(ledger, await context.metadata.create(ledger, metadata))
        except LedgerExists:
            continue


def _warn_if_striped(context: ClientContext, wanted: NewLedger, size: int) -> None:
    """Log once for each client and pair of sizes that entries of a ledger will not be read in batches."""
    sizes = size, wanted.write_quorum
    if size == wanted.write_quorum or not context.config.batch_read_enabled or sizes in context.striped:
        return
    context.striped.add(sizes)
    log.warning(
        "ledgers with an ensemble of %d and a write quorum of %d are striped: their entries are read one by one, not in"
        " batches; use a write quorum as large as the ensemble if they are to be read in batches", *sizes,
    )  # fmt: skip


async def create_owned(
    context: ClientContext, wanted: NewLedger, tidy: Callable[[Coroutine[Any, Any, None]], None]
) -> Known:
    """Create a ledger like `create_ledger`. If the caller is cancelled, `tidy` runs what deletes the ledger again."""
    creating = asyncio.ensure_future(create_ledger(context, wanted))

    async def delete() -> None:
        try:
            with contextlib.suppress(BookKeeperError):
                await delete_unowned(context, await creating)
        except asyncio.CancelledError:
            log.warning("a ledger may stay that was created for a caller that was cancelled: the store did not answer")
            raise

    try:
        return await asyncio.shield(creating)
    except asyncio.CancelledError:
        tidy(delete())
        raise


async def delete_unowned(context: ClientContext, known: Known) -> None:
    """Delete a new ledger without entries, because nobody is there who would write and close it.

    If it cannot be deleted, the log says so.
    """
    try:
        await context.metadata.delete(known.ledger, known.version)
    except BookKeeperError as error:
        log.warning("ledger %d: created for a caller that was cancelled, and not deleted: %s", known.ledger, error)


def _ensemble(context: ClientContext, wanted: NewLedger) -> tuple[str, ...]:
    """Choose as many bookies as requested, or with opportunistic striping at least a write quorum."""
    least = wanted.write_quorum if context.config.opportunistic_striping else wanted.ensemble_size
    for size in range(wanted.ensemble_size, least, -1):
        try:
            return _choice(context, wanted, size)
        except NotEnoughBookies:
            continue
    return _choice(context, wanted, least)


def _choice(context: ClientContext, wanted: NewLedger, size: int) -> tuple[str, ...]:
    return context.placement.new_ensemble(size, wanted.write_quorum, wanted.ack_quorum, custom=wanted.custom)
