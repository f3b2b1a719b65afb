"""What guards a bookie and lets a client in, by Apache BookKeeper's keys: TLS, roles in certificates, and users."""

from pathlib import Path

from tests.fixtures.certificates import Authority

FACTORY = "org.apache.bookkeeper.tls.TLSContextFactory"
SASL = "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory"
SASL_CLIENT = {"clientAuthProviderFactoryClass": "org.apache.bookkeeper.sasl.SASLClientProviderFactory"}
ROLES = {
    "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
    "authorizedRoles": "writer,admin",
}
USER, PASSWORD = "bookkeeper-tester", 'quoted "Pässwört"'
LOGIN_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"


def bookie_keys(ca: Authority, *, client_auth: bool = True) -> dict[str, str]:
    """Return a bookie's configuration, for ours and Java's."""
    party = ca.issue("bookie", hosts=["127.0.0.1", "localhost"])
    return {
        "tlsProvider": "OpenSSL",
        "tlsProviderFactoryClass": FACTORY,
        "tlsClientAuthentication": str(client_auth).lower(),
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": str(party.key),
        "tlsCertificatePath": str(party.certificate),
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": str(ca.certificate),
    }


def client_keys(ca: Authority, *, certificate: bool = True, unit: str = "", **others: str) -> dict[str, str]:
    """Return a Java client's settings, where `unit` is the organizational unit in its certificate."""
    client = ca.issue("client", unit=unit)
    return {
        "tlsProviderFactoryClass": FACTORY,
        "tlsClientAuthentication": str(certificate).lower(),
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": str(client.key),
        "tlsCertificatePath": str(client.certificate),
        "tlsTrustStoreType": "PEM",
        "tlsTrustStore": str(ca.certificate),
        **others,
    }


def jaas(directory: Path, *, password: str = PASSWORD) -> Path:
    """Write one file for both sides."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "jaas.conf"
    known, own = (text.replace("\\", r"\\").replace('"', r"\"") for text in (PASSWORD, password))
    file.write_text(
        f'Bookie {{\n  {LOGIN_MODULE}\n    user_{USER}="{known}";\n}};\n'
        f'BookKeeper {{\n  {LOGIN_MODULE}\n    username="{USER}"\n    password="{own}";\n}};\n'
    )
    return file


def jaas_options(file: Path) -> tuple[str, ...]:
    """Return how a Java process gets its users from the file."""
    return (f"-Djava.security.auth.login.config={file}", "-Dfile.encoding=UTF-8")
