"""Logs in ZooKeeper: one node for each, below a root of their own next to that of the ledgers. Any thread.

    /ledgers-logs/<name, percent-encoded>        for a cluster at /ledgers

They are not below the ledgers root, because Apache BookKeeper takes every unknown child of it for a level of its tree
of ledgers. Its long listing descends into it, the listing of older versions, on which the garbage collector relies,
fails because of it, and the flat one logs a warning at each pass.
"""

from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

from kazoo.exceptions import NoNodeError

from bookie.errors import LogExists, NoSuchLog
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.logs import Log, check_name, parse_log, serialize_log
from bookie.metadata.watching import Watcher
from bookie.metadata.zookeeper.nodes import NodeKind, ZooKeeperNodes
from bookie.metadata.zookeeper.session import ZooKeeperSession


def logs_root(ledgers_root: str) -> str:
    """Return the root of the logs of the cluster at `ledgers_root`."""
    return f"{ledgers_root}-logs"


class ZooKeeperLogs:
    """Implements `driver.Logs`. `require_cluster` raises ClusterNotInitialized."""

    def __init__(
        self, session: ZooKeeperSession, watcher: Watcher, ledgers_root: str, require_cluster: Callable[[], None]
    ) -> None:
        self._session = session
        self._root = logs_root(ledgers_root)
        self._require_cluster = require_cluster
        kind = NodeKind(self._path, parse_log, lambda name: f"log {name!r}", LogExists, NoSuchLog)
        self._nodes = ZooKeeperNodes(session, watcher, kind)

    def create(self, name: str, log: Log) -> Versioned[Log]:
        data = serialize_log(check_name(name), log)
        self._require_cluster()
        return self._nodes.create(name, log, data, lambda found, version: found == data and version == 0)

    def read(self, name: str) -> Versioned[Log]:
        return self._nodes.read(name)

    def write(self, name: str, log: Log, version: int) -> Versioned[Log]:
        return self._nodes.write(name, log, serialize_log(check_name(name), log), version)

    def delete(self, name: str, version: int | None = None) -> None:
        self._nodes.delete(name, version)

    def names(self) -> Iterator[list[str]]:
        try:
            nodes = self._session.run(lambda zk: zk.get_children_async(self._root))
        except NoNodeError:
            return
        if nodes:
            yield sorted((unquote(node) for node in nodes), key=str.encode)

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        return self._nodes.watch(name, listener)

    def _path(self, name: str) -> str:
        return f"{self._root}/{quote(check_name(name), safe='').replace('.', '%2E')}"
