"""Settings of authentication for bookies and clients: names and paths, never a secret."""

from dataclasses import dataclass

__all__ = ["AuthSettings", "ClientAuthSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """The bookie's settings, frozen, filled by its configuration loader. Secrets stay in the files named here."""

    provider: str = ""
    """A name of `registry`; empty for no authentication."""
    provider_file: str = ""
    """A file for installed providers."""
    token_file: str = ""
    authorized_roles: str = ""
    """Roles separated by commas."""
    authorized_names: str = ""
    jaas_file: str = ""
    jaas_section: str = "Bookie"
    allowed_ids: str = ".*bookkeeper.*"
    """A regular expression that must match a SASL user's complete name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAuthSettings:
    """A client's settings, for `registry.open_client`."""

    provider: str = ""
    """A name of `registry`, or Apache BookKeeper's `clientAuthProviderFactoryClass`; empty for an anonymous client."""
    provider_file: str = ""
    """A file for installed providers."""
    token_file: str = ""
    jaas_file: str = ""
    jaas_section: str = "BookKeeper"
