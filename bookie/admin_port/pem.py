"""Checks the PEM texts that gRPC gets. Any thread.

gRPC aborts the whole process if a key or certificate is empty, as it is for a moment while a program writes the file
anew; trusts the system's authorities if the file of authorities is empty; and does not say what is wrong with others.
"""

import contextlib
import os
import ssl

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates

__all__ = ["check_authorities", "check_pair", "UnusablePem"]


class UnusablePem(Exception):
    """A text that gRPC must not get. The message says what is wrong, without any part of the text."""


def check_pair(certificate: bytes, key: bytes) -> None:
    """Check a certificate, which may be followed by its chain, and its key. Raises UnusablePem."""
    try:
        found = load_pem_x509_certificates(certificate)[0].public_key()
    except (ValueError, UnsupportedAlgorithm):
        raise UnusablePem("the certificate is not whole, or not PEM") from None
    try:
        secret = load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnusablePem("the key is not whole, not PEM, or has a password") from None
    if secret.public_key() != found:
        raise UnusablePem("the certificate and the key do not match")


def check_authorities(certificates: bytes) -> None:
    """Check the certificates of authorities. Raises UnusablePem."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # From a file, because OpenSSL reads certificates with trust settings (BEGIN TRUSTED CERTIFICATE) from files only.
    with os.fdopen(os.memfd_create("authorities"), "wb") as file:
        file.write(certificates)
        file.flush()
        with contextlib.suppress(ssl.SSLError):
            context.load_verify_locations(f"/proc/self/fd/{file.fileno()}")
            if context.cert_store_stats()["x509"]:
                return
    raise UnusablePem("the file of authorities has no certificate in PEM, or one that is not whole")
