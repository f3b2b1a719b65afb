"""bkadmin and the HTTP port against bookies that serve nothing without TLS and a token, and profiles of clusters."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from bookie_admin.bkadmin.main import bkadmin as program
from tests.admin.bkadmin.conftest import BkAdmin
from tests.admin.http.conftest import Port
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.server.test_tls import keys_of

Bookies = Callable[..., list[BookieProcess]]
TOKEN = "a-token-of-more-than-sixteen-bytes"
pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


@pytest.fixture
def guarded(bookies: Bookies, tmp_path: Path) -> list[BookieProcess]:
    """Two bookies that demand TLS and a token; their own client has both."""
    ca = Authority(tmp_path / "ca")
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"admin:one:{TOKEN}\n")
    sent = tmp_path / "sent"
    sent.touch(0o600)
    sent.write_text(TOKEN)
    return bookies(
        2,
        **keys_of(ca, tlsRequired="true", bookieAuthProviderFactoryClass="token", authTokenFile=str(tokens)),
        clientTrustStore=str(ca.certificate),
        clientAuthProviderFactoryClass="token",
        clientAuthTokenFile=str(sent),
        httpServerEnabled="true",
        httpServerPort="0",
    )


def profiles(path: Path, bookie: BookieProcess, **client: str) -> None:
    """Write a file with the profile `here`."""
    lines = ["[here]", f"metadata-service-uri = {json.dumps(f'grpc://{bookie.admin}')}", f'admin = "{bookie.admin}"']
    lines += ["[here.client]", *(f"{key} = {json.dumps(value)}" for key, value in client.items())]
    path.write_text("\n".join(lines) + "\n")


def test_commands_know_tls_and_tokens(
    guarded: list[BookieProcess], bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those that speak with single bookies and those of clients take both from --conf or a profile, as the HTTP port
    takes its own; without them they are refused.
    """
    one, two = guarded
    uri = f"grpc://{one.admin}"
    without = bkadmin("bookiesanity", two.id, "-u", uri)
    assert without.code == 1
    with_conf = ("-u", uri, "--conf", one.conf)
    profiles(tmp_path / "profiles.toml", one, **{k: v for k, v in one.settings.items() if k.startswith("client")})
    monkeypatch.setenv("BOOKIE_PROFILES", str(tmp_path / "profiles.toml"))
    monkeypatch.setenv("BOOKIE_METADATA_URI", "grpc://127.0.0.1:1")  # a profile replaces it
    for before, after in (((), with_conf), (("--profile", "here"), ())):
        assert bkadmin(*before, "bookiesanity", two.id, *after).code == 0
        whole = bkadmin(*before, "bookieinfo", "-o", "json", *after)
        assert [row["state"] for row in whole.json["bookies"]] == ["ok", "ok"]
        assert bkadmin(*before, "restorebookie", two.id, *after).code == 0
        assert "is registered and does not answer" not in bkadmin(*before, "health", *after).out
        assert bkadmin(*before, "simpletest", "-e", 2, "-n", 5, *after).code == 0
    assert bkadmin("--profile", "here", "status").code == 0
    port = Port(one.planes["http"])
    cluster = port.get("/api/console/cluster").json
    assert [row["error"] for row in cluster["bookies"]] == ["", ""]
    assert port.ask("POST", "/api/v1/bookie/sanity").json["passed"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[other]\n", "there is no such profile in .*; it has other"),
        ("[here]\nadmn = 'a:1'\n", "admn: no such key; do you mean admin?"),
        ("[here]\ntoken = 'secret'\n", "token: no such key"),
        ("[here]\nadmin = 1\n", "admin=1: it must be a text in quotes"),
        ("[here.client]\npasswd = 'secret'\n", "client.passwd: a profile holds no secrets"),
        ("[here\n", "correct the file"),
    ],
)
def test_wrong_profiles(
    bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, said: str
) -> None:
    """One line names the file, the key and the remedy, without the value of what may be a secret."""
    (tmp_path / "profiles.toml").write_text(text)
    monkeypatch.setenv("BOOKIE_PROFILES", str(tmp_path / "profiles.toml"))
    done = bkadmin("--profile", "here", "listbookies")
    assert done.code == 1
    assert re.search(said, done.err), done.err
    assert "secret'" not in done.err


def test_completion_of_profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shell completes the names of profiles."""
    (tmp_path / "profiles.toml").write_text("[production]\n[test]\n")
    monkeypatch.setenv("BOOKIE_PROFILES", str(tmp_path / "profiles.toml"))
    shell = ShellComplete(program, {}, "bkadmin", "_BKADMIN_COMPLETE")
    assert [one.value for one in shell.get_completions(["--profile"], "")] == ["production", "test"]
    assert [one.value for one in shell.get_completions(["--profile"], "t")] == ["test"]
