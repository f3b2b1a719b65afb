"""The token that a bookie creates for processes of its own user on its own machine, and how they find it.

The token is in the file `admin.token`, mode 600, in the bookie's first ledger directory, and lives as long as that
directory. A process of the same user, or of root, needs no configuration to find it: while the admin port is open, the
bookie answers at an abstract Unix socket that has the port in its name (`Signpost`), and sends the path of the file.
So a path always belongs to the bookie that is running at this port. The kernel tells the user of the answering
process, and a token is read only if that is our own user (for root: any user) and the file belongs to that user. Other
users can neither offer a path nor read the file.

    path = make(directory)                     # when the bookie starts
    Signpost("127.0.0.1", 3182, path).start()
    Guide("127.0.0.1:3182").path()             # in another process: the path, or None

A `Guide` is asked before each call. It queries the socket again if the process that answered has ended, so that
another process which has taken over the port does not get the token.
"""

import contextlib
import ipaddress
import logging
import os
import secrets
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bookie.durable import sync_directory

__all__ = ["Guide", "make", "NAME", "Signpost"]

NAME = "admin.token"
LINE = "admin:own:"
TOKEN_BYTES = 32
PATH_BYTES_MAX = 4096
PREFIX = "\0bookie-admin-port:"
"""The prefix of the socket's name in the abstract namespace, which belongs to the same network namespace as the
port.
"""
ANSWER_S = 1.0
TRY_AGAIN_S = 0.1
BACKLOG = 64
CREDENTIALS = struct.Struct("iII")
ANY = ("0.0.0.0", "::")  # noqa: S104 - names of sockets, nothing is bound there
ROOT = 0
STATE, BORN = 0, 19
"""Indices of the words after the program's name in /proc/PID/stat."""
ENDED = (b"Z", b"X")

log = logging.getLogger(__name__)


def make(directory: Path) -> Path:
    """Return the path of the token file in a directory; create it durably, unless there is one that only we can
    access.

    Args:
        directory: the bookie's first ledger directory.

    Raises:
        OSError: the file cannot be created.
    """
    path = directory / NAME
    if _is_of(path, os.geteuid()):
        return path
    new = path.with_name(f"{NAME}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{LINE}{secrets.token_hex(TOKEN_BYTES)}\n")
        file.flush()
        os.fsync(descriptor)
    new.replace(path)
    sync_directory(directory)
    log.info("created a token for processes of this user", extra={"file": path})
    return path


class Guide:
    """Finds the token of the admin port `host:port`, if a bookie of this user serves it at a loopback address."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self._last: _Answer | None = None

    def path(self) -> str | None:
        """Return the path of the token, as told by the process that serves the port now; None if there is none. Any
        thread.
        """
        last = self._last
        if last is None or not last.born or last.born != _born(last.process):
            names = (f"{PREFIX}{name}:{self._port}" for name in _names(self._host))
            last = self._last = next(filter(None, map(_ask, names)), None)
        return last.path if last else None


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer: the path, and the id and start time of the process; the start time is empty if it cannot be seen."""

    path: str
    process: int
    born: bytes


class Signpost:
    """Tells other processes where the token of one admin port is, on a thread of its own. `stop` is idempotent."""

    def __init__(self, host: str, port: int, path: Path) -> None:
        self._name = f"{PREFIX}{_plain(host)}:{port}"
        self._text = os.fsencode(path.absolute())[:PATH_BYTES_MAX]
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start answering; call this before the port serves. If the name is taken, a warning is logged, and callers
        must be given the token file.
        """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            listener.bind(self._name)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            facts = {"socket": self._name[1:], "error": error.strerror, "file": os.fsdecode(self._text)}
            log.warning(
                "programs on this machine cannot find the token by themselves; name its file with --token-file",
                extra=facts,
            )
            return
        self._listener = listener
        self._thread = threading.Thread(target=self._run, args=(listener,), name="own-token", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._listener is not None and self._thread is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join()
            self._listener.close()
            self._listener = None

    def _run(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                asking, _ = listener.accept()
            except OSError:  # stopped, or temporarily out of descriptors
                self._stopping.wait(TRY_AGAIN_S)
                continue
            with asking, contextlib.suppress(OSError):
                asking.setblocking(False)
                asking.send(self._text)


def _ask(name: str) -> _Answer | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking, contextlib.suppress(OSError):
        asking.settimeout(ANSWER_S)
        asking.connect(name)
        process, user, _ = CREDENTIALS.unpack(
            asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        )
        if os.geteuid() not in (user, ROOT):
            return None
        path = os.fsdecode(asking.recv(PATH_BYTES_MAX))
        return _Answer(path, process, _born(process)) if _is_of(Path(path), user) else None
    return None


def _born(process: int) -> bytes:
    """Return the start time of a process, in clock ticks since boot; empty if it has ended."""
    try:
        words = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return b""
    return b"" if words[STATE] in ENDED else words[BORN]


def _is_of(path: Path, user: int) -> bool:
    """Return whether the path is a regular file of this user that nobody else can access."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == user and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _names(host: str) -> Iterator[str]:
    """Yield the names under which a bookie may serve this loopback address; nothing for another address."""
    plain = _plain(host)
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(plain).is_loopback:
            yield from dict.fromkeys((plain, *(("::1",) if host == "localhost" else ()), *ANY))


def _plain(host: str) -> str:
    host = host.strip("[]")
    return "127.0.0.1" if host == "localhost" else host
