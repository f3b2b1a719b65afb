"""Direct connections through TLS, on real bookies: reads and adds, and who is trusted."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.client.blocking.handles import ReadHandle
from bookie.client.direct import encrypt
from bookie.client.direct.connect import Endpoint
from bookie.client.direct.pool import DirectPool
from tests.client.facade import direct_adds as adds
from tests.client.facade.test_direct import PAYLOADS, contents, only_direct, patient, warm, written
from tests.client.facade.test_direct_peers import dropped, pool_of
from tests.fixtures.bookies import BookieProcess, metadata_of
from tests.fixtures.certificates import Authority, Party
from tests.hostile.tls_peer import ACCEPTED
from tests.server.test_tls import keys_of

Bookies = Callable[..., list[BookieProcess]]
TOKEN = "a-token-of-enough-bytes"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of the certificates of bookies and clients."""
    return Authority(tmp_path_factory.mktemp("ca"))


def settings_of(ca: Authority, party: Party | None = None, **others: Any) -> dict[str, Any]:
    """Return a client's settings, with the certificate of a party."""
    shown = {} if party is None else {"tlsKeyStore": str(party.key), "tlsCertificatePath": str(party.certificate)}
    return {"clientTrustStore": str(ca.certificate), **shown, **others}


@pytest.mark.parametrize("protocol", [2, 3])
def test_reads(bookies: Bookies, ca: Authority, protocol: int) -> None:
    """Entries and batches are read directly, by a client with a certificate and a token."""
    (one,) = bookies(1, **keys_of(ca, tlsRequired="true", tlsClientAuthentication="true"))
    settings = settings_of(ca, ca.issue("client"), useV2WireProtocol=protocol == 2)
    uri = metadata_of([one])
    ledger = written(uri, **settings)
    with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
            assert contents(reader.batch_read(5, 200)) == list(enumerate(PAYLOADS))[5:205]
        (link,) = pool_of(bk)._links
        assert link.usable
        assert [item for batch in reader.batches() for item in contents(batch)] == list(enumerate(PAYLOADS))
        assert set(pool_of(bk)._links) == {link}
    assert "in clear" not in one.log_text()


@pytest.mark.parametrize(
    ("protocol", "sizes"),
    [
        (2, "one"),
        (3, "quorum"),
        pytest.param(2, "any", marks=pytest.mark.thorough),
        pytest.param(3, "striped", marks=pytest.mark.thorough),
    ],
)
def test_adds(bookies: Bookies, ca: Authority, protocol: int, sizes: str) -> None:
    """B21, L2: entries of all sizes are added directly, and each has the id, LAC and length of any add."""
    cluster = bookies(3, **keys_of(ca, tlsRequired="true"))
    with BookKeeper(metadata_of(cluster), **settings_of(ca, useV2WireProtocol=protocol == 2)) as bk:
        with adds.created(bk, adds.SIZES[sizes], password=b"secret") as ledger:
            first = adds.warm(ledger)
            with adds.only_direct(ledger):
                for entry in range(first, first + 30):
                    adds.nothing_owed(ledger)
                    assert ledger.append(adds.payload(entry)) == entry == ledger.last_add_confirmed
                adds.nothing_owed(ledger)
                assert ledger.append(bytes(256 << 10)) == first + 30
        with bk.open_ledger(ledger.id, password=b"secret") as reader:
            assert [bytes(one.data) for one in reader.read(0, first + 29)] == [
                adds.payload(k) for k in range(first + 30)
            ]
            assert bytes(reader.read(first + 30)[0].data) == bytes(256 << 10)


def test_authentication(bookies: Bookies, ca: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A direct connection logs in inside TLS."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"admin:one:{TOKEN}\n")
    monkeypatch.setenv("BOOKIE_AUTH_TOKEN", TOKEN)
    keys = keys_of(ca, tlsRequired="true", bookieAuthProviderFactoryClass="token", authTokenFile=str(tokens))
    (one,) = bookies(1, **keys)
    settings = settings_of(ca, clientAuthProviderFactoryClass="token")
    with BookKeeper(metadata_of([one]), **settings) as bk, adds.created(bk) as ledger:
        first = adds.warm(ledger)
        with adds.only_direct(ledger):
            assert ledger.append(b"inside") == first


class Stranger:
    """A server to which direct connections are led. It shows two certificates, one after the other."""

    def __init__(self, *parties: Party) -> None:
        self._contexts = []
        for party in (parties[0], parties[-1]):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(party.certificate, party.key)
            self._contexts.append(context)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self.connected = 0
        self.received: list[bytes] = []
        """What was received inside TLS, by each connection. It is complete after `stop`."""
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            serving = threading.Thread(target=self._serve, args=(sock, self._contexts[self.connected % 2]))
            self.connected += 1
            self._threads.append(serving)
            serving.start()

    def _serve(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        with sock, contextlib.suppress(OSError):
            sock.recv(int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big"), socket.MSG_WAITALL)  # START_TLS
            sock.sendall(ACCEPTED)
            with context.wrap_socket(sock, server_side=True) as sealed:
                self.received.append(sealed.recv(1 << 10))

    def stop(self) -> None:
        """End the threads."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def misled(one: BookieProcess, ca: Authority, *parties: Party) -> Iterator[tuple[ReadHandle, Stranger, DirectPool]]:
    """Yield a handle whose direct connections lead to a stranger, who has the certificates of these parties."""
    uri, settings = metadata_of([one]), settings_of(ca)
    ledger = written(uri, **settings)
    stranger = Stranger(*parties)
    try:
        with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
            warm(reader)
            pool = pool_of(bk)
            assert pool.endpoint is not None
            pool.endpoint = Endpoint(pool.endpoint.host, stranger.address)
            dropped(pool)
            with patient(reader):
                yield reader, stranger, pool
    finally:
        stranger.stop()


@pytest.mark.parametrize("case", ["another authority", "another name", "one of two"])
def test_s3_a_stranger(bookies: Bookies, ca: Authority, tmp_path: Path, case: str) -> None:
    """S3: whoever cannot show a certificate that Python's ssl module accepts, with its key, is sent nothing."""
    (one,) = bookies(1, **keys_of(ca))
    other = Authority(tmp_path / "other", "another authority")
    unknown = other.issue("bookie", hosts=["127.0.0.1"])
    good = ca.issue("another", hosts=["127.0.0.1"])
    parties = {
        "another authority": [unknown],
        "another name": [ca.issue("stranger", hosts=["example.org"])],
        "one of two": [unknown, good],  # the second connection is the one that is verified
    }
    with misled(one, ca, *parties[case]) as (reader, stranger, pool):
        assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
        assert stranger.connected == 2
        assert not pool._links
    assert not any(stranger.received)


def test_a_bookie_of_the_same_authority(bookies: Bookies, ca: Authority) -> None:
    """Where the certificate is good, requests are sent: the test of strangers can fail."""
    (one,) = bookies(1, **keys_of(ca))
    with misled(one, ca, ca.issue("good", hosts=["127.0.0.1"])) as (reader, stranger, _):
        assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
    assert any(stranger.received)


def test_certificates_are_verified_once_and_again_when_they_change(
    bookies: Bookies, ca: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate is verified for the first connection, after a while, and when the trusted authorities change."""
    verified: list[str] = []
    real = encrypt.DirectTls._verify

    def counted(self: encrypt.DirectTls, *args: Any) -> None:
        real(self, *args)
        verified.append("once")

    monkeypatch.setattr(encrypt.DirectTls, "_verify", counted)
    (one,) = bookies(1, **keys_of(ca))
    trust = tmp_path / "trust.pem"
    trust.write_bytes(ca.certificate.read_bytes())
    settings = settings_of(ca, clientTrustStore=str(trust))
    uri = metadata_of([one])
    ledger = written(uri, **settings)
    with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        pool = pool_of(bk)

        def read_again() -> int:
            dropped(pool)
            with only_direct(reader):
                assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
            return len(verified)

        assert [read_again(), read_again()] == [1, 1]
        tls = pool._connector._tls
        assert tls is not None
        tls._accepted = dict.fromkeys(tls._accepted, 0.0)
        assert [read_again(), read_again()] == [2, 2]
        trust.write_bytes(ca.certificate.read_bytes() + b"\n")
        assert [read_again(), read_again()] == [3, 3]
        trust.write_bytes(Authority(tmp_path / "other", "another authority").certificate.read_bytes())
        dropped(pool)
        assert contents(reader.read(5)) == [(5, PAYLOADS[5])]  # over the connection of the event loop
        assert not pool._links


def test_a_renewed_certificate(bookies: Bookies, ca: Authority) -> None:
    """A bookie that shows a new certificate, without a restart, is trusted if the new one is good."""
    keys = keys_of(ca, tlsCertFilesRefreshDurationSeconds="1")
    (one,) = bookies(1, **keys)
    uri, settings = metadata_of([one]), settings_of(ca)
    ledger = written(uri, **settings)
    with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
        pool = pool_of(bk)
        tls = pool._connector._tls
        assert tls is not None
        keys_of(ca)  # issues it anew, to the same files
        adds.wait_until(lambda: "were reloaded" in one.log_text())
        dropped(pool)
        with only_direct(reader):
            assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
        assert len(tls._accepted) == 2
