"""A ledger whose replicas are written one by one, so that each can lack an entry or have a bad one."""

from collections.abc import Sequence
from dataclasses import dataclass

from bookie.client import Channel
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.wire.flags import Flags
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigestType
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.fixtures.bookies import BookieProcess

DIGEST = Digest.of(DigestType.CRC32C, b"secret")
PAYLOAD = b"0123456789"


@dataclass(frozen=True)
class Planted:
    """The defects by bookie of the ensemble."""

    missing: Sequence[tuple[int, int]] = ()
    flipped: Sequence[tuple[int, int]] = ()
    wrong_length: Sequence[tuple[int, int]] = ()
    extra: Sequence[tuple[int, int]] = ()


def plant(
    uri: str,
    bookies: Sequence[BookieProcess],
    ledger: int,
    entries: int,
    planted: Planted,
    *,
    payload: bytes = PAYLOAD,
    application: str = "planted",
) -> list[str]:
    """Write a closed ledger of `entries` entries on all of these bookies; return their ids, in the ensemble's order."""
    ids = [bookie.id for bookie in bookies]
    count = len(bookies)
    driver = open_driver(uri)
    driver.start()
    try:
        driver.ledgers.create(
            ledger,
            LedgerMetadata(
                ensemble_size=count,
                write_quorum=count,
                ack_quorum=count,
                segments=(Segment(0, tuple(ids)),),
                state=LedgerState.CLOSED,
                length=entries * len(payload),
                last_entry=entries - 1,
                digest_type=StoredDigestType.CRC32C,
                password=b"secret",
                ctime_ms=1_700_000_000_000,
                custom={"application": application.encode()},
            ),
        )
    finally:
        driver.stop()
    for index, bookie in enumerate(bookies):
        mine = [entry for entry in range(entries) if (index, entry) not in planted.missing]
        mine += [entry for at, entry in planted.extra if at == index]
        with Channel.connect(*bookie.address) as channel:
            adds = []
            for entry in mine:
                off = 1 if (index, entry) in planted.wrong_length else 0
                length = (entry + 1) * len(payload) + off
                stored = bytearray(DIGEST.seal(ledger, entry, payload, lac=entry - 1, length=length))
                stored[-1] ^= 4 if (index, entry) in planted.flipped else 0
                adds.append(channel.add_stored_async(bytes(stored), DIGEST.master_key, flags=Flags.RECOVERY_ADD))
            for add in adds:
                add.result()
    return ids
