"""Keys and certificates from files, in PEM or PKCS12, as Apache BookKeeper's configuration keys name them.

Every error names the configuration key, the path and a remedy; no part of a file's contents is ever included.
"""

from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12
from cryptography.x509 import Certificate, load_pem_x509_certificates

from bookie.secret_files import FILE_BYTES_MAX, SecretRefused, read_secret
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.settings import TlsSettings

__all__ = ["Identity", "read_identity", "read_trusted"]

KEY_KINDS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)
Key = (
    dsa.DSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
    | rsa.RSAPrivateKey
)


@dataclass(frozen=True, slots=True, repr=False)
class Identity:
    """The identity of this bookie: its key, its certificate, and the intermediate certificates."""

    key: Key
    certificate: Certificate
    chain: list[Certificate]


def read_identity(settings: TlsSettings) -> Identity:
    """Read the identity. Raises ConfigError."""
    _check_type("tlsKeyStoreType", settings.key_store_type)
    data = _secret("tlsKeyStore", settings.key_store, "the file with the private key")
    password = _password("tlsKeyStorePasswordPath", settings.key_store_password_path)
    if settings.key_store_type == "pkcs12":
        return _identity_of(settings, data, password)
    certificates = _certificates("tlsCertificatePath", settings.certificate_path)
    try:
        key = load_pem_private_key(data, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            "tlsKeyStore", settings.key_store, "it has no private key in PEM that can be opened",
            "set it to a PEM file with a key, and tlsKeyStorePasswordPath to the file with its password if it has one",
        ) from None  # fmt: skip
    return Identity(_usable(settings, key), certificates[0], certificates[1:])


def _identity_of(settings: TlsSettings, data: bytes, password: bytes | None) -> Identity:
    try:
        key, certificate, chain = pkcs12.load_key_and_certificates(data, password)
    except (ValueError, UnsupportedAlgorithm):
        key = certificate = None
        chain = []
    if key is None or certificate is None:
        raise ConfigError(
            "tlsKeyStore", settings.key_store, "it is not a PKCS12 file with a key and certificate that can be opened",
            "set it to one, and tlsKeyStorePasswordPath to the file with its password",
        )  # fmt: skip
    return Identity(_usable(settings, key), certificate, chain)


def _usable(settings: TlsSettings, key: object) -> Key:
    if not isinstance(key, KEY_KINDS):
        raise ConfigError("tlsKeyStore", settings.key_store, "TLS cannot use its kind of key", "use RSA or EC")
    return key


def read_trusted(settings: TlsSettings) -> list[Certificate]:
    """Return the certificates that clients' certificates must lead to. Raises ConfigError."""
    _check_type("tlsTrustStoreType", settings.trust_store_type)
    if settings.trust_store_type == "pem":
        return _certificates("tlsTrustStore", settings.trust_store)
    data = _read("tlsTrustStore", settings.trust_store, "the file with trusted certificates")
    password = _password("tlsTrustStorePasswordPath", settings.trust_store_password_path)
    try:
        found = pkcs12.load_pkcs12(data, password)
    except (ValueError, UnsupportedAlgorithm):
        found = None
    trusted = _trusted_in(found) if found else []
    if not trusted:
        raise ConfigError(
            "tlsTrustStore", settings.trust_store, "it is not a PKCS12 file with certificates that can be opened",
            "set it to one, and tlsTrustStorePasswordPath to the file with its password",
        )  # fmt: skip
    return trusted


def _trusted_in(store: pkcs12.PKCS12KeyAndCertificates) -> list[Certificate]:
    """Return what Java trusts: the certificate of a key entry, and certificates that are entries of their own.

    The chain above a key's certificate is not trusted. Its certificates have no name, or as Java writes them, that of
    their subject instead of an alias; so in a store with a key, only certificates with an alias count.
    """
    others = store.additional_certs
    if store.cert is None:
        return [entry.certificate for entry in others]
    named = [entry.certificate for entry in others if entry.friendly_name and b"=" not in entry.friendly_name]
    return [store.cert.certificate, *named]


def _check_type(key: str, kind: str) -> None:
    if kind == "jks":
        remedy = "convert it with `keytool -importkeystore -deststoretype PKCS12` and set PKCS12, or use PEM"
        raise ConfigError(key, "JKS", "Java's own format is not supported", remedy)


def _certificates(key: str, path: str) -> list[Certificate]:
    data = _read(key, path, "a PEM file with certificates")
    try:
        return load_pem_x509_certificates(data)
    except ValueError:
        raise ConfigError(key, path, "it has no certificate in PEM", "set it to a PEM file with one") from None


def _password(key: str, path: str) -> bytes | None:
    """Return the contents of a password file without surrounding white space, or None."""
    return (_secret(key, path, "the file with the password").strip() or None) if path else None


def _secret(key: str, path: str, what: str) -> bytes:
    """Return the contents of a file that others may not access."""
    _check_set(key, path, what)
    try:
        return read_secret(path)
    except SecretRefused as refused:
        raise ConfigError(key, path, refused.reason, refused.remedy) from None


def _check_set(key: str, path: str, what: str) -> None:
    if not path:
        raise ConfigError(key, "", "it must be set if TLS is configured", f"set it to {what}")


def _read(key: str, path: str, what: str) -> bytes:
    _check_set(key, path, what)
    try:
        with Path(path).open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(
            key, path, f"it cannot be read ({error.strerror})", f"set it to {what} that this process can read"
        ) from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(key, path, f"it is larger than {FILE_BYTES_MAX} bytes", f"set it to {what}")
    return data
