"""Tests of files with secrets: a file that others may read or write is refused."""

import logging
import os
from pathlib import Path

import pytest

from bookie.admin_port.channel import read_token
from bookie.auth import sasl, token
from bookie.auth.settings import AuthSettings, ClientAuthSettings
from bookie.client import Tls
from bookie.errors import ConfigurationError
from bookie.secret_files import FILE_BYTES_MAX, SecretRefused, read_secret, read_secret_text
from bookie.server.configuration.settings import AccessSettings
from bookie.server.tls.contexts import make_context
from bookie_admin.tls import http_context
from tests.fixtures.certificates import Authority
from tests.hostile.tls_peer import settings_of

NOBODY = 65534
TOKEN = "a-token-of-enough-bytes"
JAAS = """
Bookie { a.B required user_bookkeeper="s3cret"; };
BookKeeper { a.B required username="bookkeeper" password="s3cret"; };
"""


def secret(directory: Path, text: str, mode: int) -> str:
    """Write a file of this mode, whatever the umask."""
    path = directory / "secret"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("mode", "refused"),
    [(0o600, False), (0o400, False), (0o700, False), (0o640, True), (0o440, True), (0o604, True), (0o620, True)],
)
def test_a_file_of_our_own(tmp_path: Path, mode: int, refused: bool) -> None:
    """S8: only the owner may read or write it."""
    path = secret(tmp_path, TOKEN, mode)
    if not refused:
        assert read_secret(path) == TOKEN.encode()
        return
    with pytest.raises(SecretRefused, match=f"mode {mode:o}.*set its mode to 600") as error:
        read_secret(path)
    assert TOKEN not in str(error.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize(("mode", "refused"), [(0o440, False), (0o400, False), (0o444, True), (0o460, True)])
def test_a_file_of_another_user(tmp_path: Path, mode: int, refused: bool) -> None:
    """S8: our group may read it, as secrets reach a container that way; others may not, and nobody may write."""
    path = secret(tmp_path, TOKEN, mode)
    os.chown(path, NOBODY, -1)
    if not refused:
        assert read_secret(path) == TOKEN.encode()
        return
    with pytest.raises(SecretRefused, match=f"mode {mode:o}"):
        read_secret(path)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """A file that is too large, missing, a directory or not text is refused, with a reason."""
    for path, says in (
        (str(tmp_path / "nowhere"), "No such file"),
        (str(tmp_path), "Is a directory"),
        (secret(tmp_path, "x" * (FILE_BYTES_MAX + 1), 0o600), "larger than"),
    ):
        with pytest.raises(SecretRefused, match=says):
            read_secret(path)
    Path(secret(tmp_path, "", 0o600)).write_bytes(b"\xff")
    with pytest.raises(SecretRefused, match="UTF-8"):
        read_secret_text(tmp_path / "secret")


def test_a_bookie_refuses_what_others_may_use(tmp_path: Path) -> None:
    """S8: the error names the configuration key and the mode, for each file with tokens, users, passwords or keys."""
    ca = Authority(tmp_path / "ca")
    party = ca.issue("bookie", hosts=["127.0.0.1"])
    path = secret(tmp_path, TOKEN, 0o644)
    with pytest.raises(ConfigurationError, match=r"authTokenFile=.*mode 644"):
        token.server(AuthSettings(token_file=path))
    with pytest.raises(ConfigurationError, match=r"tlsKeyStorePasswordPath=.*mode 644"):
        make_context(settings_of(party, key_store_password_path=path))
    with pytest.raises(ConfigurationError, match=f"{path}: .*mode 640"):
        sasl.server(AuthSettings(jaas_file=secret(tmp_path, JAAS, 0o640)))
    party.key.chmod(0o644)
    with pytest.raises(ConfigurationError, match=r"tlsKeyStore=.*mode 644"):
        make_context(settings_of(party))
    with pytest.raises(ConfigurationError, match=r"adminTlsKeyPath=.*mode 644"):
        http_context(AccessSettings(tls_certificate=str(party.certificate), tls_key=str(party.key)))
    party.certificate.chmod(0o644)  # a certificate is no secret
    party.key.chmod(0o600)
    make_context(settings_of(party))


def test_a_client_tells_of_it_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S8: a client goes on, because it cannot choose how files reach it, and logs each such file once."""
    party = Authority(tmp_path / "ca").issue("client")
    party.key.chmod(0o644)
    path = secret(tmp_path, JAAS, 0o644)
    with caplog.at_level(logging.WARNING, "bookie.secret_files"):
        for _ in range(3):
            assert sasl.client(ClientAuthSettings(jaas_file=path)).session("host").first() == b""
            Tls(certificate=party.certificate, key=party.key).context()
            Path(path).write_text(JAAS)
    reported = [record for record in caplog.records if record.name == "bookie.secret_files"]
    assert [vars(record)["file"] for record in reported] == [path, str(party.key)]
    caplog.clear()
    Path(path).write_text(TOKEN)
    assert token.client(ClientAuthSettings(token_file=path)).session("host").first() == TOKEN.encode()
    assert read_token(path) == TOKEN
    assert not caplog.records
