"""TLS after START_TLS in a world: the bookie's certificate, and the client's side of a connection, without sockets.

Both use the OpenSSL of the `cryptography` package. Its random numbers do not follow the seed, but no length depends on
them: the certificate is always the same, and its signatures have one length. So a world is the same each time.
"""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

from bookie.server.configuration.settings import TlsSettings
from bookie.server.tls.contexts import TlsContexts
from tests.hostile.tls_peer import ACCEPTED, START_TLS

__all__ = ["prepare", "SealedEnd", "server_contexts", "START_TLS"]

PART_BYTES = 1 << 16


def prepare() -> None:
    """Make the certificate and the client's context, so that the runs of a process need not do it again."""
    _identity()
    _client_context()


def server_contexts(place: Path) -> TlsContexts:
    """Return the contexts of a bookie whose key and certificate are written into a directory."""
    key, certificate = _identity()
    place.mkdir(exist_ok=True)
    paths = place / "key.pem", place / "certificate.pem"
    for path, data in zip(paths, (key, certificate), strict=True):
        path.write_bytes(data)
        path.chmod(0o600)
    return TlsContexts(
        TlsSettings(
            provider_factory="org.apache.bookkeeper.tls.TLSContextFactory",
            key_store=str(paths[0]),
            certificate_path=str(paths[1]),
            refresh_s=0,
        )
    )


@cache
def _identity() -> tuple[bytes, bytes]:
    """Return a private key and its certificate, which are the same in every process."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bookie")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC)).not_valid_after(
        datetime(2099, 1, 1, tzinfo=UTC)
    )
    certificate = builder.sign(key, None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text, certificate.public_bytes(Encoding.PEM)


@cache
def _client_context() -> SSL.Context:
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.set_verify(SSL.VERIFY_NONE)
    return context


class SealedEnd:
    """The client's end of a connection that begins with START_TLS. `failed` says what went wrong."""

    def __init__(self) -> None:
        self.failed = ""
        self._tls = SSL.Connection(_client_context(), None)
        self._tls.set_connect_state()
        self._clear = b""
        self._accepted = self._open = False
        self._waiting: list[bytes] = []

    def seal(self, data: bytes) -> bytes:
        """Return the bytes to send for `data`, which may have to wait for the handshake."""
        self._waiting.append(data)
        return self._sealed()

    def receive(self, data: bytes) -> tuple[bytes, bytes]:
        """Take over received bytes. Return what they say, and what is to be sent because of them."""
        if not self._accepted:
            self._clear += data
            if len(self._clear) < len(ACCEPTED):
                return b"", b""
            if not self._clear.startswith(ACCEPTED):
                self.failed = f"START_TLS was answered by {self._clear[:40].hex()}"
            data, self._accepted = self._clear[len(ACCEPTED) :], True
        if data:
            self._tls.bio_write(data)
        said = b""
        try:
            if not self._open:
                self._tls.do_handshake()
                self._open = True
            while True:
                said += self._tls.recv(PART_BYTES)
        except (SSL.WantReadError, SSL.ZeroReturnError):
            pass
        except SSL.Error as error:
            self.failed = f"TLS failed: {error}"
        return said, self._sealed()

    def _sealed(self) -> bytes:
        if self._open:
            for data in self._waiting:
                self._tls.sendall(data)
            self._waiting.clear()
        sealed = b""
        try:
            while True:
                sealed += self._tls.bio_read(PART_BYTES)
        except SSL.WantReadError:
            return sealed
