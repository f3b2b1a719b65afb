"""Tests that roles and names are read from client certificates as upstream reads them."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bookie.auth.certificate import server
from bookie.auth.provider import AuthenticationFailed
from bookie.auth.settings import AuthSettings
from bookie.errors import ConfigurationError

KEY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime.now(UTC)
CLIENT = x509.NameAttribute(NameOID.COMMON_NAME, "client")


def unit_of(text: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, text)


def certificate(*units: str, names: tuple[x509.GeneralName, ...] = ()) -> bytes:
    """Make a self-signed certificate in DER. It suffices here, because TLS has judged the chain before."""
    return signed(x509.Name([CLIENT, *map(unit_of, units)]), names)


def signed(subject: x509.Name, names: tuple[x509.GeneralName, ...] = ()) -> bytes:
    """Make a self-signed certificate of this subject."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("units", "role"),
    [
        (("0:writer",), "writer"),
        (("0: writer , reader",), "writer"),
        (("1:cluster;0:writer",), "writer"),
        (("0:writer;0:reader",), None),  # upstream uses the last one of several
        (("0:reader,writer",), None),  # the first role is used
        (("1:writer",), None),
        (("writer",), None),
        (("0:",), None),
        (("0:other", "0:writer"), None),  # the first unit is used
        ((), None),
    ],
)
def test_roles_of_the_organizational_unit(units: tuple[str, ...], role: str | None) -> None:
    """Roles come from `OU=0:role,...;1:...`: the first role of code 0 in the first unit counts."""
    session = server(AuthSettings(authorized_roles="writer, admin")).session("127.0.0.1:1")
    outcome = session.upgraded(certificate(*units))
    assert outcome.principal == role
    assert outcome.token is None
    assert (outcome.reason is None) == (role is not None)


@pytest.mark.parametrize(
    ("beside", "role"),
    [
        (CLIENT, None),
        (x509.NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "x"), "writer"),
        (unit_of("0:admin"), "admin"),
    ],
)
def test_a_unit_in_one_relative_name_with_others(beside: x509.NameAttribute[str], role: str | None) -> None:
    """Java sees only the first attribute of such a name, in the order of types and values."""
    subject = x509.Name([x509.RelativeDistinguishedName([unit_of("0:writer"), beside])])
    session = server(AuthSettings(authorized_roles="writer, admin")).session("127.0.0.1:1")
    assert session.upgraded(signed(subject)).principal == role


@pytest.mark.parametrize(
    "name", [x509.DNSName("pulsar.example"), x509.UniformResourceIdentifier("spiffe://example/pulsar"),
             x509.RFC822Name("pulsar@example.org")]
)  # fmt: skip
def test_names_beside_the_subject(name: x509.GeneralName) -> None:
    """Each kind of name lets a client in where it is listed, and only there."""
    shown = certificate("0:nobody", names=(x509.DNSName("other.example"), name))
    assert server(AuthSettings(authorized_names=f"x, {name.value}")).session("").upgraded(shown).principal == name.value
    assert server(AuthSettings(authorized_names="y")).session("").upgraded(shown).principal is None


def test_no_certificate_and_no_certificate_at_all() -> None:
    """Without a certificate, or with an invalid one, nobody is let in, and tokens prove nothing."""
    session = server(AuthSettings(authorized_roles="writer")).session("")
    assert session.upgraded(None).principal is None
    with pytest.raises(AuthenticationFailed, match="cannot be parsed"):
        session.upgraded(b"0\x03abc")
    with pytest.raises(AuthenticationFailed, match="START_TLS"):
        session.process(b"")


def test_somebody_must_be_let_in() -> None:
    """A list without an entry is refused as a mistake."""
    with pytest.raises(ConfigurationError, match="authorizedRoles"):
        server(AuthSettings(authorized_roles=" , "))
