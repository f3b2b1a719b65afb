"""Tests which provider a name stands for."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bookie.auth import registry
from bookie.auth.certificate import CertificateServer
from bookie.auth.settings import AuthSettings, ClientAuthSettings
from bookie.auth.token import TokenServer
from bookie.errors import ConfigurationError

UPSTREAM = "org.apache.bookkeeper.tls.BookieAuthZFactory"


def test_names_of_ours_and_upstreams() -> None:
    """With nothing configured everybody is let in, and upstream's class names stand for our providers."""
    assert registry.open_server(AuthSettings()) is None
    for name in ("certificate", UPSTREAM):
        found = registry.open_server(AuthSettings(provider=name, authorized_roles="a"))
        assert isinstance(found, CertificateServer)
        assert found.plugin_name == "BookieAuthZFactory"


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    """A bookie that was told to ask for passwords never starts without doing so."""
    with pytest.raises(ConfigurationError, match=f"most similar name is {UPSTREAM}"):
        registry.open_server(AuthSettings(provider=UPSTREAM + "2"))


def own(settings: AuthSettings) -> TokenServer:
    """A provider such as a user might install."""
    return TokenServer((settings.provider_file.encode(),))


def test_installed_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider is found by the name of its entry point and is handed the settings."""
    entry = EntryPoint("com.example.Own", f"{__name__}:own", registry.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _: own)
    monkeypatch.setattr(registry, "entry_points", lambda **_: [entry])
    found = registry.open_server(AuthSettings(provider="com.example.Own", provider_file="x" * 20))
    assert found is not None
    assert found.session("").process(b"x" * 20).principal


def test_clients_by_name(tmp_path: Path) -> None:
    """Clients are found by the same names and by upstream's class for clients, with files that hold their identity."""
    assert registry.open_client(ClientAuthSettings()) is None
    (tmp_path / "tokens").write_text("first-token-of-enough-bytes\nsecond-token-of-enough-bytes\n")
    token = registry.open_client(ClientAuthSettings(provider="token", token_file=str(tmp_path / "tokens")))
    assert token is not None
    assert token.session("").first() == b"first-token-of-enough-bytes"
    (tmp_path / "jaas.conf").write_text('BookKeeper { a.B required username="me" password="s3cret"; };')
    java = "org.apache.bookkeeper.sasl.SASLClientProviderFactory"
    sasl = registry.open_client(ClientAuthSettings(provider=java, jaas_file=str(tmp_path / "jaas.conf")))
    assert sasl is not None
    assert sasl.plugin_name == "sasl"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"provider": "tokn"}, "most similar name is token"),
        ({"provider": "sasl"}, "jaas_file is empty"),
        ({"provider": "sasl", "jaas_file": "jaas.conf"}, "has no login"),
    ],
)
def test_wrong_settings_of_clients(tmp_path: Path, settings: dict[str, str], why: str) -> None:
    """Wrong settings are named, without the contents of the file."""
    if "jaas_file" in settings:
        (tmp_path / "jaas.conf").write_text('BookKeeper { a.B required password="s3cret"; };')
        settings = {**settings, "jaas_file": str(tmp_path / "jaas.conf")}
    with pytest.raises(ConfigurationError, match=why) as refused:
        registry.open_client(ClientAuthSettings(**settings))
    assert "s3cret" not in str(refused.value)
