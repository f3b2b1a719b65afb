"""TLS of the admin ports: from files, and from them again when they have changed.

The files are judged by Python's ssl, which says what is wrong with them; gRPC would refuse bad ones without a word.
Main thread at start, gRPC's own or the HTTP port's event loop at each handshake.
"""

import logging
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from bookie.changed_files import ChangedFiles
from bookie.secret_files import SecretRefused, check_secret
from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.settings import AccessSettings

__all__ = ["http_context", "server_credentials"]

T = TypeVar("T")
log = logging.getLogger(__name__)


def server_credentials(settings: AccessSettings) -> Any:
    """What a secure gRPC port takes. Clients must show a certificate where there is an authority. ConfigError."""
    import grpc  # noqa: PLC0415 - the HTTP port can do without

    required = bool(settings.tls_client_ca)
    files = _Files(settings, _configuration)
    return grpc.dynamic_ssl_server_credentials(files.load(), files.changed, require_client_authentication=required)


def http_context(settings: AccessSettings) -> ssl.SSLContext:
    """The same for the HTTP port, where a certificate is asked for, not demanded: probes and callers with a token have
    none. ConfigError.
    """
    files = _Files(settings, _context)
    first = now = files.load()

    def chosen(connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        nonlocal now
        now = files.changed() or now
        connection.context = now

    first.sni_callback = chosen  # called where the client names no host, too
    return first


class _Files(Generic[T]):
    """The files, what they were when they were read last, and what is made of them."""

    def __init__(self, settings: AccessSettings, make: Callable[[AccessSettings], T]) -> None:
        self._settings = settings
        self._make = make
        self._lock = threading.Lock()
        self._files = ChangedFiles(  # guarded by _lock
            settings.tls_certificate, settings.tls_key, settings.tls_client_ca
        )

    def load(self) -> T:
        """From the files as they are now. ConfigError."""
        return self._make(self._settings)

    def changed(self) -> T | None:
        """Anew, or None while the files are the same or cannot be used."""
        with self._lock:
            if not self._files.changed():
                return None
        try:
            found = self.load()
        except (ConfigError, OSError) as error:
            log.error("TLS files of the admin ports have changed but cannot be used, the former ones stay: %s", error)
            return None
        log.info("TLS files of the admin ports have changed and are used for new connections")
        return found


def _context(settings: AccessSettings) -> ssl.SSLContext:
    """A server's, with what the files say."""
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
            "it and adminTlsKeyPath cannot be read, are no PEM, or do not belong together",
            "name a certificate and its key, which has no password",
        ) from None  # fmt: skip
    if settings.tls_client_ca:
        try:
            context.load_verify_locations(settings.tls_client_ca)
        except OSError:
            raise ConfigError(
                "adminTlsClientCaPath", settings.tls_client_ca, "no certificates in PEM can be read from it",
                "name a file that has some",
            ) from None  # fmt: skip
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _configuration(settings: AccessSettings) -> Any:
    """gRPC's, of files that have passed `_context`."""
    import grpc  # noqa: PLC0415

    _context(settings)
    authorities = Path(settings.tls_client_ca).read_bytes() if settings.tls_client_ca else None
    pair = Path(settings.tls_key).read_bytes(), Path(settings.tls_certificate).read_bytes()
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=authorities)
