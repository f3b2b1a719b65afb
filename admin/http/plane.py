"""The HTTP server: uvicorn on one thread with an event loop of its own.

`start` and `stop` are called by the bookie's main thread. Connections that say nothing are closed, so that silent ones
cannot keep others out.
"""

import asyncio
import logging
import socket
import ssl
import threading

import uvicorn
from cryptography import x509
from cryptography.x509.oid import NameOID
from uvicorn.protocols.http.h11_impl import H11Protocol

from admin.access import Access
from admin.http.application import Application
from admin.http.files import console_files
from admin.http.moving import Movers
from admin.http.self_test import self_test
from admin.tls import http_context
from bookie.errors import StartRefused
from bookie.server.control import Control
from bookie.server.errors import one_line

__all__ = ["HttpPlane"]

CONNECTIONS_MAX = 256
HEADER_BYTES_MAX = 32 * 1024
QUIET_S = 15.0
KEEP_ALIVE_S = 30
log = logging.getLogger(__name__)


class Connection(H11Protocol):
    """One connection: who is at the other end, and a limit to how long it may leave us waiting."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "subjects": _subjects(transport.get_extra_info("ssl_object"))}
        self.loop.call_later(QUIET_S, self._look, self.cycle)

    def _look(self, before: object) -> None:
        """No request since the last look, and none under way: it is silent, or slow beyond reason."""
        if self.transport.is_closing():
            return
        now: object = self.cycle
        if now is before and (before is None or self.cycle.response_complete):
            self.transport.close()
        else:
            self.loop.call_later(QUIET_S, self._look, now)


class Server(uvicorn.Server):
    """Tells when it serves."""

    def __init__(self, config: uvicorn.Config, serving: threading.Event) -> None:
        super().__init__(config)
        self._serving = serving

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._serving.set()


class HttpPlane:
    """The plane of one bookie."""

    def __init__(self, control: Control) -> None:
        self._settings = control.http
        self._movers = Movers(control.metadata)
        self._application = Application(control, Access(control.access), self._movers, console_files())
        self._self_test = self_test(control) if control.http.self_test else None
        self._certificates = control.access
        self._serving = threading.Event()
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def check(self) -> None:
        """Read its files. ConfigurationError."""
        self._tls()

    def start(self) -> tuple[str, int]:
        """Bind and serve; the bound address. Raises StartRefused."""
        self._server = Server(self._configuration(), self._serving)
        listener = self._listen()
        host, port = listener.getsockname()[:2]
        self._thread = threading.Thread(target=self._run, args=(self._server, listener), name="http", daemon=True)
        self._thread.start()
        self._serving.wait()
        if not self._server.started:
            why = one_line(self._failure) if self._failure else "see the log"
            raise StartRefused(
                f"httpServerPort={self._settings.port}: the HTTP server cannot begin ({why}); correct it, or set"
                " httpServerEnabled=false"
            ) from self._failure
        if self._self_test is not None:
            self._self_test.start()
        return str(host), int(port)

    def _configuration(self) -> uvicorn.Config:
        config = uvicorn.Config(
            self._application,
            http=Connection,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_S,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
        config.load()
        config.ssl = self._tls()
        return config

    def stop(self, grace_s: float) -> None:
        """Let answers under way finish within `grace_s`, then close; idempotent."""
        if self._self_test is not None:
            self._self_test.stop()
        if self._server is not None and self._thread is not None:
            self._server.config.timeout_graceful_shutdown = max(1, round(grace_s))
            self._server.should_exit = True
            self._thread.join()
            self._server = None
        self._movers.stop()
        self._application.close()

    def _run(self, server: Server, listener: socket.socket) -> None:
        try:
            asyncio.run(server.serve([listener]))
        except Exception as error:
            if server.started:
                raise  # it served until now: the end of the bookie
            self._failure = error
        finally:
            listener.close()
            self._serving.set()

    def _listen(self) -> socket.socket:
        host, port = self._settings.host, self._settings.port
        try:
            return socket.create_server((host, port), backlog=CONNECTIONS_MAX)
        except OSError as error:
            raise StartRefused(
                f"httpServerPort={port}: cannot listen on {host}:{port} ({error.strerror}); set another port or"
                " httpServerHost"
            ) from error

    def _tls(self) -> ssl.SSLContext | None:
        return http_context(self._certificates) if self._settings.tls else None


def _subjects(tls: ssl.SSLObject | None) -> list[str]:
    """Common name and alternative names of the certificate that was verified."""
    data = tls.getpeercert(binary_form=True) if tls is not None else None
    if not data:
        return []
    certificate = x509.load_der_x509_certificate(data)
    names = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        other = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return names
    return names + other.get_values_for_type(x509.DNSName)
