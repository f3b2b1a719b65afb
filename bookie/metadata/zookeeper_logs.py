"""Logs in ZooKeeper: one node each, below a root of their own beside the ledgers'. Any thread.

    /ledgers-logs/<name, percent-encoded>        for a cluster at /ledgers

Not below the ledgers root: Apache BookKeeper takes every child of it that it does not know for a level of its tree of
ledgers. Its long listing descends into it, the listing of older versions that the garbage collector trusts fails on it,
and a flat one warns of it at each pass.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, unquote

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from bookie.errors import LogExists, MetadataVersionConflict, NoSuchLog
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.logs import Log, check_name, parse_log, serialize_log
from bookie.metadata.watching import Watch, Watcher
from bookie.metadata.zookeeper_session import ZooKeeperSession

ANY_VERSION = -1


def logs_root(ledgers_root: str) -> str:
    """Where the logs of the cluster at `ledgers_root` stand."""
    return f"{ledgers_root}-logs"


class ZooKeeperLogs:
    """See `driver.Logs`. `require_cluster` raises ClusterNotInitialized."""

    def __init__(
        self, session: ZooKeeperSession, watcher: Watcher, ledgers_root: str, require_cluster: Callable[[], None]
    ) -> None:
        self._session = session
        self._watcher = watcher
        self._root = logs_root(ledgers_root)
        self._require_cluster = require_cluster

    def create(self, name: str, log: Log) -> Versioned[Log]:
        path, data = self._path(name), serialize_log(name, log)
        self._require_cluster()

        def settle(refusal: KazooException) -> Any:
            found, stat = self._session.run(lambda zk: zk.get_async(path))
            if bytes(found) != data or stat.version != 0:
                raise refusal
            return path, stat

        try:
            _, stat = self._session.run(
                lambda zk: zk.create_async(path, data, makepath=True, include_data=True), settle
            )
        except NodeExistsError as error:
            raise LogExists(f"log {name!r} exists already") from error
        return Versioned(log, int(stat.version), int(stat.ctime))

    def read(self, name: str) -> Versioned[Log]:
        path = self._path(name)
        try:
            data, stat = self._session.run(lambda zk: zk.get_async(path))
        except NoNodeError as error:
            raise NoSuchLog(f"log {name!r} does not exist") from error
        return Versioned(parse_log(name, bytes(data)), int(stat.version), int(stat.ctime))

    def write(self, name: str, log: Log, version: int) -> Versioned[Log]:
        path, data = self._path(name), serialize_log(name, log)

        def settle(refusal: KazooException) -> Any:
            found, stat = self._session.run(lambda zk: zk.get_async(path))
            if bytes(found) != data or stat.version != version + 1:
                raise refusal
            return stat

        try:
            stat = self._session.run(lambda zk: zk.set_async(path, data, version), settle)
        except BadVersionError as error:
            raise _changed(name, version) from error
        except NoNodeError as error:
            raise NoSuchLog(f"log {name!r} does not exist") from error
        return Versioned(log, int(stat.version), int(stat.ctime))

    def delete(self, name: str, version: int | None = None) -> None:
        path = self._path(name)

        def settle(refusal: KazooException) -> None:
            if not isinstance(refusal, NoNodeError):
                raise refusal

        try:
            self._session.run(lambda zk: zk.delete_async(path, ANY_VERSION if version is None else version), settle)
        except BadVersionError as error:
            raise _changed(name, version) from error
        except NoNodeError as error:
            raise NoSuchLog(f"log {name!r} does not exist") from error

    def names(self) -> Iterator[list[str]]:
        try:
            nodes = self._session.run(lambda zk: zk.get_children_async(self._root))
        except NoNodeError:
            return
        if nodes:
            yield sorted((unquote(node) for node in nodes), key=str.encode)

    def watch(self, name: str, listener: Callable[[Versioned[Log] | None], None]) -> Subscription:
        path = self._path(name)

        def read(watch: Watch[Versioned[Log] | None]) -> Versioned[Log] | None:
            if self._session.run(lambda zk: zk.exists_async(path, watch=watch.touch)) is None:
                return None
            try:
                return self.read(name)
            except NoSuchLog:
                return None

        return self._watcher.add(read, listener, topic=path)

    def _path(self, name: str) -> str:
        return f"{self._root}/{quote(check_name(name), safe='').replace('.', '%2E')}"


def _changed(name: str, version: int | None) -> MetadataVersionConflict:
    return MetadataVersionConflict(f"log {name!r} is no longer at version {version}: read it anew")
