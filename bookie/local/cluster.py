"""Bookies on loopback with small caches, each in a process of its own. The first one holds the metadata of all, unless
they are in a store of their own.
"""

import json
import os
import re
import select
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from bookie.durable import make_directories
from bookie.errors import IncorrectParameter, StartRefused
from bookie.local.etcd import LocalEtcd
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
    # a developer's disk is often fuller than a server's
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
    "journalPreAllocSizeMB": "4",
    "listeningInterface": "lo",
    "serverMaxInputMemorySizeMb": "32",
    "serverMaxOutputMemorySizeMb": "32",
}
"""The settings that differ from a bookie's defaults: less memory, loopback, and fuller disks."""


class LocalBookie:
    """One bookie of a cluster. `LocalCluster` creates it.

    Attributes:
        name: The name, such as `bookie-1`; it is also the bookie id by default.
        directory: The directory of its files.
        conf: Its configuration file, which is written at each start.
        log: Its log file, to which each start appends.
        settings: Its configuration, by key; changes take effect at the next start.
        id: The bookie id, once it has started.
        address: Host and port of its data port, once it has started.
        admin: Host and port of its admin port, once it has started.
        http: Host and port of its HTTP port, once it has started, or None without one (`httpServerEnabled`).
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
        self.http: tuple[str, int] | None = None

    @property
    def pid(self) -> int | None:
        """The id of its process, or None while it does not run."""
        return self._child.pid if self._child else None

    def launch(self) -> int:
        """Start the process without waiting for it, so that several bookies can start at once.

        Returns:
            The descriptor to pass to `ready`.
        """
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
        """Wait until the bookie serves requests, up to a minute.

        Args:
            descriptor: The result of `launch`; it is closed.

        Raises:
            StartRefused: The bookie did not start; the text has the last line of its log.
        """
        with os.fdopen(descriptor) as line:
            readable, _, _ = select.select([descriptor], [], [], READY_S)
            text = line.readline() if readable else ""
        if not text:
            self.kill()
            raise StartRefused(f"{self.name} did not start: {self._last_words()} (the end of {self.log})")
        address, *facts = text.split()
        named = dict(fact.split("=", 1) for fact in facts)
        self.address, self.admin = _endpoint(address), _endpoint(named["admin"])
        self.id = named["id"]
        # After a restart the bookie must have the same ports.
        self.settings |= {"bookiePort": str(self.address[1]), "adminPort": str(self.admin[1])}
        if "http" in named:
            self.http = _endpoint(named["http"])
            self.settings["httpServerPort"] = str(self.http[1])

    def start(self) -> None:
        """Start the bookie and wait until it serves requests.

        Raises:
            StartRefused: The bookie did not start; the text has the last line of its log.
        """
        self.ready(self.launch())

    def signal(self, number: int) -> None:
        """Send a signal to the process, for instance SIGSTOP for a bookie that hangs; do nothing while it does not
        run.

        Args:
            number: The number of the signal.
        """
        if self._child:
            self._child.signal(number)

    def stop(self) -> int:
        """Stop the bookie with SIGTERM, and kill it if it has not exited within a minute.

        Returns:
            The exit code; 0 if it did not run, and negative if a signal killed it.
        """
        self.signal(signal.SIGTERM)
        return self._wait()

    def kill(self) -> None:
        """Kill the bookie with SIGKILL, and wait until it has exited; do nothing while it does not run."""
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
        last = lines[-1] if lines else "its log is empty"
        message = re.search(r' msg=("(?:[^"\\]|\\.)*")', last)
        return str(json.loads(message[1])) if message else last


class LocalCluster:
    """A cluster of bookies on this machine. It is a context manager; otherwise call `start` and `stop`.

    Args:
        count: The number of bookies, at least 1.
        directory: Where to keep the data. They stay there, and are used again by the next cluster. None means a
            temporary directory, which `stop` removes.
        port: The data port of the first bookie. Its admin port, which serves the metadata, is the next one, and each
            further bookie has the following two. 0 lets the system choose.
        metadata_service_uri: The URI of an existing metadata store, such as ZooKeeper; None means the store that
            `metadata` names.
        metadata: `embedded` keeps the metadata in the first bookie; `etcd` starts a member of etcd for them, which must
            be installed.
        **settings: Keys of the bookies' configuration, with their values.

    Raises:
        IncorrectParameter: `count` is below 1, or `metadata` is another word.
    """

    def __init__(
        self,
        count: int = 3,
        *,
        directory: Path | str | None = None,
        port: int = 0,
        metadata_service_uri: str | None = None,
        metadata: Literal["embedded", "etcd"] = "embedded",
        **settings: object,
    ) -> None:
        if count < 1:
            raise IncorrectParameter(f"count={count}: a cluster has at least one bookie")
        if metadata not in {"embedded", "etcd"}:
            raise IncorrectParameter(f"metadata={metadata!r}: it is `embedded` or `etcd`")
        self.count = count
        self.bookies: list[LocalBookie] = []
        self._directory = Path(directory).absolute() if directory is not None else None
        self._temporary: Path | None = None
        self._port = port
        self._uri = metadata_service_uri
        self._in_etcd = metadata == "etcd" and metadata_service_uri is None
        self._etcd: LocalEtcd | None = None
        self._settings = {key: _spelt(value) for key, value in settings.items()}
        self._fork_server = ForkServer()
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        """The metadata service URI, for clients and bkadmin."""
        return self._uri or f"grpc://{HOST}:{self.bookies[0].admin[1]}"

    def start(self) -> Self:
        """Start all bookies, and wait until they serve requests.

        Returns:
            The cluster itself.

        Raises:
            StartRefused: A bookie or etcd did not start. All others have been stopped.
        """
        try:
            self._fork_server.start()
            self._temporary = None if self._directory else Path(tempfile.mkdtemp(prefix="bookies-"))
            if self._in_etcd:
                self._etcd = LocalEtcd(self._root / "etcd")
                self._etcd.start()
                self._uri = f"etcd://{self._etcd.address}/ledgers"
                _initialize(self._uri)
            self.add(self.count)
        except BaseException:
            self.stop()
            raise
        return self

    def add(self, count: int = 1) -> list[LocalBookie]:
        """Start more bookies, and wait until they serve requests.

        Args:
            count: The number of bookies to add.

        Returns:
            The new bookies.

        Raises:
            StartRefused: A bookie did not start.
        """
        with self._lock:
            before = len(self.bookies)
            if count and not self.bookies and not self._uri:
                self._new().start()  # it holds the metadata, so it must run before the others start
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
        """Stop all bookies, the holder of the metadata last, and remove a temporary directory. Further calls do
        nothing.

        An error while a bookie is stopped is raised after everything else has been stopped.
        """
        with ExitStack() as ends:  # callbacks run in reverse order
            ends.callback(self._remove)
            if self._etcd is not None:
                ends.callback(self._etcd.stop)
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

    @property
    def _root(self) -> Path:
        root = self._directory or self._temporary
        assert root is not None
        return root

    def _new(self) -> LocalBookie:
        number, root = len(self.bookies), self._root
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


def _initialize(uri: str) -> None:
    """Create the metadata of a cluster where there are none."""
    from bookie.metadata import open_driver  # noqa: PLC0415 - only clusters with their own etcd need it

    driver = open_driver(uri)
    driver.start()
    try:
        if not driver.cluster.is_initialized():
            driver.cluster.initialize()
    finally:
        driver.stop()


def _endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _spelt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
