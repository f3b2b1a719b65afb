"""Direct adds of our blocking client to Apache BookKeeper's bookie, in both protocols."""

from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.errors import LedgerFenced
from tests.client.facade.direct_adds import check, created, only_direct, payload, warm
from tests.fixtures.java_peer import JavaPeer
from tests.interop.conftest import Standing, new_cluster

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def java_uri(java_peer: JavaPeer, zookeeper: Any, standing: Standing, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cluster with one bookie of Apache BookKeeper."""
    uri = new_cluster(java_peer, zookeeper.address, tmp_path_factory.mktemp("init"))
    standing("java", uri)
    return uri


@pytest.mark.parametrize("v2", [True, False], ids=["V2", "V3"])
def test_adds_to_a_java_bookie(java_uri: str, *, v2: bool) -> None:
    """Entries are acknowledged and read back, and a fence of another client is reported as one."""
    with BookKeeper(java_uri, useV2WireProtocol=v2) as bk, BookKeeper(java_uri) as other:
        with created(bk, password=b"secret") as ledger:
            first = warm(ledger)
            with only_direct(ledger):
                for entry in range(first, first + 20):
                    assert ledger.append(payload(entry)) == entry
        with other.open_ledger(ledger.id, password=b"secret") as reader:
            assert [bytes(one.data) for one in reader.read(0, first + 19)] == [payload(k) for k in range(first + 20)]
        fenced = created(bk)
        count = warm(fenced)
        check(other, fenced.id, count)
        with pytest.raises(LedgerFenced):
            fenced.append(b"late")
