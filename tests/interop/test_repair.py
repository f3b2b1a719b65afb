"""A bookie of ours gets its entries back from a bookie of Apache BookKeeper, found by its registration."""

import pytest

from bookie.client import Channel, ChannelV3, Digest, DigestType
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigestType
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.repair.integrity import check_bookie
from bookie.repair.peers import connect_by_metadata
from tests.interop.targets import Start

pytestmark = pytest.mark.interop

ENTRIES = 3000
LEDGER = 880_011


def test_b17_entries_come_back_from_java(start_java: Start, start_ours: Start, cluster_uri: str) -> None:
    """They come back byte for byte, in batch reads, and a second check finds nothing missing."""
    (java,), (ours,) = start_java(1), start_ours(1)
    digest = Digest.of(DigestType.CRC32C, b"pw")
    stored = [digest.seal(LEDGER, n, b"%09d" % n * (n % 30), lac=n - 1, length=9 * n) for n in range(ENTRIES)]
    with Channel.connect("127.0.0.1", java.port) as channel:
        for reply in [channel.add_stored_async(data, digest.master_key) for data in stored]:
            reply.result()
    driver = open_driver(cluster_uri)
    driver.start()
    try:
        metadata = LedgerMetadata(
            ensemble_size=2,
            write_quorum=2,
            ack_quorum=1,
            segments=(Segment(0, (ours.id, java.id)),),
            state=LedgerState.CLOSED,
            last_entry=ENTRIES - 1,
            length=9 * ENTRIES,
            digest_type=StoredDigestType.CRC32C,
            password=b"pw",
        )
        driver.ledgers.create(LEDGER, metadata)
        for missing in (ENTRIES, 0):
            with (
                ChannelV3.connect("127.0.0.1", ours.port) as lister,
                Channel.connect("127.0.0.1", ours.port) as target,
            ):
                report = check_bookie(
                    ours.id, driver.ledgers, lister=lister, target=target, connect=connect_by_metadata(driver)
                )
            assert (report.missing, report.copied, report.incomplete) == (missing, missing, ())
        with Channel.connect("127.0.0.1", ours.port) as channel:
            assert [channel.read(LEDGER, n) for n in range(ENTRIES)] == stored
    finally:
        driver.ledgers.delete(LEDGER)
        driver.stop()
