"""Keys and certificates out of files: PEM as upstream's keys name them, PKCS12 as well.

Every error names the configuration key, the path and a remedy; nothing of a file's content is ever part of one.
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
    """Who this bookie is: its key, its certificate, and those that lead from there to a root."""

    key: Key
    certificate: Certificate
    chain: list[Certificate]


def read_identity(settings: TlsSettings) -> Identity:
    """Raises ConfigError."""
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
            "tlsKeyStore", settings.key_store, "it holds no private key in PEM that can be opened",
            "name a PEM file with a key, and its password's file with tlsKeyStorePasswordPath if it has one",
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
            "tlsKeyStore", settings.key_store, "it is no PKCS12 file with a key and its certificate that can be opened",
            "name one, and its password's file with tlsKeyStorePasswordPath",
        )  # fmt: skip
    return Identity(_usable(settings, key), certificate, chain)


def _usable(settings: TlsSettings, key: object) -> Key:
    if not isinstance(key, KEY_KINDS):
        raise ConfigError("tlsKeyStore", settings.key_store, "its key is of no kind that TLS uses", "use RSA or EC")
    return key


def read_trusted(settings: TlsSettings) -> list[Certificate]:
    """The certificates that clients' certificates must lead to. Raises ConfigError."""
    _check_type("tlsTrustStoreType", settings.trust_store_type)
    if settings.trust_store_type == "pem":
        return _certificates("tlsTrustStore", settings.trust_store)
    data = _read("tlsTrustStore", settings.trust_store, "the file with trusted certificates")
    password = _password("tlsTrustStorePasswordPath", settings.trust_store_password_path)
    try:
        found = pkcs12.load_pkcs12(data, password)
    except (ValueError, UnsupportedAlgorithm):
        found = None
    trusted = [entry.certificate for entry in found.additional_certs] if found else []
    if not trusted:
        raise ConfigError(
            "tlsTrustStore", settings.trust_store, "it is no PKCS12 file with certificates that can be opened",
            "name one, and its password's file with tlsTrustStorePasswordPath",
        )  # fmt: skip
    return trusted


def _check_type(key: str, kind: str) -> None:
    if kind == "jks":
        remedy = "convert it with `keytool -importkeystore -deststoretype PKCS12` and set PKCS12, or use PEM"
        raise ConfigError(key, "JKS", "Java's own format is not read here", remedy)


def _certificates(key: str, path: str) -> list[Certificate]:
    data = _read(key, path, "a PEM file with certificates")
    try:
        return load_pem_x509_certificates(data)
    except ValueError:
        raise ConfigError(key, path, "it holds no certificate in PEM", "name a PEM file with one") from None


def _password(key: str, path: str) -> bytes | None:
    """What the file holds, without the white space around it."""
    return (_secret(key, path, "the file with the password").strip() or None) if path else None


def _secret(key: str, path: str, what: str) -> bytes:
    """What others may not read."""
    _check_set(key, path, what)
    try:
        return read_secret(path)
    except SecretRefused as refused:
        raise ConfigError(key, path, refused.reason, refused.remedy) from None


def _check_set(key: str, path: str, what: str) -> None:
    if not path:
        raise ConfigError(key, "", "it must be set where TLS is", f"name {what}")


def _read(key: str, path: str, what: str) -> bytes:
    _check_set(key, path, what)
    try:
        with Path(path).open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(key, path, f"it cannot be read ({error.strerror})", f"name {what}, readable here") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(key, path, f"it is larger than {FILE_BYTES_MAX} bytes", f"name {what}")
    return data
