"""What bookies and clients are told about authentication: names and places, never a secret."""

from dataclasses import dataclass

__all__ = ["AuthSettings", "ClientAuthSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """Frozen; `bookie.server.configuration.loader` fills it. Secrets stay in the files named here."""

    provider: str = ""
    """A name of `registry`; empty: everybody is let in."""
    provider_file: str = ""
    """For installed providers: a file of their own."""
    token_file: str = ""
    authorized_roles: str = ""
    """Separated by commas."""
    authorized_names: str = ""
    jaas_file: str = ""
    jaas_section: str = "Bookie"
    allowed_ids: str = ".*bookkeeper.*"
    """A regular expression that a SASL user's whole name must match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAuthSettings:
    """Who a client is; for `registry.open_client`."""

    provider: str = ""
    """A name of `registry`, or upstream's `clientAuthProviderFactoryClass`; empty: nobody in particular."""
    provider_file: str = ""
    """For installed providers: a file of their own."""
    token_file: str = ""
    jaas_file: str = ""
    jaas_section: str = "BookKeeper"
