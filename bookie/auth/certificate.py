"""The role in a TLS client certificate, as Apache BookKeeper's `BookieAuthZFactory` reads it, or a name of its own.

Upstream puts roles into the subject's first organizational unit: fields `code:values` separated by `;`, of which code 0
holds the roles, separated by commas (`OU=0:writer,reader;1:cluster`). The first role counts. Where attributes make one
relative name together, only the first of them by type is looked at. Beyond that a certificate may be known by a subject
alternative name (DNS name, URI or e-mail address). The chain was verified by TLS before.
"""

import re
from collections.abc import Iterator

from cryptography import x509
from cryptography.x509.oid import NameOID

from bookie.auth.provider import AuthenticationFailed, Outcome
from bookie.auth.settings import AuthSettings
from bookie.errors import ConfigurationError

__all__ = ["CertificateServer", "names_of", "PLUGIN", "role_of", "server"]

PLUGIN = "BookieAuthZFactory"
ROLE_CODE = "0"
FIELD = re.compile(r"([0-9]+):(.*)", re.ASCII)


def server(settings: AuthSettings) -> "CertificateServer":
    """The bookie's provider. Raises ConfigurationError when nobody could ever be let in."""
    roles = frozenset(part.strip() for part in settings.authorized_roles.split(",") if part.strip())
    names = frozenset(part.strip() for part in settings.authorized_names.split(",") if part.strip())
    if not roles and not names:
        raise ConfigurationError(
            "authorizedRoles=: certificates are to be judged by their role but no role is let in;"
            " set authorizedRoles or authorizedCertificateNames"
        )
    return CertificateServer(roles, names)


def role_of(certificate: x509.Certificate) -> str | None:
    """The first role in the first organizational unit of the subject; None without one."""
    names = (min(rdn, key=lambda part: (part.rfc4514_attribute_name, part.value)) for rdn in certificate.subject.rdns)
    unit = next((name for name in names if name.oid == NameOID.ORGANIZATIONAL_UNIT_NAME), None)
    if unit is None:
        return None
    found = None
    for part in str(unit.value).split(";"):
        field = FIELD.fullmatch(part)
        if field and field[1] == ROLE_CODE:
            found = field[2].split(",")[0].strip()
    return found or None


def names_of(certificate: x509.Certificate) -> Iterator[str]:
    """DNS names, URIs and e-mail addresses among the subject alternative names."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    for kind in (x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name):
        yield from names.get_values_for_type(kind)


class CertificateServer:
    """Lets in certificates with one of `roles` or `names`. Never answers a token."""

    plugin_name = PLUGIN
    challenges = False

    def __init__(self, roles: frozenset[str], names: frozenset[str]) -> None:
        self._roles = roles
        self._names = names

    def session(self, peer: str) -> "CertificateServer":  # noqa: ARG002 - the certificate is all there is to know
        """Stateless: the certificate decides."""
        return self

    def process(self, token: bytes) -> Outcome:  # noqa: ARG002
        """Tokens prove nothing here."""
        raise AuthenticationFailed("clients are known by their TLS certificate; send START_TLS, not a token")

    def upgraded(self, certificate: bytes | None) -> Outcome:
        """Judge the certificate; a wrong one leaves the connection as it was, to be refused request by request."""
        if certificate is None:
            return Outcome(reason="the client showed no certificate")
        try:
            parsed = x509.load_der_x509_certificate(certificate)
            role = role_of(parsed)
            name = next((name for name in names_of(parsed) if name in self._names), None)
        except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
            raise AuthenticationFailed("the certificate cannot be parsed") from None
        if role in self._roles or name is not None:
            return Outcome(principal=role if role in self._roles else name)
        return Outcome(reason="neither role nor names of the client's certificate are let in")
