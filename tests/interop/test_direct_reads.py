"""Direct reads of our blocking client from Apache BookKeeper's bookie, in both protocols."""

from typing import Any

import pytest

from bookie.client import BookKeeper
from tests.client.facade.test_direct import PAYLOADS, contents, only_direct, warm, written
from tests.fixtures.java_peer import BATCH_READS, JavaPeer
from tests.interop.conftest import Standing, new_cluster

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def java_uri(java_peer: JavaPeer, zookeeper: Any, standing: Standing, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cluster with one bookie of Apache BookKeeper."""
    uri = new_cluster(java_peer, zookeeper.address, tmp_path_factory.mktemp("init"))
    standing("java", uri)
    return uri


@pytest.mark.parametrize("v2", [True, False], ids=["V2", "V3"])
def test_reads_from_a_java_bookie(java_uri: str, *, v2: bool) -> None:
    """Entries one by one, batches where the bookie has them, and ranges arrive as they were written."""
    ledger = written(java_uri)
    with BookKeeper(java_uri, useV2WireProtocol=v2) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            for entry in range(0, len(PAYLOADS), 7):
                assert contents(reader.read(entry)) == [(entry, PAYLOADS[entry])]
            if v2 and BATCH_READS:
                assert contents(reader.batch_read(3, 50)) == list(enumerate(PAYLOADS))[3:53]
                assert contents(reader.batch_read(3, 50, 1)) == [(3, PAYLOADS[3])]
        assert contents(reader.batch_read(3, 50)) == list(enumerate(PAYLOADS))[3:53]
        assert contents(reader.read(0, 299)) == list(enumerate(PAYLOADS))
