"""TLS for a channel: Python's ssl module on memory buffers, because one thread receives while others send.

An SSL object must not be used by two threads at once, and with a blocking one a sender would wait for the receiver.
So the socket is read and written without the lock, which is held only while bytes are encrypted or decrypted.
"""

import contextlib
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import Buffer

from bookie.auth.provider import ClientProvider
from bookie.auth.registry import open_client
from bookie.auth.settings import ClientAuthSettings
from bookie.changed_files import ChangedFiles
from bookie.client.config import ClientConfig
from bookie.client.wire.security import Security
from bookie.errors import BookieUnavailable, ConfigurationError, SecurityError
from bookie.secret_files import SecretRefused, check_secret, read_secret

__all__ = ["auth_of", "security_of", "Tls", "tls_of", "TlsContexts", "TlsLink"]

RAW_BYTES = 1 << 18
CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Tls:
    """How channels are encrypted: `Security(encrypt=Tls(trust_store="ca.pem"))`. All files are PEM.

    Attributes:
        trust_store: The certificates of the authorities that bookies' certificates must come from; None means those
            of the system.
        certificate: The client's certificate, for bookies that require one.
        key: The client's private key; None if it is in the file of the certificate.
        key_password_path: A file with the password of the key.
        verify_host: Whether the bookie's certificate must have the host name that the client connects to.
    """

    trust_store: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None
    key_password_path: str | Path | None = None
    verify_host: bool = True

    def __call__(self, sock: socket.socket, host: str) -> "TlsLink":
        """Perform the TLS handshake on a connected socket.

        Args:
            sock: The socket.
            host: The host name that the bookie's certificate must have.

        Returns:
            The encrypted link.

        Raises:
            SecurityError: One side does not trust the other.
            BookieUnavailable: The connection was lost.
            ConfigurationError: A file cannot be used.
        """
        try:
            return TlsLink(sock, self.context(), host)
        except OSError as error:
            raise handshake_error(error, host) from error

    def context(self) -> ssl.SSLContext:
        """Read the files, and return an SSL context with them.

        Raises:
            ConfigurationError: A file cannot be used; the text names it.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_host
        try:
            if self.trust_store is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(self.trust_store)
        except OSError as error:
            raise ConfigurationError(
                f"trust_store={self.trust_store}: no PEM certificates can be read from it; name a file that has some"
            ) from error
        if self.certificate is not None:
            try:
                check_secret(self.key or self.certificate, strict=False)
                context.load_cert_chain(self.certificate, self.key, self.password())
            except (OSError, SecretRefused) as error:
                raise ConfigurationError(
                    f"certificate={self.certificate}, key={self.key}: they cannot be read or do not belong together;"
                    " name PEM files, and the key's password file if it has one"
                ) from error
        return context

    def password(self) -> bytes:
        """Return the password of the key. Raises OSError or SecretRefused."""
        # Empty rather than None, because OpenSSL would ask for the password at the terminal.
        return read_secret(self.key_password_path, strict=False).strip() if self.key_password_path else b""


def tls_of(config: ClientConfig) -> Tls | None:
    """Return how the settings of a client encrypt its connections; None if they do not."""
    if not (config.tls_enabled or config.tls_trust_store):
        return None
    return Tls(
        trust_store=config.tls_trust_store or None,
        certificate=config.tls_certificate or None,
        key=config.tls_key or None,
        verify_host=config.tls_hostname_verification,
    )


def security_of(config: ClientConfig) -> Security:
    """Return how the settings of a client encrypt and authenticate its connections. Raises ConfigurationError."""
    return Security(tls_of(config), auth_of(config))


def auth_of(config: ClientConfig) -> ClientProvider | None:
    """Return the provider that authenticates a client with these settings, or None. Raises ConfigurationError."""
    return open_client(ClientAuthSettings(provider=config.auth_provider, token_file=config.auth_token_file))


class TlsContexts:
    """The SSL context of a `Tls`, made once, and again when one of its files has changed. Any thread; `now` may read
    files.
    """

    def __init__(self, tls: Tls) -> None:
        self.tls = tls
        authorities = ssl.get_default_verify_paths()
        stores = (tls.trust_store,) if tls.trust_store is not None else (authorities.cafile, authorities.capath)
        paths = (*stores, tls.certificate, tls.key, tls.key_password_path)
        self._files = ChangedFiles(*(str(path) for path in paths if path is not None))
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def now(self) -> ssl.SSLContext:
        """Return the context for the present content of the files. Raises ConfigurationError."""
        with self._lock:
            if self._files.changed():
                self._context = None
            if self._context is None:
                self._context = self.tls.context()
            return self._context


def handshake_error(error: OSError, host: str) -> SecurityError | BookieUnavailable:
    """Return the error for a failed handshake: one side does not trust the other, or the connection was lost."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return SecurityError(f"{host}: its certificate was rejected: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return SecurityError(f"{host}: the TLS handshake failed ({error.reason or error})")
    return BookieUnavailable(f"{host}: connection lost during the TLS handshake ({error})")


class TlsLink:
    """An encrypted connection. One thread may call `recv_into`, any number the other methods.

    Calls raise BlockingIOError at the socket's time limit.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._raw = memoryview(bytearray(RAW_BYTES))
        self._lock = threading.Lock()
        """Guards `_ssl` and both memory buffers."""
        self._sending = threading.Lock()
        """Keeps encrypted bytes in order on their way to the socket. It is acquired before `_lock`."""
        self._shake_hands()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                self._sock.sendall(self._outgoing.read())
                self._take_in()
            except ssl.SSLError:
                with contextlib.suppress(OSError):  # the alert tells the bookie why
                    self._sock.sendall(self._outgoing.read())
                raise
            else:
                self._sock.sendall(self._outgoing.read())
                return

    @property
    def version(self) -> str | None:
        """The TLS version: `TLSv1.3` or `TLSv1.2`."""
        return self._ssl.version()

    def sendall(self, data: Buffer, /) -> None:
        """Encrypt and send everything."""
        view = memoryview(data).cast("B")
        with self._sending:
            for at in range(0, len(view), CHUNK_BYTES):
                with self._lock:
                    self._ssl.write(view[at : at + CHUNK_BYTES])
                    sealed = self._outgoing.read()
                self._sock.sendall(sealed)

    def recv_into(self, buffer: Buffer, /) -> int:
        """Receive and decrypt what arrives next, as much as the buffer holds; return 0 at the end."""
        view = memoryview(buffer).cast("B")
        while True:
            with self._lock:
                got = self._decrypt(view)
            if got is not None:
                return got
            self._answer()
            if not self._take_in():
                return 0

    def _decrypt(self, view: memoryview) -> int | None:
        """Return the number of bytes; 0 if the bookie ended the TLS session; None if more must arrive first."""
        got = 0
        try:
            while got < len(view):
                got += self._ssl.read(len(view) - got, view[got:])  # type: ignore[operator]  # a count
        except ssl.SSLWantReadError:
            return got or None
        except ssl.SSLZeroReturnError:
            pass
        return got

    def _take_in(self) -> int:
        got = self._sock.recv_into(self._raw)
        if got:
            with self._lock:
                self._incoming.write(self._raw[:got])
        else:
            self._incoming.write_eof()
        return got

    def _answer(self) -> None:
        """Send the messages of TLS itself, unless a sender is active, which then sends them. So the receiver never
        waits for one.
        """
        if self._outgoing.pending and self._sending.acquire(blocking=False):
            try:
                with self._lock:
                    sealed = self._outgoing.read()
                self._sock.sendall(sealed)
            finally:
                self._sending.release()

    def shutdown(self, how: int, /) -> None:
        """Shut down the socket, which wakes a thread that waits for it."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close the socket without ending the TLS session; callers know by the responses what was received."""
        self._sock.close()
