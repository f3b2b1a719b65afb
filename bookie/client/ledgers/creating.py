"""Making a ledger: a choice of bookies, an id, and metadata. No bookie hears of it before the first add. Event loop."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.metadata_loop import Known
from bookie.errors import IncorrectParameter, LedgerExists, NotEnoughBookies
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, Segment

__all__ = ["create_ledger", "NewLedger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLedger:
    """What is asked for."""

    ensemble_size: int = 3
    write_quorum: int = 2
    ack_quorum: int = 2
    digest_type: DigestType = DigestType.CRC32
    password: bytes = field(default=b"", repr=False)
    custom: Mapping[str, bytes] = field(default_factory=dict)
    ledger: int | None = None
    """The caller's own id; None: the metadata store gives one."""

    def check(self) -> None:
        """IncorrectParameter names the first rule that is broken."""
        sizes = (self.ensemble_size, self.write_quorum, self.ack_quorum)
        if not 1 <= self.ack_quorum <= self.write_quorum <= self.ensemble_size:
            raise IncorrectParameter(
                "ensemble size, write quorum and ack quorum must be E >= W >= A >= 1, not {}, {}, {}".format(*sizes)
            )
        if self.ledger is not None and not 0 <= self.ledger < 1 << 63:
            raise IncorrectParameter(f"ledger id {self.ledger} must be at least 0 and less than 2**63")


async def create_ledger(context: ClientContext, wanted: NewLedger) -> Known:
    """Its id and metadata.

    IncorrectParameter, NotEnoughBookies; LedgerExists only for an id of the caller's: another client may have taken one
    that the store gave, then the next one is tried. A create whose answer was lost is told by its token from others'
    (the metadata drivers see to that).
    """
    wanted.check()
    ensemble = _ensemble(context, wanted)
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


def _ensemble(context: ClientContext, wanted: NewLedger) -> tuple[str, ...]:
    """As many bookies as are asked for, or with opportunistic striping a write quorum at least."""
    least = wanted.write_quorum if context.config.opportunistic_striping else wanted.ensemble_size
    for size in range(wanted.ensemble_size, least, -1):
        try:
            return _choice(context, wanted, size)
        except NotEnoughBookies:
            continue
    return _choice(context, wanted, least)


def _choice(context: ClientContext, wanted: NewLedger, size: int) -> tuple[str, ...]:
    return context.placement.new_ensemble(size, wanted.write_quorum, wanted.ack_quorum, custom=wanted.custom)
