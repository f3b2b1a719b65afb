"""Authentication providers by name: built in, by Apache BookKeeper's class names, or installed.

An installed provider is an entry point that names a callable: in the group `bookie.auth` for bookies, `(AuthSettings)
-> ServerProvider`; in `bookie.auth.client` for clients, `(ClientAuthSettings) -> ClientProvider`. Use its name, or
the Java class name that it stands for, in `bookieAuthProviderFactoryClass` or `ClientAuthSettings.provider`.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from bookie.auth import sasl, token
from bookie.auth.provider import ClientProvider, ServerProvider
from bookie.auth.settings import AuthSettings, ClientAuthSettings
from bookie.errors import ConfigurationError

__all__ = ["CLIENT_GROUP", "GROUP", "needs_certificates", "open_client", "open_server"]

GROUP = "bookie.auth"
CLIENT_GROUP = "bookie.auth.client"
ServerFactory = Callable[[AuthSettings], ServerProvider]
ClientFactory = Callable[[ClientAuthSettings], ClientProvider]


def _certificate(settings: AuthSettings) -> ServerProvider:
    from bookie.auth import certificate  # noqa: PLC0415 - it loads OpenSSL, which is slow and which few bookies need

    return certificate.server(settings)


NONE = ("", "none", "org.apache.bookkeeper.auth.AuthProviderFactoryFactory$AuthenticationDisabledAuthProviderFactory")
BUILT_IN: dict[str, ServerFactory] = {
    "certificate": _certificate,
    "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory": sasl.server,
    "org.apache.bookkeeper.tls.BookieAuthZFactory": _certificate,
    "sasl": sasl.server,
    "token": token.server,
}
BUILT_IN_CLIENT: dict[str, ClientFactory] = {
    "org.apache.bookkeeper.sasl.SASLClientProviderFactory": sasl.client,
    "sasl": sasl.client,
    "token": token.client,
}


def open_server(settings: AuthSettings) -> ServerProvider | None:
    """Return the configured provider, or None if clients need no authentication. Raises ConfigurationError."""
    provider: ServerProvider | None = _open(settings, "bookieAuthProviderFactoryClass=", GROUP, BUILT_IN)
    return provider


def needs_certificates(name: str) -> bool:
    """Return whether this provider accepts only clients with a TLS certificate."""
    return BUILT_IN.get(name) is _certificate


def open_client(settings: ClientAuthSettings) -> ClientProvider | None:
    """Return the client's provider, or None for an anonymous client. Raises ConfigurationError."""
    provider: ClientProvider | None = _open(settings, "provider ", CLIENT_GROUP, BUILT_IN_CLIENT)
    return provider


def _open(settings: Any, setting: str, group: str, built_in: Mapping[str, Callable[..., Any]]) -> Any:
    """Return the provider that `settings` name, built in or installed, or None if they name none."""
    name = settings.provider
    if name in NONE:
        return None
    factory = built_in.get(name) or _installed(group, name)
    if factory is None:
        raise _unknown(f"{setting}{name}", name, group, built_in)
    return factory(settings)


def _installed(group: str, name: str) -> Callable[..., Any] | None:
    for entry in entry_points(group=group, name=name):
        loaded: Callable[..., Any] = entry.load()
        return loaded
    return None


def _unknown(what: str, name: str, group: str, built_in: Iterable[str]) -> ConfigurationError:
    known = [*built_in, *(entry.name for entry in entry_points(group=group))]
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
    return ConfigurationError(f"{what}: there is no such provider; the most similar name is {nearest}")
