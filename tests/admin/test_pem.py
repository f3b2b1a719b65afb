"""Keys and certificates that gRPC gets, also while a program writes their files anew: gRPC aborts the process if one is
empty.
"""

import ssl
from pathlib import Path

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.admin_port.channel import tls_credentials
from bookie.admin_port.pem import UnusablePem, check_authorities, check_pair
from bookie.errors import ConfigurationError
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.settings import AccessSettings
from bookie_admin import tls
from tests.fixtures.certificates import Authority, Party

FOR_SERVERS = bytes.fromhex("300c 300a 0608 2b06010505070301")
"""What `openssl x509 -addtrust serverAuth` writes behind a certificate."""

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Party, Party]:
    """An authority, and two parties with certificates of it."""
    ca = Authority(tmp_path_factory.mktemp("ca"))
    return ca, ca.issue("one"), ca.issue("two", with_rsa=True)


def opened(ca: Path, certificate: Path | None, key: Path | None) -> None:
    """Open a channel with these files, and close it."""
    credentials = tls_credentials(str(ca), str(certificate) if certificate else None, str(key) if key else None)
    grpc.secure_channel("127.0.0.1:1", credentials).close()


def test_whole_files(parties: tuple[Authority, Party, Party]) -> None:
    """Files of either kind of key, and no certificate of the client."""
    ca, one, two = parties
    opened(ca.certificate, one.certificate, one.key)
    opened(ca.certificate, two.certificate, two.key)
    opened(ca.certificate, None, None)


def test_what_cannot_be_used(parties: tuple[Authority, Party, Party], tmp_path: Path) -> None:
    """Empty files, files of two parties, one file of a pair, and keys with a password."""
    ca, one, two = parties
    empty = tmp_path / "empty"
    empty.touch(mode=0o600)
    locked = ca.issue("locked", password=b"a-password")
    for certificate, key, says in (
        (empty, one.key, "the certificate is not whole"),
        (one.certificate, empty, "the key is not whole"),
        (one.certificate, two.key, "do not match"),
        (one.certificate, None, "the key is not whole"),
        (None, one.key, "the certificate is not whole"),
        (locked.certificate, locked.key, "has a password"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            opened(ca.certificate, certificate, key)
    with pytest.raises(
        ConfigurationError, match=f"TLS authorities {empty}: the file of authorities has no certificate"
    ):
        opened(empty, one.certificate, one.key)


def test_authorities_with_trust_settings(parties: tuple[Authority, Party, Party], tmp_path: Path) -> None:
    """OpenSSL writes them as TRUSTED CERTIFICATE, and gRPC obeys them."""
    ca, one, _ = parties
    plain = ssl.PEM_cert_to_DER_cert(ca.certificate.read_text())
    pem = ssl.DER_cert_to_PEM_cert(plain + FOR_SERVERS)
    text = pem.replace(" CERTIFICATE", " TRUSTED CERTIFICATE").encode()
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(text)
    opened(trusted, one.certificate, one.key)
    for part in (text[: len(text) // 2], text + text[: len(text) // 2], text.replace(b"TRUSTED ", b"", 1)):
        with pytest.raises(UnusablePem):
            check_authorities(part)


@settings(max_examples=200)
@given(share=st.floats(0, 1), garbage=st.binary(max_size=50))
def test_files_that_are_being_written(parties: tuple[Authority, Party, Party], share: float, garbage: bytes) -> None:
    """The beginning of a file, also with other bytes behind it, is refused unless it has a whole certificate or key."""
    ca, one, _ = parties
    certificate, key, authorities = (path.read_bytes() for path in (one.certificate, one.key, ca.certificate))

    def begun(text: bytes) -> bytes:
        return text[: int(len(text) * share)] + garbage

    if b"-----END" not in begun(certificate):
        with pytest.raises(UnusablePem):
            check_pair(begun(certificate), key)
    if b"-----END" not in begun(key):
        with pytest.raises(UnusablePem):
            check_pair(certificate, begun(key))
    if b"-----END" not in begun(authorities):
        with pytest.raises(UnusablePem):
            check_authorities(begun(authorities))


@pytest.mark.parametrize("emptied", ["key", "certificate", "ca"])
def test_the_port_reads_files_that_are_being_written(
    parties: tuple[Authority, Party, Party], monkeypatch: pytest.MonkeyPatch, emptied: str
) -> None:
    """A file that is emptied between its check and its use is refused; the port goes on with what it has."""
    ca, one, _ = parties
    path = {"key": one.key, "certificate": one.certificate, "ca": ca.certificate}[emptied]
    access = AccessSettings(
        tls_certificate=str(one.certificate), tls_key=str(one.key), tls_client_ca=str(ca.certificate)
    )
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: b"" if self == path else read(self))
    with pytest.raises(ConfigError, match="being written"):
        tls.server_credentials(access)
