"""Entries that are too large for the frames in which a worker would copy them."""

import asyncio
import re

import pytest

from bookie.client import Digest, DigestType
from bookie.client.bookies.client import BookieClient
from bookie.client.config import ClientConfig
from bookie.client.entries.batch import LENGTH_PREFIX
from bookie.client.replication.worker import ReplicationWorker
from bookie.client.wire.v2 import WireV2
from tests.client.replication.conftest import GHOST, PASSWORD, Cluster, comes_true, until

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")


@pytest.mark.parametrize(
    ("less", "says"),
    [
        (0, r"entry 1: the response has \d+ bytes, more than frame_bytes_max=\d+; raise that limit"),
        (6, r"entry 1 is the largest with SIZE bytes: .* raise nettyMaxFrameSizeBytes"),
    ],
)
def test_an_entry_that_fits_only_into_a_frame_of_v2(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, less: int, says: str
) -> None:
    """OP1: the log names the ledger, the entry, its size and the remedy; the mark stays, and other ledgers are copied.

    The largest such entries cannot even be read with V3, those with a few bytes less cannot be written.
    """
    one, two, *_ = cluster.ids
    digest = Digest.of(DigestType.CRC32C, PASSWORD)
    limit = ClientConfig().frame_bytes_max
    size = limit - WireV2.add_overhead_max - LENGTH_PREFIX - less

    async def script() -> int:
        ledger = await cluster.write([(0, (one, GHOST, two))], 2, holes=[1])
        payload = bytes(size - len(digest.seal(ledger, 1, b"", lac=0, length=0)))
        large = digest.seal(ledger, 1, payload, lac=0, length=1024 + len(payload))
        async with BookieClient(ClientConfig(use_v2_wire_protocol=True, frame_bytes_max=limit)) as client:
            for bookie in (one, two):
                await client.add(bookie, ledger, 1, large, digest.master_key)
        other = await cluster.write([(0, (one, GHOST, two))], 2)
        for marked in (ledger, other):
            cluster.driver.replication.mark(marked, [GHOST], 1)
        async with cluster.environment() as environment:
            counters = environment.counters
            worker = ReplicationWorker(environment)
            await until(worker.run(), comes_true(lambda: counters.ledgers == 1 and counters.ledgers_failed >= 2))
        assert cluster.driver.replication.marked(ledger) is not None
        assert cluster.driver.replication.marked(other) is None
        return ledger

    ledger = asyncio.run(script())
    why = next(record.getMessage() for record in caplog.records if "cannot replicate segment" in record.getMessage())
    assert re.search(rf"ledger={ledger} .*{says.replace('SIZE', str(size))}", why), why
    assert cluster.bookies_of(ledger) == [(one, GHOST, two)]
