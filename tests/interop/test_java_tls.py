"""TLS between our parts and Apache BookKeeper's: its client with our bookie, and our channel with both bookies."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookie.client import BookKeeper, Channel, ChannelV3, Digest, DigestType, Security, Tls
from bookie.errors import BookKeeperError, SecurityError
from tests.client.facade.direct_adds import created, only_direct, payload, warm
from tests.fixtures.certificates import Authority
from tests.fixtures.java_peer import JavaPeer
from tests.interop.conftest import Client, new_cluster
from tests.interop.driver import Driver
from tests.interop.guards import bookie_keys, client_keys
from tests.interop.targets import Start

pytestmark = pytest.mark.interop

DIGEST = Digest.of(DigestType.CRC32C, b"pw")


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    """The certificate authority of bookies and clients."""
    return Authority(tmp_path / "ca")


@pytest.fixture
def cluster_uri(java_peer: JavaPeer, zookeeper: Any, tmp_path: Path) -> str:
    """A cluster of its own, because the Java client must not find other tests' bookies."""
    return new_cluster(java_peer, zookeeper.address, tmp_path / "init")


@pytest.mark.parametrize(("v2", "provider"), [(True, "OpenSSL"), (False, "JDK")])
def test_the_java_client_against_ours(
    start_ours: Start, java_driver: Driver, cluster_uri: str, ca: Authority, *, v2: bool, provider: str
) -> None:
    """BR14: a ledger is on two bookies in either protocol, with either of its libraries, and batches are verified."""
    start_ours(2, **bookie_keys(ca))
    settings = client_keys(ca, tlsProvider=provider, tlsHostnameVerificationEnabled="true")
    client = Client(java_driver, cluster_uri, v2=v2, settings=settings)
    writer = client.call("create", e=2, w=2, a=2, password="secret")
    assert client.call("add", handle=writer["handle"], n=2000, size=3000)["added"] == 2000
    assert client.call("read", handle=writer["handle"], first=0, last=1999, size=3000)["wrong"] == 0
    if v2:
        batches = client.call("batch_read", handle=writer["handle"], first=0, last=1999, count=1000, size=3000)
        assert (batches["entries"], batches["wrong"], batches["fell_back"]) == (2000, 0, False)
    reader = client.call("open", ledger=writer["ledger"], recovery=True, password="secret")
    assert (reader["lac"], reader["closed"]) == (1999, True)
    client.call("disconnect")


def test_a_java_client_without_a_certificate(
    start_ours: Start, java_driver: Driver, cluster_uri: str, ca: Authority
) -> None:
    """Where one is required, nothing is added; where it is not, TLS works without."""
    (strict,) = start_ours(1, **bookie_keys(ca))
    client = Client(java_driver, cluster_uri, settings=client_keys(ca, certificate=False))
    refused = client.call("create", password="p")
    assert client.call("add", handle=refused["handle"], n=3, size=300)["added"] == 0
    strict.stop()
    start_ours(1, **bookie_keys(ca, client_auth=False))
    writer = client.call("create", password="p")
    assert client.call("add", handle=writer["handle"], n=300, size=300)["added"] == 300
    client.call("disconnect")


@pytest.mark.parametrize("kind", [Channel, ChannelV3])
def test_our_channel(start_bookies: Start, ca: Authority, kind: type[Channel] | type[ChannelV3]) -> None:
    """Upgrade, adds and reads work against both bookies, and a client that trusts another authority goes away."""
    (bookie,) = start_bookies(1, **bookie_keys(ca))
    client = ca.issue("client")
    tls = Tls(ca.certificate, client.certificate, client.key)
    chance = np.random.default_rng(7)
    offsets = np.concatenate([[0], np.cumsum(chance.integers(0, 3000, 5000))])
    data = chance.bytes(int(offsets[-1]))
    with kind.connect("127.0.0.1", bookie.port, security=Security(encrypt=tls)) as channel:
        channel.add_batch(7, 0, data, offsets, digest=DIGEST)
        for entry in range(0, 5000, 501):
            opened = DIGEST.open(channel.read(7, entry), 7, entry)
            assert opened.payload == data[offsets[entry] : offsets[entry + 1]]
        if isinstance(channel, Channel):
            read = 0
            for batch in channel.batch_read_all(7, 0, 4999):
                batch.verify(DIGEST)
                read += sum(len(payload) for _, payload in batch.payloads(DIGEST))
            assert read == len(data)
    other = Authority(ca.directory / "other", "another authority")
    with pytest.raises(SecurityError):
        kind.connect("127.0.0.1", bookie.port, security=Security(encrypt=Tls(other.certificate)))
    with (
        pytest.raises(BookKeeperError),
        kind.connect("127.0.0.1", bookie.port, security=Security(encrypt=Tls(ca.certificate))) as channel,
    ):
        channel.read(7, 0)


@pytest.mark.parametrize("v2", [True, False], ids=["V2", "V3"])
def test_adds_and_reads_of_a_thread(start_bookies: Start, cluster_uri: str, ca: Authority, *, v2: bool) -> None:
    """They go over encrypted connections of its own to both bookies, though Java's says more than it was asked."""
    start_bookies(1, **bookie_keys(ca))
    client = ca.issue("client")
    settings: dict[str, Any] = {
        "clientTrustStore": str(ca.certificate),
        "tlsCertificatePath": str(client.certificate),
        "tlsKeyStore": str(client.key),
    }
    with BookKeeper(cluster_uri, useV2WireProtocol=v2, **settings) as bk, created(bk, password=b"secret") as ledger:
        first = warm(ledger)
        with only_direct(ledger):
            for entry in range(first, first + 10):
                assert ledger.append(payload(entry)) == entry
        for entry in range(first, first + 10):
            assert bytes(ledger.read(entry)[0].data) == payload(entry)
