"""A proxy on loopback that writes down V2 frames, with one connection and one outstanding request at a time.

`Recorder.exchanges` holds (request, answer) as whole frames with their length words. Its thread owns both sockets
until `stop`.
"""

import contextlib
import socket
import threading

from tests.fixtures.ports import free_port


def read_exactly(source: socket.socket, size: int) -> bytes:
    """Return `size` bytes. Raises ConnectionError when the peer closes before that."""
    data = bytearray()
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise ConnectionError(f"closed after {len(data)} of {size} bytes")
        data += part
    return bytes(data)


def read_frame(source: socket.socket) -> bytes:
    """Return one frame with its length word. Raises ConnectionError at the end of the stream."""
    prefix = read_exactly(source, 4)
    return prefix + read_exactly(source, int.from_bytes(prefix, "big"))


class Recorder:
    """Listens on `port` and forwards to `upstream`, from `start` to `stop`."""

    def __init__(self, upstream: int) -> None:
        self.port = free_port()
        self.exchanges: list[tuple[bytes, bytes]] = []
        self._upstream = upstream
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen. Connections are served one after another."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._serve, args=(self._listener,), name="recorder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening. The client's connection must be closed already."""
        if self._listener is None or self._thread is None:
            return
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._listener = None

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # the listener was closed
                return
            bookie = socket.create_connection(("127.0.0.1", self._upstream))
            with client, bookie, contextlib.suppress(ConnectionError):
                self._relay(client, bookie)

    def _relay(self, client: socket.socket, bookie: socket.socket) -> None:
        while True:
            request = read_frame(client)
            bookie.sendall(request)
            answer = read_frame(bookie)
            self.exchanges.append((request, answer))
            client.sendall(answer)
