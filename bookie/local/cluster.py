"""Bookies on loopback with small caches, in processes of their own: the first holds the metadata of all."""

import os
import select
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bookie.durable import make_directories
from bookie.errors import IncorrectParameter, StartRefused
from bookie.local.fork_server import STOP_S, Child, ForkServer

__all__ = ["LocalBookie", "LocalCluster", "SETTINGS"]

READY_S = 60.0
HOST = "127.0.0.1"
SETTINGS = {
    "allowLoopback": "true",
    "dbStorage_indexMapSizeGb": "16",
    "dbStorage_readAheadCacheMaxSizeMb": "32",
    "dbStorage_readCacheSegmentSizeMb": "8",
    "dbStorage_writeCacheMaxSizeMb": "32",
    # a developer's disk is often fuller than a server's may be
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
    "journalPreAllocSizeMB": "4",
    "listeningInterface": "lo",
    "serverMaxInputMemorySizeMb": "32",
    "serverMaxOutputMemorySizeMb": "32",
}
"""What differs from a bookie's defaults: less memory, loopback."""


class LocalBookie:
    """One bookie of a cluster. `settings` are written into its configuration at each start.

    `address` and `admin` are its data and admin port, `id` its identity, once it has started.
    """

    def __init__(self, fork_server: ForkServer, name: str, directory: Path, settings: dict[str, str]) -> None:
        self._fork_server = fork_server
        self._child: Child | None = None
        self.name = name
        self.directory = directory
        self.conf = directory / "bk.conf"
        self.log = directory / "bookie.log"
        self.settings = settings
        self.id = ""
        self.address = (HOST, 0)
        self.admin = (HOST, 0)

    @property
    def pid(self) -> int | None:
        """Its process; None while it does not run."""
        return self._child.pid if self._child else None

    def launch(self) -> int:
        """Start it; the descriptor that `ready` wants, so that several start at once."""
        assert self._child is None
        make_directories(self.directory)
        self.conf.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        ready, theirs = os.pipe()
        try:
            self._child = self._fork_server.launch(self.conf, self.log, theirs)
        except BaseException:
            os.close(ready)
            raise
        finally:
            os.close(theirs)
        return ready

    def ready(self, descriptor: int) -> None:
        """Wait until it serves. StartRefused with the last line of its log."""
        with os.fdopen(descriptor) as line:
            readable, _, _ = select.select([descriptor], [], [], READY_S)
            text = line.readline() if readable else ""
        if not text:
            self.kill()
            raise StartRefused(f"{self.name} did not start; the end of {self.log}: {self._last_words()}")
        address, *facts = text.split()
        named = dict(fact.split("=", 1) for fact in facts)
        self.address, self.admin = _endpoint(address), _endpoint(named["admin"])
        self.id = named["id"]
        # Where it is known now it shall be found after a restart.
        self.settings |= {"bookiePort": str(self.address[1]), "adminPort": str(self.admin[1])}

    def start(self) -> None:
        """Start it and wait until it serves. StartRefused."""
        self.ready(self.launch())

    def signal(self, number: int) -> None:
        """Send a signal, where it runs: SIGSTOP, for a bookie that hangs."""
        if self._child:
            self._child.signal(number)

    def stop(self) -> int:
        """End it in order; the exit code, 0 where it did not run. Killed if it does not end within a minute."""
        self.signal(signal.SIGTERM)
        return self._wait()

    def kill(self) -> None:
        """kill -9; nothing happens where it does not run."""
        self.signal(signal.SIGKILL)
        self._wait()

    def _wait(self) -> int:
        if self._child is None:
            return 0
        if not self._child.ended(STOP_S):
            self._child.signal(signal.SIGKILL)
        child, self._child = self._child, None
        return self._fork_server.code(child)

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return lines[-1] if lines else "nothing was written"


class LocalCluster:
    """`count` bookies in a temporary directory, or in `directory`, whose data stays and is found again.

    `port`: the first bookie's data port; its admin port, which serves the metadata, is the next one, and each further
    bookie has the two that follow. Without it the system chooses. `metadata_service_uri`: a store that is there, as
    ZooKeeper, instead of one in the first bookie. `settings` are keys of a bookie's configuration. IncorrectParameter.
    """

    def __init__(
        self,
        count: int = 3,
        *,
        directory: Path | str | None = None,
        port: int = 0,
        metadata_service_uri: str | None = None,
        **settings: object,
    ) -> None:
        if count < 1:
            raise IncorrectParameter(f"a cluster of {count} bookies: it takes at least one")
        self.count = count
        self.bookies: list[LocalBookie] = []
        self._directory = Path(directory).absolute() if directory is not None else None
        self._temporary: Path | None = None
        self._port = port
        self._uri = metadata_service_uri
        self._settings = {key: _spelt(value) for key, value in settings.items()}
        self._fork_server = ForkServer()
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        """The metadata service URI, for clients and bkadmin."""
        return self._uri or f"grpc://{HOST}:{self.bookies[0].admin[1]}"

    def start(self) -> Self:
        """Returns when all bookies serve. StartRefused; nothing is left running then."""
        try:
            self._fork_server.start()
            self._temporary = None if self._directory else Path(tempfile.mkdtemp(prefix="bookies-"))
            self.add(self.count)
        except BaseException:
            self.stop()
            raise
        return self

    def add(self, count: int = 1) -> list[LocalBookie]:
        """So many more bookies; returns when they serve. StartRefused."""
        with self._lock:
            before = len(self.bookies)
            if count and not self.bookies and not self._uri:
                self._new().start()  # the others find the metadata there
            launched = []
            while len(self.bookies) < before + count:
                bookie = self._new()
                bookie.settings.setdefault("metadataServiceUri", self.uri)
                launched.append((bookie, bookie.launch()))
            while launched:
                bookie, ready = launched.pop(0)
                try:
                    bookie.ready(ready)
                except StartRefused:
                    for _, other in launched:
                        os.close(other)
                    raise
            return self.bookies[before:]

    def stop(self) -> None:
        """End all, the holder of the metadata last, and remove what is temporary. Twice is fine.

        Where one cannot be stopped the rest is done all the same, before that error is raised.
        """
        with ExitStack() as ends:  # the last one first
            ends.callback(self._remove)
            ends.callback(self._fork_server.stop)
            for bookie in self.bookies:
                ends.callback(bookie.stop)
            for bookie in self.bookies[1:]:
                ends.callback(bookie.signal, signal.SIGTERM)

    def _remove(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary)
            self._temporary = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __iter__(self) -> Iterator[LocalBookie]:
        return iter(self.bookies)

    def _new(self) -> LocalBookie:
        number, root = len(self.bookies), self._directory or self._temporary
        assert root is not None
        name = f"bookie-{number + 1}"
        here = root / name
        port = self._port + 2 * number if self._port else 0
        settings = {
            **SETTINGS,
            "allowEphemeralPorts": "true",
            "bookieId": name,
            "adminPort": str(port + 1 if port else 0),
            "bookiePort": str(port),
            "journalDirectories": str(here / "journal"),
            "ledgerDirectories": str(here / "ledgers"),
            **self._settings,
        }
        if number == 0 and not self._uri:
            settings["metadataServiceUri"] = f"lmdb://{root}/metadata"
        self.bookies.append(LocalBookie(self._fork_server, name, here, settings))
        return self.bookies[-1]


def _endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _spelt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
