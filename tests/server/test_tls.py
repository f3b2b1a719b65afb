"""TLS of a bookie process: files, errors in them, and connections when they change."""

import logging
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.x509 import load_pem_x509_certificate

from bookie.auth.token import TokenClient
from bookie.server.configuration.errors import ConfigError
from bookie.server.tls.ciphers import split
from bookie.server.tls.contexts import TlsContexts, make_context
from tests.fixtures.bookies import COMMAND, BookieProcess
from tests.fixtures.certificates import Authority
from tests.hostile.auth_frames import log_in
from tests.hostile.local import local_bookie
from tests.hostile.peer import Peer, add, read
from tests.hostile.tls_peer import TlsPeer, client_context, settings_of

Bookies = Callable[..., list[BookieProcess]]
FACTORY = "org.apache.bookkeeper.tls.TLSContextFactory"


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    """The certificate authority of all parties."""
    return Authority(tmp_path / "ca")


def keys_of(ca: Authority, **others: str) -> dict[str, str]:
    """Return the keys of a configuration file for TLS."""
    party = ca.issue("bookie", hosts=["127.0.0.1"])
    return {
        "tlsProviderFactoryClass": FACTORY,
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": str(party.key),
        "tlsCertificatePath": str(party.certificate),
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": str(ca.certificate),
        **others,
    }


def test_a_process_with_tls(bookies: Bookies, ca: Authority) -> None:
    """Both kinds of connections are served, and the log contains nothing of a key or a certificate."""
    keys = keys_of(ca, tlsClientAuthentication="true", tlsEnabledProtocols="TLSv1.3,TLSv1.2")
    (bookie,) = bookies(1, **keys)
    with TlsPeer(bookie.address, client_context(ca, ca.issue("client"))) as peer, Peer(bookie.address) as plain:
        assert peer.ask(add(1, 0, b"x")).code == 0
        assert plain.ask(read(1, 0)).code == 0
    bookie.stop()
    text = bookie.log_text()
    assert "TLS is offered" in text
    for file in (keys["tlsKeyStore"], keys["tlsCertificatePath"]):
        assert not any(line in text for line in Path(file).read_text().split("\n") if len(line) > 20)
    assert "CN=" not in text


DENIED = """
import ctypes, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
"""
"""A program that runs another one which gets no executable memory that it could write before."""


def test_a_process_without_executable_memory(bookies: Bookies, ca: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """TLS on the data port, the HTTP port and the admin port works under `MemoryDenyWriteExecute` of systemd."""
    denied = [sys.executable, "-c", DENIED]
    probe = subprocess.run([*denied, sys.executable, "-c", ""], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(probe.stderr)
    gain = "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)"
    assert subprocess.run([*denied, sys.executable, "-c", gain], capture_output=True, check=False).returncode
    monkeypatch.setattr("tests.fixtures.bookies.COMMAND", [*denied, *COMMAND])
    party = ca.issue("admin", hosts=["127.0.0.1"])
    (bookie,) = bookies(
        1,
        httpServerEnabled="true",
        httpServerPort="0",
        httpServerTlsEnable="true",
        adminTlsCertificatePath=str(party.certificate),
        adminTlsKeyPath=str(party.key),
        adminTlsClientCaPath=str(ca.certificate),
        adminTlsSubjects="admin:*",
        **keys_of(ca, tlsClientAuthentication="true"),
    )
    context = client_context(ca, ca.issue("client"))
    with TlsPeer(bookie.address, context) as peer:
        assert peer.ask(add(1, 0, b"x")).code == 0
    with closing(HTTPSConnection(bookie.planes["http"], context=context)) as http:
        http.request("GET", "/livez")
        assert http.getresponse().status == 200
    host, port = bookie.admin.split(":")
    with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain, server_hostname=host) as grpc:
        assert grpc.version()


def test_a_process_that_requires_tls(bookies: Bookies, ca: Authority, tmp_path: Path) -> None:
    """By configuration alone nothing is served in clear, logins work inside TLS, and removed tokens disconnect."""
    tokens = tmp_path / "tokens"
    tokens.write_text("write:one:a-token-of-enough-bytes\n")
    keys = keys_of(ca, tlsRequired="true", bookieAuthProviderFactoryClass="token", authTokenFile=str(tokens))
    (bookie,) = bookies(1, authFilesRefreshDurationSeconds="1", **keys)
    with Peer(bookie.address) as plain:
        assert plain.ask(add(1, 0, b"x")).code == 102
        assert plain.closed()
    with TlsPeer(bookie.address, client_context(ca)) as peer:
        log_in(peer, 2, "token", TokenClient(b"a-token-of-enough-bytes").session(""))
        assert peer.ask(add(1, 0, b"x")).code == 0
        tokens.write_text("write:two:another-token-of-enough-bytes\n")
        assert peer.closed()
    bookie.stop()
    text = bookie.log_text()
    assert "it sent a request or a login in clear, and tlsRequired is set" in text
    assert "user=token:one" in text
    assert "of-enough-bytes" not in text


@pytest.mark.thorough
def test_check_looks_at_the_files(new_bookies: Bookies, ca: Authority) -> None:
    """`--check` names key, path and remedy in one line."""
    (bookie,) = new_bookies(1, **keys_of(ca))
    assert subprocess.run(bookie.command("--check"), capture_output=True, check=False).returncode == 0
    bookie.settings["tlsKeyStore"] = str(ca.directory / "nowhere.key")
    done = subprocess.run(bookie.command("--check"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert f"tlsKeyStore={ca.directory / 'nowhere.key'}" in last
    assert "No such file" in last


def test_a_factory_of_somebody_else(new_bookies: Bookies, ca: Authority) -> None:
    """Java classes cannot be loaded here, so they are refused at start."""
    (bookie,) = new_bookies(1, **keys_of(ca, tlsProviderFactoryClass="com.example.Factory"))
    done = subprocess.run(bookie.command("--check"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"set it to {FACTORY}" in done.stderr


BAD: dict[str, tuple[dict[str, str | bool], str, str]] = {
    "no key": ({"key_store": ""}, "tlsKeyStore", "it must be set"),
    "no certificate": ({"certificate_path": ""}, "tlsCertificatePath", "it must be set"),
    "no trust": ({"client_authentication": True}, "tlsTrustStore", "it must be set"),
    "a directory": ({"certificate_path": "{ca}"}, "tlsCertificatePath", "cannot be read"),
    "swapped": ({"certificate_path": "{ca}/bookie.key"}, "tlsCertificatePath", "no certificate in PEM"),
    "swapped too": ({"key_store": "{ca}/bookie.pem"}, "tlsKeyStore", "no private key in PEM"),
    "another's key": ({"key_store": "{ca}/other.key"}, "tlsKeyStore", "do not match"),
    "no password": ({"key_store": "{ca}/secret.key"}, "tlsKeyStore", "no private key in PEM that can be opened"),
    "wrong password": (
        {"key_store": "{ca}/secret.key", "key_store_password_path": "{ca}/bookie.pem"},
        "tlsKeyStore",
        "no private key in PEM that can be opened",
    ),
    "no PKCS12": ({"key_store_type": "pkcs12"}, "tlsKeyStore", "not a PKCS12 file"),
    "JKS": ({"key_store_type": "jks"}, "tlsKeyStoreType", "keytool"),
    "JKS trust": ({"trust_store_type": "jks", "client_authentication": True}, "tlsTrustStoreType", "keytool"),
    "old": ({"protocols": "TLSv1.1,TLSv1.2"}, "tlsEnabledProtocols", "TLSv1.1 is too old"),
    "unknown": ({"protocols": "TLSv9"}, "tlsEnabledProtocols", "TLSv9 is not known"),
    "cipher": ({"cipher_suites": "TLS_AES_1_GCM_SHA1"}, "tlsEnabledCipherSuites", "OpenSSL knows none"),
    "older cipher": ({"cipher_suites": "ROT13"}, "tlsEnabledCipherSuites", "OpenSSL knows none"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(ca: Authority, case: str) -> None:
    """Each is refused on one line with the wrong key, its value, and a remedy."""
    changes, key, reason = BAD[case]
    party = ca.issue("bookie")
    ca.issue("other")
    ca.issue("secret", password=b"secret")
    given = {
        name: value.format(ca=ca.directory) if isinstance(value, str) else value for name, value in changes.items()
    }
    settings = settings_of(party)
    with pytest.raises(ConfigError) as refused:
        make_context(type(settings)(**{name: getattr(settings, name) for name in settings.__slots__} | given))
    assert refused.value.key == key
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_pkcs12_and_passwords(tmp_path: Path, ca: Authority) -> None:
    """A key with a password, and key and trust stores in PKCS12, can be used."""
    party = ca.issue("secret", hosts=["127.0.0.1"], password=b"secret", with_rsa=True)
    password = ca.directory / "password"
    password.write_text("secret\n")
    trust = ca.directory / "trust.p12"
    own = load_pem_x509_certificate(ca.certificate.read_bytes())
    trust.write_bytes(
        pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(own, b"ca")], BestAvailableEncryption(b"secret"))
    )
    pem = settings_of(party, key_store_password_path=str(password))
    stores = settings_of(
        type(party)(ca.directory / "secret.p12", Path(), b""),
        trust=trust,
        key_store_type="pkcs12",
        key_store_password_path=str(password),
        trust_store_type="pkcs12",
        trust_store_password_path=str(password),
    )
    for number, settings in enumerate((pem, stores)):
        with (
            local_bookie(tmp_path / str(number), tls=settings) as bookie,
            TlsPeer(bookie.address, client_context(ca, ca.issue("client"))) as peer,
        ):
            assert peer.ask(add(1, 0, b"x")).code == 0


@pytest.mark.parametrize("with_alias", [False, True])
def test_a_key_in_a_trust_store_is_trusted_as_in_java(tmp_path: Path, ca: Authority, with_alias: bool) -> None:
    """Conversion by keytool keeps a key entry of a JKS store: its certificate is trusted, and so are certificates with
    an alias, but not the authority that only belongs to the chain of the key.
    """
    friend = ca.issue("friend", password=b"secret")
    shutil.copyfile(friend.key.with_suffix(".p12"), tmp_path / "trust.p12")
    if with_alias:
        held = pkcs12.load_pkcs12(friend.key.with_suffix(".p12").read_bytes(), b"secret")
        own = load_pem_x509_certificate(ca.certificate.read_bytes())
        assert held.cert is not None
        assert isinstance(held.key, ec.EllipticCurvePrivateKey)
        (tmp_path / "trust.p12").write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"friend",
                held.key,
                held.cert.certificate,
                [pkcs12.PKCS12Certificate(own, b"theca")],
                BestAvailableEncryption(b"secret"),
            )
        )
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    settings = settings_of(
        ca.issue("bookie", hosts=["127.0.0.1"]),
        trust=tmp_path / "trust.p12",
        trust_store_type="pkcs12",
        trust_store_password_path=str(password),
    )
    context = client_context(ca)
    context.load_cert_chain(friend.certificate, friend.key, "secret")
    with local_bookie(tmp_path / "bookie", tls=settings) as bookie:
        with TlsPeer(bookie.address, context) as peer:
            assert peer.ask(add(1, 0, b"x")).code == 0
        assert is_served(bookie.address, client_context(ca, ca.issue("another"))) is with_alias


def is_served(address: tuple[str, int], context: ssl.SSLContext) -> bool:
    """Return whether a bookie answers a client that shows this certificate."""
    try:
        with TlsPeer(address, context) as peer:
            return bool(peer.ask(add(1, 1, b"x")).code == 0)
    except (ssl.SSLError, ConnectionError):
        return False


def test_renewed_files(tmp_path: Path, ca: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """New connections get the new certificate and old ones continue; a bad file is logged once and changes nothing."""
    party = ca.issue("bookie", hosts=["127.0.0.1"])
    with local_bookie(tmp_path / "bookie", tls=settings_of(party, refresh_s=0)) as bookie:
        contexts = bookie.port.tls
        assert contexts is not None
        with TlsPeer(bookie.address, client_context(ca)) as old:
            assert old.ask(add(1, 0, b"x")).code == 0
            assert not contexts.refresh()
            renewed = ca.issue("bookie", hosts=["127.0.0.1"])
            assert contexts.refresh()
            assert shown(bookie.address, ca) == renewed.der != party.der
            party.certificate.write_text("nonsense")
            assert not contexts.refresh()
            assert not contexts.refresh()
            assert shown(bookie.address, ca) == renewed.der
            assert old.ask(read(1, 0)).code == 0
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "tlsCertificatePath" in errors[0].getMessage()


@pytest.mark.thorough
def test_a_running_bookie_looks_by_itself(bookies: Bookies, tmp_path: Path, ca: Authority) -> None:
    """Files that are replaced, as by tools that renew certificates, are noticed."""
    keys = keys_of(ca, tlsCertFilesRefreshDurationSeconds="1")
    served = tmp_path / "served"
    served.mkdir()
    for name in ("bookie.key", "bookie.pem"):
        shutil.copy(ca.directory / name, served / name)
    (bookie,) = bookies(
        1, **keys | {"tlsKeyStore": f"{served}/bookie.key", "tlsCertificatePath": f"{served}/bookie.pem"}
    )
    old = shown(bookie.address, ca)
    renewed = ca.issue("bookie", hosts=["127.0.0.1"])
    for name in ("bookie.key", "bookie.pem"):
        (ca.directory / name).rename(served / name)
    while (now := shown(bookie.address, ca)) == old:
        continue
    assert now == renewed.der


def shown(address: tuple[str, int], ca: Authority) -> bytes | None:
    """Return the certificate that a new connection gets."""
    with TlsPeer(address, client_context(ca)) as peer:
        assert isinstance(peer.sock, ssl.SSLSocket)
        return peer.sock.getpeercert(binary_form=True)


def test_contexts_stop_twice(ca: Authority) -> None:
    """`stop` is idempotent, even without a start."""
    contexts = TlsContexts(settings_of(ca.issue("bookie")))
    contexts.stop()
    contexts.start()
    contexts.stop()
    contexts.stop()


@pytest.mark.parametrize(
    ("given", "older", "newer"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", ""),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384", ""),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", ""),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256", ""),
        (
            "ECDHE-RSA-AES256-GCM-SHA384, TLS_AES_256_GCM_SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "TLS_AES_256_GCM_SHA384",
        ),
        (
            "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
            "",
            "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256",
        ),
    ],
)
def test_names_of_ciphers(given: str, older: str, newer: str) -> None:
    """Both spellings are understood, and a protocol that is not mentioned keeps its default."""
    default = split("")
    assert split(given) == (older or default[0], newer or default[1])
