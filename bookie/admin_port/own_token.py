"""The token that a bookie makes for the processes of its own user on its own machine, and how they find it.

It lies in the bookie's first ledger directory, `admin.token`, mode 600, for as long as that directory lives. Who runs
as the same user, or as root, needs no word about it: while the admin port serves, the bookie answers at a socket of the
machine that has the port in its name (`Signpost`), and tells the path. So no file can be of another port or of a bookie
that has ended, and the system says who answers: a token is read only if that is our own user (or anybody, for root) and
the file is that very user's. Nobody else can plant a path or read the file.

    path = make(directory)                     # at the bookie's start
    Signpost("127.0.0.1", 3182, path).start()
    Guide("127.0.0.1:3182").path()             # another process: the path, or None

A `Guide` does that before each call, and asks again once the process that answered has ended: a port that somebody else
has taken since gets no token.
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
"""In the abstract namespace, which belongs to the same network namespace as the ports."""
ANSWER_S = 1.0
TRY_AGAIN_S = 0.1
BACKLOG = 64
CREDENTIALS = struct.Struct("iII")
ANY = ("0.0.0.0", "::")  # noqa: S104 - names of sockets, nothing is bound there
ROOT = 0
STATE, BORN = 0, 19
"""Of the words behind the program's name in /proc/PID/stat."""
ENDED = (b"Z", b"X")

log = logging.getLogger(__name__)


def make(directory: Path) -> Path:
    """The file in `directory`; made, durably, unless there is one that is ours alone. OSError."""
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
    log.info("a token for this user's processes is made", extra={"file": path})
    return path


class Guide:
    """To the token of the admin port `host:port`, if that is a bookie of ours on this machine's loopback address."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self._last: _Answer | None = None

    def path(self) -> str | None:
        """As the process says that answers there now. Any thread."""
        last = self._last
        if last is None or not last.born or last.born != _born(last.process):
            names = (f"{PREFIX}{name}:{self._port}" for name in _names(self._host))
            last = self._last = next(filter(None, map(_ask, names)), None)
        return last.path if last else None


@dataclass(frozen=True, slots=True)
class _Answer:
    """From which process: its id, and when it was born; empty where it is not to be seen from here."""

    path: str
    process: int
    born: bytes


class Signpost:
    """Says where the token of one admin port lies, from a thread of its own. `stop` is idempotent."""

    def __init__(self, host: str, port: int, path: Path) -> None:
        self._name = f"{PREFIX}{_plain(host)}:{port}"
        self._text = os.fsencode(path.absolute())[:PATH_BYTES_MAX]
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Before the port serves. A name that is taken is told in the log: callers must name the file then."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            listener.bind(self._name)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            facts = {"socket": self._name[1:], "error": error.strerror, "file": os.fsdecode(self._text)}
            log.warning(
                "programs of this machine do not find the token by themselves; name its file to them", extra=facts
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
            except OSError:  # stopped, or no descriptor is left now
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
    """In ticks since the machine began; empty for one that has ended."""
    try:
        words = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return b""
    return b"" if words[STATE] in ENDED else words[BORN]


def _is_of(path: Path, user: int) -> bool:
    """Whether it is a file of this user, for this user alone."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == user and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _names(host: str) -> Iterator[str]:
    """What the bookie may have called the loopback address that is asked for; nothing for another address."""
    plain = _plain(host)
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(plain).is_loopback:
            yield from dict.fromkeys((plain, *(("::1",) if host == "localhost" else ()), *ANY))


def _plain(host: str) -> str:
    host = host.strip("[]")
    return "127.0.0.1" if host == "localhost" else host
