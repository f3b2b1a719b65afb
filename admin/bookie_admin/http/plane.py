"""The HTTP server: uvicorn on a thread with an event loop of its own.

The bookie's main thread calls `start` and `stop`. The door accepts connections on the same event loop and hands over
those that have sent something.
"""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Mapping
from functools import partial

import uvicorn

from bookie.errors import StartRefused
from bookie.server.configuration.errors import one_line
from bookie.server.control import Control
from bookie_admin.access import Access
from bookie_admin.door import Door, Limits, Visitor, listen
from bookie_admin.http.application import Application
from bookie_admin.http.connection import Connection, Patience, Unsent
from bookie_admin.http.files import console_files
from bookie_admin.http.moving import Movers
from bookie_admin.http.self_test import self_test
from bookie_admin.tls import http_context

__all__ = ["HttpPlane"]

HEADER_BYTES_MAX = 32 * 1024
KEEP_ALIVE_S = 30
log = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """uvicorn's server, for connections that the door hands over. `serving` is set when it serves, or has failed to."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, door: Limits, patience: Patience) -> None:
        super().__init__(config)
        self.door = Door("http", listener, door, self._admit)
        self.serving = threading.Event()
        self._patience = patience
        self._welcomes: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - uvicorn's own
        """Start uvicorn without a socket of its own, and open the door."""
        await super().startup([])
        self.door.open(asyncio.get_running_loop())
        self.serving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, and let responses in progress finish."""
        self.door.shut()
        await super().shutdown(sockets)

    def _admit(self, visitor: Visitor) -> None:
        task = asyncio.get_running_loop().create_task(self._welcome(visitor))
        visitor.close = task.cancel
        self._welcomes.add(task)
        task.add_done_callback(partial(self._welcomed, visitor))

    def _welcomed(self, visitor: Visitor, task: "asyncio.Task[None]") -> None:
        self._welcomes.discard(task)
        if task.cancelled():  # it was closed in favour of another connection
            visitor.sock.close()
            visitor.leave()

    async def _welcome(self, visitor: Visitor) -> None:
        """Turn a visitor into a connection, with TLS if configured."""
        config, loop, patience = self.config, asyncio.get_running_loop(), self._patience
        made = partial(
            Connection, visitor, patience, config=config, server_state=self.server_state, app_state={}, _loop=loop
        )
        times = {"ssl_handshake_timeout": patience.receive_s, "ssl_shutdown_timeout": patience.send_s}
        try:
            await loop.connect_accepted_socket(made, visitor.sock, ssl=config.ssl, **(times if config.ssl else {}))
        except OSError as error:
            visitor.close = visitor.sock.close
            visitor.turn_away("late" if isinstance(error, ConnectionAbortedError) else "tls_handshake")


class HttpPlane:
    """The HTTP plane of one bookie. `check`, `start` and `stop` are called by the bookie's main thread."""

    def __init__(self, control: Control) -> None:
        self._settings = control.http
        self._control = control
        self._movers = Movers(control.metadata)
        self._application = Application(control, Access(control.access), self._movers, console_files())
        self._self_test = self_test(control) if control.http.self_test else None
        self._certificates = control.access
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None
        self._address = ("", 0)

    def check(self) -> None:
        """Read the TLS files; the constructor has read the tokens file.

        Raises:
            ConfigurationError: a file cannot be used.
        """
        self._tls()

    def listen(self) -> None:
        """Bind, and answer probes; other requests are refused until `start`.

        Raises:
            StartRefused: the port cannot be bound, or the server does not start.
        """
        settings, configuration = self._settings, self._configuration()
        listener = self._listen()
        host, port = listener.getsockname()[:2]
        receive_s = settings.receive_timeout_ms / 1000
        door = Limits(settings.connections_max, settings.connections_per_address_max, receive_s)
        patience = Patience(receive_s, settings.send_timeout_ms / 1000, Unsent(settings.output_bytes_max))
        server = Server(configuration, listener, door, patience)
        self._server = server
        self._thread = threading.Thread(target=self._run, args=(server,), name="http", daemon=True)
        self._thread.start()
        server.serving.wait()
        if not server.started:
            why = one_line(self._failure) if self._failure else "the log has the reason"
            raise StartRefused(
                f"httpServerPort={self._settings.port}: the HTTP server cannot start ({why}); correct it, or set"
                " httpServerEnabled=false"
            ) from self._failure
        self._address = str(host), int(port)

    def start(self) -> tuple[str, int]:
        """Serve everything; return the bound host and port.

        Raises:
            ConfigurationError: the tokens file cannot be used.
            StartRefused: the port cannot be bound, or the server does not start.
        """
        if self._server is None:
            self.listen()
        self._application.open(Access(self._control.access, self._control.own_token))
        if self._self_test is not None:
            self._self_test.start()
        return self._address

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
            timeout_keep_alive=KEEP_ALIVE_S,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
        config.load()
        config.ssl = self._tls()
        return config

    def stop(self, grace_s: float) -> None:
        """Let responses in progress finish within `grace_s` seconds, then close. Idempotent."""
        if self._self_test is not None:
            self._self_test.stop()
        if self._server is not None and self._thread is not None:
            self._server.config.timeout_graceful_shutdown = max(1, round(grace_s))
            self._server.should_exit = True
            self._thread.join()
            self._server = None
        self._movers.stop()
        self._application.close()

    def stats(self) -> Mapping[str, int | float]:
        """Return metrics of the port's connections."""
        server = self._server
        return server.door.stats() if server is not None else {}

    def _run(self, server: Server) -> None:
        try:
            asyncio.run(server.serve())
        except Exception as error:
            if server.started:
                raise  # it served until now, so this ends the bookie
            self._failure = error
        finally:
            server.door.shut()
            server.serving.set()

    def _listen(self) -> socket.socket:
        host, port = self._settings.host, self._settings.port
        try:
            return listen(host, port)
        except OSError as error:
            raise StartRefused(
                f"httpServerPort={port}: cannot listen on {host}:{port} ({error.strerror}); set another port or"
                " httpServerHost"
            ) from error

    def _tls(self) -> ssl.SSLContext | None:
        return http_context(self._certificates) if self._settings.tls else None
