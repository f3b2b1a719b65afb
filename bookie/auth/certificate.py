"""Authentication by the role in a TLS client certificate, as in Apache BookKeeper's `BookieAuthZFactory`, or by its
names.

Apache BookKeeper puts roles into the subject's first organizational unit: fields `code:values` separated by `;`, of
which code 0 holds the roles, separated by commas (`OU=0:writer,reader;1:cluster`). Only the first role counts. Where
several attributes form one relative name, only the first of them by type is examined. In addition, a certificate may
be accepted for a subject alternative name (DNS name, URI or e-mail address). TLS has already verified the chain.
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
    """Return the bookie's provider. Raises ConfigurationError if it could never accept a client."""
    roles = frozenset(part.strip() for part in settings.authorized_roles.split(",") if part.strip())
    names = frozenset(part.strip() for part in settings.authorized_names.split(",") if part.strip())
    if not roles and not names:
        raise ConfigurationError(
            "authorizedRoles=: certificates are authorized by their role, but no role is authorized;"
            " set authorizedRoles or authorizedCertificateNames"
        )
    return CertificateServer(roles, names)


def role_of(certificate: x509.Certificate) -> str | None:
    """Return the first role in the first organizational unit of the subject, or None."""
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
    """Yield the DNS names, URIs and e-mail addresses among the subject alternative names."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return
    for kind in (x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name):
        yield from names.get_values_for_type(kind)


class CertificateServer:
    """Accepts certificates with one of `roles` or `names`. It never sends a token."""

    plugin_name = PLUGIN
    challenges = False

    def __init__(self, roles: frozenset[str], names: frozenset[str]) -> None:
        self._roles = roles
        self._names = names

    def session(self, peer: str) -> "CertificateServer":  # noqa: ARG002 - the certificate is all there is to know
        """Return itself: the provider is stateless, because the certificate decides."""
        return self

    def process(self, token: bytes) -> Outcome:  # noqa: ARG002
        """Raise AuthenticationFailed: a token proves nothing to this provider."""
        raise AuthenticationFailed("clients authenticate by their TLS certificate; send START_TLS instead of a token")

    def upgraded(self, certificate: bytes | None) -> Outcome:
        """Judge the certificate. With a wrong one the connection stays open, and each of its requests is refused."""
        if certificate is None:
            return Outcome(reason="the client presented no certificate")
        try:
            parsed = x509.load_der_x509_certificate(certificate)
            role = role_of(parsed)
            name = next((name for name in names_of(parsed) if name in self._names), None)
        except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
            raise AuthenticationFailed("the certificate cannot be parsed") from None
        if role in self._roles or name is not None:
            return Outcome(principal=role if role in self._roles else name)
        return Outcome(reason="neither the role nor a name of the client's certificate is authorized")
