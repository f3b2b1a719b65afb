"""Providers by name: the built-in ones, Apache BookKeeper's class names for them, and installed ones.

An installed provider is an entry point of the group `bookie.auth` that names a callable `(AuthSettings) ->
ServerProvider`. Its name, or the Java class name that it stands in for, goes into `bookieAuthProviderFactoryClass`.
"""

import difflib
from collections.abc import Callable
from importlib.metadata import entry_points

from bookie.auth import certificate, sasl, token
from bookie.auth.provider import ServerProvider
from bookie.auth.settings import AuthSettings
from bookie.errors import ConfigurationError

__all__ = ["GROUP", "open_server"]

GROUP = "bookie.auth"
ServerFactory = Callable[[AuthSettings], ServerProvider]
NONE = ("", "none", "org.apache.bookkeeper.auth.AuthProviderFactoryFactory$AuthenticationDisabledAuthProviderFactory")
BUILT_IN: dict[str, ServerFactory] = {
    "certificate": certificate.server,
    "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory": sasl.server,
    "org.apache.bookkeeper.tls.BookieAuthZFactory": certificate.server,
    "sasl": sasl.server,
    "token": token.server,
}


def open_server(settings: AuthSettings) -> ServerProvider | None:
    """The configured provider; None: everybody is let in. Raises ConfigurationError."""
    name = settings.provider
    if name in NONE:
        return None
    factory = BUILT_IN.get(name) or _installed(name)
    if factory is None:
        known = [*BUILT_IN, *(entry.name for entry in entry_points(group=GROUP))]
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
        raise ConfigurationError(
            f"bookieAuthProviderFactoryClass={name}: there is no such provider; the nearest known one is {nearest}"
        )
    return factory(settings)


def _installed(name: str) -> ServerFactory | None:
    for entry in entry_points(group=GROUP, name=name):
        loaded: ServerFactory = entry.load()
        return loaded
    return None
