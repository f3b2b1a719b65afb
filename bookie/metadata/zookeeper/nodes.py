"""ZooKeeper nodes that hold one value each, and are changed by compare-and-set. Any thread.

An answer can be lost with the connection. If a repeated create is refused, the node is read and may turn out to be
our own; if a repeated conditional write is refused, our own bytes may be there under the next version.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
from kazoo.protocol.states import WatchedEvent

from bookie.errors import BookKeeperError, MetadataVersionConflict
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.watching import Watch, Watcher
from bookie.metadata.zookeeper.session import ZooKeeperSession

__all__ = ["NodeKind", "ZooKeeperNodes"]

K = TypeVar("K")
T = TypeVar("T")

ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class NodeKind(Generic[K, T]):
    """What the nodes of a kind hold, and their errors. `named` is how messages call a node, such as "ledger 7"."""

    path: Callable[[K], str]
    parse: Callable[[K, bytes], T]
    named: Callable[[K], str]
    exists: type[BookKeeperError]
    absent: type[BookKeeperError]


class ZooKeeperNodes(Generic[K, T]):
    """Nodes of one kind. Values are written as `data`, already serialized, and returned as `value`."""

    def __init__(self, session: ZooKeeperSession, watcher: Watcher, kind: NodeKind[K, T]) -> None:
        self._session = session
        self._watcher = watcher
        self._kind = kind

    def create(self, key: K, value: T, data: bytes, own: Callable[[bytes, int], bool]) -> Versioned[T]:
        """Create a node. `own(data, version)` returns whether a node was made by this call. Raises the kind's
        `exists`.
        """
        path = self._kind.path(key)

        def settle(refusal: KazooException) -> Any:
            found, stat = self._session.run(lambda zk: zk.get_async(path))
            if not own(bytes(found), stat.version):
                raise refusal
            return path, stat

        try:
            _, stat = self._session.run(
                lambda zk: zk.create_async(path, data, makepath=True, include_data=True), settle
            )
        except NodeExistsError as error:
            raise self._kind.exists(f"{self._kind.named(key)} already exists") from error
        return Versioned(value, int(stat.version), int(stat.ctime))

    def read(self, key: K) -> Versioned[T]:
        """Return a node's value. Raises the kind's `absent`."""
        path = self._kind.path(key)
        try:
            data, stat = self._session.run(lambda zk: zk.get_async(path))
        except NoNodeError as error:
            raise self._absent(key) from error
        return Versioned(self._kind.parse(key, bytes(data)), int(stat.version), int(stat.ctime))

    def write(self, key: K, value: T, data: bytes, version: int) -> Versioned[T]:
        """Replace version `version` of a node. Raises MetadataVersionConflict or the kind's `absent`."""
        path = self._kind.path(key)

        def settle(refusal: KazooException) -> Any:
            found, stat = self._session.run(lambda zk: zk.get_async(path))
            if bytes(found) != data or stat.version != version + 1:
                raise refusal
            return stat

        try:
            stat = self._session.run(lambda zk: zk.set_async(path, data, version), settle)
        except BadVersionError as error:
            raise self._changed(key, version) from error
        except NoNodeError as error:
            raise self._absent(key) from error
        return Versioned(value, int(stat.version), int(stat.ctime))

    def delete(self, key: K, version: int | None) -> None:
        """Delete a node; `version` None means any version. Raises MetadataVersionConflict or the kind's `absent`."""
        path = self._kind.path(key)

        def settle(refusal: KazooException) -> None:
            if not isinstance(refusal, NoNodeError):
                raise refusal

        try:
            self._session.run(lambda zk: zk.delete_async(path, ANY_VERSION if version is None else version), settle)
        except BadVersionError as error:
            raise self._changed(key, version) from error
        except NoNodeError as error:
            raise self._absent(key) from error

    def watch(self, key: K, listener: Callable[[Versioned[T] | None], None]) -> Subscription:
        """Call a listener with the node's value now and at each change, and with None if it is absent."""
        path = self._kind.path(key)

        def read(_: Watch[Versioned[T] | None]) -> Versioned[T] | None:
            # The client of ZooKeeper keeps a function until the node changes, but equal ones only once.
            if self._session.run(lambda zk: zk.exists_async(path, watch=self._touched)) is None:
                return None
            try:
                return self.read(key)
            except self._kind.absent:
                return None

        return self._watcher.add(read, listener, topic=path)

    def _touched(self, event: WatchedEvent) -> None:
        self._watcher.wake_topic(event.path or "")

    def _absent(self, key: K) -> BookKeeperError:
        return self._kind.absent(f"{self._kind.named(key)} does not exist")

    def _changed(self, key: K, version: int | None) -> MetadataVersionConflict:
        return MetadataVersionConflict(f"{self._kind.named(key)} is no longer at version {version}: read it again")
