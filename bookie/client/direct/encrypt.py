"""Encrypt direct connections by OpenSSL's own functions, which compiled code can call without the GIL.

Compiled code cannot use the connections of Python's ssl module, so the handshake is pyOpenSSL's. Trust is decided in
one place all the same: pyOpenSSL verifies nothing. A direct connection is used only if its peer has the private key of
the very certificate that Python's module, configured as for the event loop, has accepted for this host on a connection
to the same address, and not long ago. It runs on the thread that establishes the connection.
"""

import ipaddress
import select
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from OpenSSL import SSL

from bookie._fast.base import openssl_c
from bookie.client.wire.security import start_tls
from bookie.client.wire.tls import Tls, TlsContexts, handshake_error
from bookie.errors import BookieUnavailable, ConfigurationError, SecurityError
from bookie.secret_files import SecretRefused

__all__ = ["DirectTls"]

ACCEPTED_S = 600.0
"""How long a certificate that Python's module has accepted is not verified again, in seconds, since it may expire."""


class DirectTls:
    """How the direct connections of one client are encrypted. Any thread."""

    def __init__(self, contexts: TlsContexts) -> None:
        openssl_c.version()  # raises ImportError where compiled code does not find OpenSSL's functions
        self._contexts = contexts
        self._lock = threading.Lock()
        # The fields below are guarded by `_lock`. They belong to the same content of the files.
        self._trusting: ssl.SSLContext | None = None
        self._context: SSL.Context | None = None
        self._accepted: dict[tuple[str, bytes], float] = {}
        """Host and certificate, and until when the certificate is not verified again, on the monotonic clock."""

    def encrypt(self, sock: socket.socket, host: str, until: float) -> SSL.Connection:
        """Return the encrypted connection over a connected socket. It does not block, and closes the socket.

        Args:
            sock: The socket.
            host: The host name that the bookie's certificate must have.
            until: The time limit, on the monotonic clock.

        Raises:
            SecurityError: The bookie does not support TLS, or one side does not trust the other.
            BookieUnavailable: The connection was lost, or there was not enough time.
            ConfigurationError: A file cannot be used.
        """
        trusting = self._contexts.now()
        context = self._context_beside(trusting)
        port = sock.getpeername()[1]
        self._start(sock, f"{host}:{port}", until)
        connection = SSL.Connection(context, sock)
        if not _is_address(host):
            connection.set_tlsext_host_name(host.encode("idna"))
        connection.set_connect_state()
        sock.setblocking(False)
        _shake_hands(connection, sock, host, until)
        certificate = connection.get_peer_certificate(as_cryptography=True)
        shown = b"" if certificate is None else certificate.public_bytes(Encoding.DER)
        with self._lock:
            accepted = self._accepted.get((host, shown), 0.0) if self._trusting is trusting else 0.0
        if time.monotonic() >= accepted:
            self._verify(trusting, sock.getpeername()[:2], host, shown, until)
        return connection

    def _context_beside(self, trusting: ssl.SSLContext) -> SSL.Context:
        """Return pyOpenSSL's context, with the same certificate of the client and the same ciphers."""
        with self._lock:
            if self._context is None or self._trusting is not trusting:
                self._context = _context_of(self._contexts.tls, trusting)
                self._trusting = trusting
                self._accepted = {}
            return self._context

    def _verify(
        self, trusting: ssl.SSLContext, address: tuple[str, int], host: str, shown: bytes, until: float
    ) -> None:
        """Connect once more by Python's module, which verifies the certificate that the bookie shows there."""
        try:
            with socket.create_connection(address, timeout=max(until - time.monotonic(), 0.001)) as sock:
                self._start(sock, f"{host}:{address[1]}", until)
                with trusting.wrap_socket(sock, server_hostname=host) as verified:
                    accepted = verified.getpeercert(binary_form=True)
        except OSError as error:
            raise handshake_error(error, host) from error
        if accepted != shown:
            raise SecurityError(f"{host}: it showed two certificates, one after the other; try again")
        with self._lock:
            if self._trusting is trusting:
                self._accepted[host, shown] = time.monotonic() + ACCEPTED_S

    def _start(self, sock: socket.socket, address: str, until: float) -> None:
        """Ask for encryption within the time limit."""
        sock.settimeout(max(until - time.monotonic(), 0.001))
        start_tls(sock, address)


def _context_of(tls: Tls, trusting: ssl.SSLContext) -> SSL.Context:
    """Return a context for connections whose certificates are verified elsewhere. Raises ConfigurationError."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_verify(SSL.VERIFY_NONE)
    try:
        names = [cipher["name"] for cipher in trusting.get_ciphers()]
        context.set_cipher_list(":".join([f"@SECLEVEL={trusting.security_level}", *names]).encode())
        if tls.certificate is not None:
            context.use_certificate_chain_file(str(tls.certificate))
            text = Path(tls.key or tls.certificate).read_bytes()
            key: Any = load_pem_private_key(text, tls.password() or None)  # of a kind that OpenSSL refuses, perhaps
            context.use_privatekey(key)
            context.check_privatekey()
    except (SSL.Error, SecretRefused, OSError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"certificate={tls.certificate}, key={tls.key}: direct connections cannot use them ({error});"
            " name PEM files that belong together"
        ) from error
    return context


def _shake_hands(connection: SSL.Connection, sock: socket.socket, host: str, until: float) -> None:
    while True:
        try:
            connection.do_handshake()
        except SSL.WantReadError:
            _await(sock, select.POLLIN, host, until)
        except SSL.WantWriteError:
            _await(sock, select.POLLOUT, host, until)
        except SSL.SysCallError as error:
            raise BookieUnavailable(f"{host}: connection lost during the TLS handshake ({error})") from error
        except SSL.Error as error:
            raise SecurityError(f"{host}: the TLS handshake failed ({error})") from error
        else:
            return


def _await(sock: socket.socket, event: int, host: str, until: float) -> None:
    poll = select.poll()
    poll.register(sock, event)
    left_s = until - time.monotonic()
    if left_s <= 0 or not poll.poll(left_s * 1000):
        raise BookieUnavailable(f"{host}: the TLS handshake took too long")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
