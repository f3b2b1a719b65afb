"""Apache BookKeeper's bookie for the comparison, with the settings that are usual for it.

DbLedgerStorage; 1 GiB heap and 2 GiB direct memory, G1; write cache and read cache as large as ours; journal synced;
statistics off; `readWorkerThreadsThrottlingEnabled=false`, which is its faster setting. All other keys keep their
defaults, among them: groups wait up to 2 ms, 16 MiB of journal preallocated, 64 KiB write buffers, 8 read threads. Its
metadata is in a separate ZooKeeper process, which is not measured.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from perf.side_by_side.servers import CACHE_MIB, free_port, seconds_to_answer
from tests.fixtures.java_peer import LASTING, JavaPeer, find_peer
from tests.fixtures.java_process import JavaBookie, init_cluster
from tests.fixtures.zookeeper import ZooKeeperServer

HEAP_MB = 1024
DIRECT_MB = 2048
SETTINGS = {
    "dbStorage_writeCacheMaxSizeMb": str(CACHE_MIB),
    "dbStorage_readAheadCacheMaxSizeMb": str(CACHE_MIB),
    "readWorkerThreadsThrottlingEnabled": "false",
    "journalSyncData": "true",
    "enableStatistics": "false",
}


class JavaServer:
    """A `Server` (see servers.py). ZooKeeper runs while the bookie does; both keep their ports."""

    def __init__(
        self, directory: Path, settings: Mapping[str, str] = MappingProxyType({}), peer: JavaPeer | None = None
    ) -> None:
        """Create a server; `settings` are keys in addition to those that both bookies have."""
        self.directory = directory
        self.port = free_port()
        self._peer = peer or find_peer()
        self._new = True
        self._zookeeper = ZooKeeperServer(self._peer, directory / "zookeeper")
        uri = self.uri = f"zk+hierarchical://{self._zookeeper.address}/ledgers"
        keys = {**SETTINGS, "indexDirectories": str(directory / "index"), **settings}
        self._bookie = JavaBookie(
            self._peer, directory, self.port, uri, keys, HEAP_MB, DIRECT_MB, options=(*LASTING, f"-Xms{HEAP_MB}m")
        )

    @property
    def pid(self) -> int:
        """The process id of the running bookie.

        Raises:
            RuntimeError: it was not started.
        """
        if self._bookie.process is None:
            raise RuntimeError("the bookie is not running")
        return self._bookie.process.pid

    def start(self, settings: Mapping[str, str] = MappingProxyType({})) -> float:  # noqa: ARG002  our keys mean nothing here
        """Start ZooKeeper, then the bookie; return the seconds from the bookie's launch to its first response.

        Raises:
            RuntimeError: it does not respond; the text has the end of its log.
        """
        self._zookeeper.start()
        if self._new:
            init_cluster(self._peer, self.directory / "init", self._bookie.uri)
            self._new = False
        since = time.monotonic()
        running = self._bookie.launch().process
        if running is None:
            raise RuntimeError("the bookie was not launched")
        return seconds_to_answer(running, self.port, since, self.directory / "bookie.log")

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change keys for the next start."""
        self._bookie.settings.update(settings)

    def stop(self) -> None:
        """Stop both cleanly. Idempotent."""
        self._bookie.stop()
        self._zookeeper.kill()

    def entry_logs(self) -> list[Path]:
        """Return the files that hold entries."""
        return sorted((self.directory / "ledgers" / "current").glob("*.log"))

    def index_directories(self) -> list[Path]:
        """Return the directories that hold the location index."""
        return [self.directory / "index"]
