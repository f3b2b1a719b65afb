"""TLS of the admin ports, from files that are read again when they change.

Python's ssl validates the files, because it reports what is wrong; gRPC would refuse bad files silently. Runs on the
main thread at start, then at each handshake on gRPC's own threads or the HTTP port's event loop.
"""

import logging
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from bookie.admin_port import pem
from bookie.changed_files import ChangedFiles
from bookie.secret_files import SecretRefused, check_secret
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.settings import AccessSettings

__all__ = ["http_context", "server_credentials"]

T = TypeVar("T")
log = logging.getLogger(__name__)


def server_credentials(settings: AccessSettings) -> Any:
    """Return the credentials of a secure gRPC port. If a client CA is configured, clients must present a certificate.

    Raises:
        ConfigError: a file cannot be used.
    """
    import grpc  # noqa: PLC0415  # the HTTP port does not need gRPC

    required = bool(settings.tls_client_ca)
    files = _Files(settings, _configuration)
    return grpc.dynamic_ssl_server_credentials(files.load(), files.changed, require_client_authentication=required)


def http_context(settings: AccessSettings) -> ssl.SSLContext:
    """Return the TLS context of the HTTP port, which requests a client certificate but does not require it, because
    probes and callers with a token have none.

    Raises:
        ConfigError: a file cannot be used.
    """
    files = _Files(settings, _context)
    first = now = files.load()

    def chosen(connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        nonlocal now
        now = files.changed() or now
        connection.context = now

    first.sni_callback = chosen  # also called if the client sends no server name
    return first


class _Files(Generic[T]):
    """Something made from the TLS files, and made again when they change."""

    def __init__(self, settings: AccessSettings, make: Callable[[AccessSettings], T]) -> None:
        self._settings = settings
        self._make = make
        self._lock = threading.Lock()
        self._files = ChangedFiles(  # guarded by _lock
            settings.tls_certificate, settings.tls_key, settings.tls_client_ca
        )

    def load(self) -> T:
        """Make it from the present files.

        Raises:
            ConfigError: a file cannot be used.
        """
        return self._make(self._settings)

    def changed(self) -> T | None:
        """Make it again; return None if the files have not changed or cannot be used."""
        with self._lock:
            if not self._files.changed():
                return None
        try:
            found = self.load()
        except (ConfigError, OSError) as error:
            log.error(
                "changed TLS files of the admin ports cannot be used, the previous ones stay in effect: %s", error
            )
            return None
        log.info("changed TLS files of the admin ports are in effect for new connections")
        return found


def _context(settings: AccessSettings) -> ssl.SSLContext:
    """Return a TLS context of a server, made from the files.

    Raises:
        ConfigError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        check_secret(settings.tls_key)
    except SecretRefused as refused:
        raise ConfigError("adminTlsKeyPath", settings.tls_key, refused.reason, refused.remedy) from None
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password=lambda: b"")
    except OSError:
        raise ConfigError(
            "adminTlsCertificatePath", settings.tls_certificate,
            "it or adminTlsKeyPath cannot be read, is not PEM, or the two do not match",
            "name a certificate and its key without a password",
        ) from None  # fmt: skip
    if settings.tls_client_ca:
        try:
            context.load_verify_locations(settings.tls_client_ca)
        except OSError:
            raise ConfigError(
                "adminTlsClientCaPath", settings.tls_client_ca, "it has no certificate in PEM format",
                "name a file with CA certificates",
            ) from None  # fmt: skip
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _configuration(settings: AccessSettings) -> Any:
    """Return gRPC's configuration.

    Raises:
        ConfigError: a file cannot be used.
    """
    import grpc  # noqa: PLC0415

    _context(settings)  # says best what is wrong
    authorities = Path(settings.tls_client_ca).read_bytes() if settings.tls_client_ca else None
    key, certificate = Path(settings.tls_key).read_bytes(), Path(settings.tls_certificate).read_bytes()
    try:
        pem.check_pair(certificate, key)
        if authorities is not None:
            pem.check_authorities(authorities)
    except pem.UnusablePem as wrong:  # a file has changed in between
        raise ConfigError(
            "adminTlsCertificatePath", settings.tls_certificate,
            f"it, adminTlsKeyPath or adminTlsClientCaPath is being written: {wrong}", "wait until they are complete",
        ) from None  # fmt: skip
    return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=authorities)
