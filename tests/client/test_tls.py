"""Channels through TLS, against a bookie in this process: transfers, and whom either side refuses."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bookie.client import Channel, ChannelV3, Digest, DigestType, Extensions, Security, Tls
from bookie.errors import BookieUnavailable, ConfigurationError, SecurityError
from tests.fixtures.certificates import Authority
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.tls_peer import settings_of

DIGEST = Digest.of(DigestType.CRC32C, b"pw")
Kind = type[Channel] | type[ChannelV3]


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the certificates of the bookie and its clients."""
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def bookie(tmp_path: Path, ca: Authority) -> Iterator[LocalBookie]:
    """A bookie with TLS, with a certificate for `localhost` only; it requires client certificates."""
    party = ca.issue("bookie", hosts=["localhost"])
    room: dict[str, Any] = {"write_cache_bytes": 64 << 20, "buffer_bytes": 16 << 20}
    with local_bookie(tmp_path, tls=settings_of(party, trust=ca.certificate), **room) as bookie:
        yield bookie


def secure(ca: Authority, **options: object) -> Security:
    """The client's side, with a certificate."""
    client = ca.issue("client")
    given = {"trust_store": ca.certificate, "certificate": client.certificate, "key": client.key, **options}
    return Security(encrypt=Tls(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Channel, ChannelV3])
def test_bulk_both_ways(bookie: LocalBookie, ca: Authority, kind: Kind) -> None:
    """B21: four threads write and read at once on one channel; every byte comes back."""
    seeded_random = random.Random(1)
    data = seeded_random.randbytes(3 << 20)
    offsets = np.concatenate([[0], np.sort(seeded_random.sample(range(len(data)), 2998)), [len(data)]]).astype(np.int64)
    count = len(offsets) - 1

    def work(channel: Channel | ChannelV3, ledger: int) -> bytes:
        channel.add_batch(ledger, 0, data, offsets, digest=DIGEST)
        read = bytearray()
        for batch in channel.batch_read_all(ledger, 0, count - 1, max_count=300):
            batch.verify(DIGEST)
            for _, payload in batch.payloads(DIGEST):
                read += payload
        return bytes(read)

    with kind.connect("localhost", bookie.address[1], security=secure(ca)) as channel, ThreadPoolExecutor(4) as threads:
        if isinstance(channel, ChannelV3):
            channel.extensions = Extensions(["batchRead"])
        for job in [threads.submit(work, channel, ledger) for ledger in range(4)]:
            assert job.result() == data


def test_the_name_counts(bookie: LocalBookie, ca: Authority) -> None:
    """S3: a certificate for another name is refused, unless names are not verified."""
    with pytest.raises(SecurityError, match="certificate was rejected"):
        Channel.connect("127.0.0.1", bookie.address[1], security=secure(ca))
    with Channel.connect("127.0.0.1", bookie.address[1], security=secure(ca, verify_host=False)) as channel:
        channel.add(1, 0, b"x", digest=DIGEST, lac=-1, length=1)


def test_another_authority(bookie: LocalBookie, ca: Authority, tmp_path: Path) -> None:
    """S3: neither side accepts a certificate of another authority."""
    other = Authority(tmp_path / "other", "another authority")
    with pytest.raises(SecurityError, match="certificate was rejected"):
        Channel.connect("localhost", bookie.address[1], security=secure(ca, trust_store=other.certificate))
    stranger = other.issue("client")
    for shown in ({"certificate": stranger.certificate, "key": stranger.key}, {"certificate": None}):
        # with TLSv1.3 the client finishes the handshake before the bookie checks its certificate
        with (
            pytest.raises((SecurityError, BookieUnavailable)),
            Channel.connect("localhost", bookie.address[1], security=secure(ca, **shown)) as channel,
        ):
            channel.add(1, 0, b"x", digest=DIGEST, lac=-1, length=1)


def test_no_tls_there(tmp_path: Path, ca: Authority) -> None:
    """Nothing is sent in clear to a bookie without TLS."""
    with local_bookie(tmp_path) as bookie, pytest.raises(SecurityError, match="is TLS configured there"):
        Channel.connect("localhost", bookie.address[1], security=secure(ca))


def test_bad_files(ca: Authority, tmp_path: Path) -> None:
    """The error names the file; a key with a password does not prompt at the terminal."""
    secret = ca.issue("secret", password=b"secret")
    (tmp_path / "password").write_text("secret\n")
    with pytest.raises(ConfigurationError, match="nowhere"):
        Tls(trust_store=tmp_path / "nowhere").context()
    with pytest.raises(ConfigurationError, match=r"secret\.key"):
        Tls(ca.certificate, secret.certificate, secret.key).context()
    Tls(ca.certificate, secret.certificate, secret.key, tmp_path / "password").context()
