"""A Unix socket that only this process can reach, whose connections carry the names of their peers.

    private = PrivateSocket()
    server.add_insecure_port(f"unix:{private.path}")
    private.hide()
    private.connect("ipv4:10.0.0.9:50312")      # the server sees a peer of this name: `peer_named`

The socket is bound in a directory that only this user may enter, and its name is removed before the first connection:
from then on it is reached through a file descriptor of this process. So nothing remains on disk, however the process
ends. Client sockets are bound to unpredictable names in the abstract namespace, which contain the name of the peer.
"""

import os
import secrets
import socket
import tempfile
from pathlib import Path
from urllib.parse import unquote

__all__ = ["peer_named", "PrivateSocket"]

PLACES = (None, "/dev/shm")  # noqa: S108  # the system's temporary directory, then shared memory, which always exists
NAME = "admin"
PREFIX = "unix-abstract:"


class PrivateSocket:
    """A private socket. The constructor creates its directory.

    Raises:
        OSError: no directory can be created.
    """

    def __init__(self) -> None:
        self._directory: Path | None = _directory()
        self._within = os.open(self._directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._socket = -1
        self.path = f"/proc/self/fd/{self._within}/{NAME}"
        """The path to bind to, which is short however long the name of the directory is."""

    def hide(self) -> None:
        """Open a descriptor of the bound socket and remove its name."""
        self._socket = os.open(self.path, os.O_PATH | os.O_CLOEXEC)
        self._forget_name()

    def connect(self, name: str) -> socket.socket:
        """Return a non-blocking connection to the socket, whose peer name is `name`.

        Raises:
            OSError: the connection failed; EAGAIN if the server's backlog is full.
        """
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            sock.bind(f"\0{secrets.token_hex(8)}/{name}".encode())
            sock.connect(f"/proc/self/fd/{self._socket}")
        except OSError:
            sock.close()
            raise
        return sock

    def close(self) -> None:
        """Close the descriptors and remove the directory. Idempotent."""
        self._forget_name()
        if self._socket >= 0:
            os.close(self._socket)
            self._socket = -1
        if self._within >= 0:
            os.close(self._within)
            self._within = -1

    def _forget_name(self) -> None:
        if self._directory is not None:
            (self._directory / NAME).unlink(missing_ok=True)
            self._directory.rmdir()
            self._directory = None


def peer_named(peer: str) -> str:
    """Return the name that was passed to `connect`, from the peer name that the server sees; other names are returned
    unchanged.
    """
    _, separator, name = peer.partition("/") if peer.startswith(PREFIX) else ("", "", "")
    return unquote(name) if separator else unquote(peer)


def _directory() -> Path:
    for place in PLACES[:-1]:
        try:
            return Path(tempfile.mkdtemp(prefix="bookie-", dir=place))
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="bookie-", dir=PLACES[-1]))
