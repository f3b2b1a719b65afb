"""TLS of a channel: Python's ssl module on memory, because one thread receives while others send.

An SSL object must not be used by two threads at once, and a blocking one would have a sender wait for the receiver: so
the socket is read and written outside the lock, and the lock is held only while bytes are encrypted or decrypted.
"""

import contextlib
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import Buffer

from bookie.changed_files import ChangedFiles
from bookie.errors import BookieUnavailable, ConfigurationError, SecurityError
from bookie.secret_files import SecretRefused, check_secret, read_secret

__all__ = ["Tls", "TlsContexts", "TlsLink"]

RAW_BYTES = 1 << 18
CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Tls:
    """How channels are encrypted: `Security(encrypt=Tls(trust_store="ca.pem"))`. Files are PEM.

    `trust_store`: whose certificates bookies must have; None: the system's authorities. `certificate` and `key`: our
    own, for bookies that require one. `verify_host`: the bookie's certificate must name the host that we connect to.
    """

    trust_store: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None
    key_password_path: str | Path | None = None
    verify_host: bool = True

    def __call__(self, sock: socket.socket, host: str) -> "TlsLink":
        """Shake hands. SecurityError when one side does not trust the other; BookieUnavailable, ConfigurationError."""
        try:
            return TlsLink(sock, self.context(), host)
        except OSError as error:
            raise handshake_error(error, host) from error

    def context(self) -> ssl.SSLContext:
        """With these files, read now. ConfigurationError names the file that is wrong."""
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
                f"trust_store={self.trust_store}: no certificates in PEM can be read from it; name a file that has some"
            ) from error
        if self.certificate is not None:
            try:
                check_secret(self.key or self.certificate, strict=False)
                context.load_cert_chain(self.certificate, self.key, self._password())
            except (OSError, SecretRefused) as error:
                raise ConfigurationError(
                    f"certificate={self.certificate}, key={self.key}: they cannot be read or do not belong together;"
                    " name PEM files, and the key's password file if it has one"
                ) from error
        return context

    def _password(self) -> bytes:
        # Empty rather than None: OpenSSL would ask at the terminal.
        return read_secret(self.key_password_path, strict=False).strip() if self.key_password_path else b""


class TlsContexts:
    """The context of a `Tls`, made once, and anew when a file of it has changed. Any thread; `now` may read files."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        authorities = ssl.get_default_verify_paths()
        stores = (tls.trust_store,) if tls.trust_store is not None else (authorities.cafile, authorities.capath)
        paths = (*stores, tls.certificate, tls.key, tls.key_password_path)
        self._files = ChangedFiles(*(str(path) for path in paths if path is not None))
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def now(self) -> ssl.SSLContext:
        """With the files as they are. ConfigurationError."""
        with self._lock:
            if self._files.changed():
                self._context = None
            if self._context is None:
                self._context = self._tls.context()
            return self._context


def handshake_error(error: OSError, host: str) -> SecurityError | BookieUnavailable:
    """What a failed handshake means: one side does not trust the other, or the connection is gone."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return SecurityError(f"{host}: its certificate was rejected: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return SecurityError(f"{host}: the TLS handshake failed ({error.reason or error})")
    return BookieUnavailable(f"{host}: connection lost during the TLS handshake ({error})")


class TlsLink:
    """An encrypted connection. One thread calls `recv_into`, any number the rest; BlockingIOError at the time limit."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._raw = memoryview(bytearray(RAW_BYTES))
        self._lock = threading.Lock()
        """Guards `_ssl` and both memories."""
        self._sending = threading.Lock()
        """Keeps what is encrypted in order on its way to the socket; taken before `_lock`."""
        self._shake_hands()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                self._sock.sendall(self._outgoing.read())
                self._take_in()
            except ssl.SSLError:
                with contextlib.suppress(OSError):  # the alert that tells the bookie why
                    self._sock.sendall(self._outgoing.read())
                raise
            else:
                self._sock.sendall(self._outgoing.read())
                return

    @property
    def version(self) -> str | None:
        """The protocol: `TLSv1.3` or `TLSv1.2`."""
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
        """What arrives next, decrypted, as much of it as the buffer holds; 0 at the end."""
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
        """Bytes; 0: the bookie said good-bye; None: more has to arrive first."""
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
        """What TLS itself has to say; whoever sends takes it along, so the receiver never waits for a sender."""
        if self._outgoing.pending and self._sending.acquire(blocking=False):
            try:
                with self._lock:
                    sealed = self._outgoing.read()
                self._sock.sendall(sealed)
            finally:
                self._sending.release()

    def shutdown(self, how: int, /) -> None:
        """Of the socket beneath; a thread that waits for it wakes up."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close the socket. Without a good-bye: whoever asked for something knows by its answer."""
        self._sock.close()
