"""Which provider a name stands for."""

from importlib.metadata import EntryPoint

import pytest

from bookie.auth import registry
from bookie.auth.certificate import CertificateServer
from bookie.auth.settings import AuthSettings
from bookie.auth.token import TokenServer
from bookie.errors import ConfigurationError

UPSTREAM = "org.apache.bookkeeper.tls.BookieAuthZFactory"


def test_names_of_ours_and_upstreams() -> None:
    """Nothing configured lets everybody in; class names of upstream's stand for ours."""
    assert registry.open_server(AuthSettings()) is None
    for name in ("certificate", UPSTREAM):
        found = registry.open_server(AuthSettings(provider=name, authorized_roles="a"))
        assert isinstance(found, CertificateServer)
        assert found.plugin_name == "BookieAuthZFactory"


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    """A bookie that was told to ask for passwords never starts without."""
    with pytest.raises(ConfigurationError, match=f"nearest known one is {UPSTREAM}"):
        registry.open_server(AuthSettings(provider=UPSTREAM + "2"))


def own(settings: AuthSettings) -> TokenServer:
    """A provider as somebody might install one."""
    return TokenServer((settings.provider_file.encode(),))


def test_installed_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point is found by its name and handed the settings."""
    entry = EntryPoint("com.example.Own", f"{__name__}:own", registry.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _: own)
    monkeypatch.setattr(registry, "entry_points", lambda **_: [entry])
    found = registry.open_server(AuthSettings(provider="com.example.Own", provider_file="x" * 20))
    assert found is not None
    assert found.session("").process(b"x" * 20).principal
