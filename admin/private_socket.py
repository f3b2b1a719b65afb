"""A Unix socket that only this process can reach, and the names that its connections carry.

    private = PrivateSocket()
    server.add_insecure_port(f"unix:{private.path}")
    private.hide()
    private.connect("ipv4:10.0.0.9:50312")      # the server sees a peer of this name: `peer_named`

It is bound in a directory that only we may enter, and has no name any more when the first connection comes: what leads
to it is a descriptor of this process. So nothing stays behind on disk, however the process ends. Connections carry an
abstract name, which is nobody's to know beforehand.
"""

import os
import secrets
import socket
import tempfile
from pathlib import Path
from urllib.parse import unquote

__all__ = ["peer_named", "PrivateSocket"]

PLACES = (None, "/dev/shm")  # noqa: S108 - the system's directory for temporary files; then memory, which is always there
NAME = "admin"
PREFIX = "unix-abstract:"


class PrivateSocket:
    """One. The constructor makes the directory: OSError where there is none to be had."""

    def __init__(self) -> None:
        self._directory: Path | None = _directory()
        self._within = os.open(self._directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._socket = -1
        self.path = f"/proc/self/fd/{self._within}/{NAME}"
        """To bind to; short, however long the directory's name is."""

    def hide(self) -> None:
        """It is bound: keep a descriptor, and take away its name."""
        self._socket = os.open(self.path, os.O_PATH | os.O_CLOEXEC)
        self._forget_name()

    def connect(self, name: str) -> socket.socket:
        """A connection to it that does not block, of somebody called `name`. OSError, EAGAIN among them."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            sock.bind(f"\0{secrets.token_hex(8)}/{name}".encode())
            sock.connect(f"/proc/self/fd/{self._socket}")
        except OSError:
            sock.close()
            raise
        return sock

    def close(self) -> None:
        """Idempotent."""
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
    """Who it is that the server calls `peer`: the name given to `connect`, or as it is."""
    _, told, name = peer.partition("/") if peer.startswith(PREFIX) else ("", "", "")
    return unquote(name) if told else unquote(peer)


def _directory() -> Path:
    for place in PLACES[:-1]:
        try:
            return Path(tempfile.mkdtemp(prefix="bookie-", dir=place))
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="bookie-", dir=PLACES[-1]))
