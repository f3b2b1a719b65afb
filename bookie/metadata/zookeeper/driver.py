"""The driver for ZooKeeper, with Apache BookKeeper's own tree, so that Java clients and bookies share the cluster.

All nodes are below the ledgers root of the URI, and addressed by full paths; only logs have a root of their own next
to it. The threads are kazoo's two, and the watch thread.
"""

import uuid
from contextlib import suppress

from kazoo.exceptions import NodeExistsError, NoNodeError, NotEmptyError

from bookie.errors import ClusterNotInitialized, ConfigurationError, IllegalOperation, MetadataStoreError
from bookie.metadata.driver import ClusterSeen
from bookie.metadata.uri import MetadataUri
from bookie.metadata.watching import Watcher
from bookie.metadata.zookeeper.bookies import ZooKeeperBookies, ZooKeeperCookies, ZooKeeperRegistrations
from bookie.metadata.zookeeper.election import ZooKeeperElection
from bookie.metadata.zookeeper.layout import Layout, layout_of_kind, parse_layout
from bookie.metadata.zookeeper.ledgers import ZooKeeperLedgers
from bookie.metadata.zookeeper.logs import ZooKeeperLogs, logs_root
from bookie.metadata.zookeeper.replication import ZooKeeperReplication
from bookie.metadata.zookeeper.session import ZooKeeperSession

HEALTH_CHECKS_OFF = "disableHealthCheck"


class ZooKeeperCluster:
    """The root of the cluster, INSTANCEID and LAYOUT."""

    def __init__(self, session: ZooKeeperSession, where: MetadataUri) -> None:
        self._session = session
        self._root = where.path
        self._kind = where.layout
        self._wanted = layout_of_kind(where.layout)
        self._found: Layout | None = None

    def initialize(self, instance_id: str | None = None) -> str:
        instance_id = instance_id or str(uuid.uuid4())

        def create_all(zk: object) -> object:
            batch = zk.transaction()  # type: ignore[attr-defined]  # kazoo ships no types
            for path in (self._root, f"{self._root}/available", f"{self._root}/available/readonly"):
                batch.create(path)
            batch.create(f"{self._root}/INSTANCEID", instance_id.encode())
            return batch.commit_async()

        refusals = [answer for answer in self._session.run(create_all) if isinstance(answer, Exception)]
        if any(isinstance(answer, NodeExistsError) for answer in refusals):
            if not self._is_ours(instance_id):
                raise IllegalOperation(
                    f"{self._root} exists on ZooKeeper {self._session.hosts}: it already holds a cluster"
                )
        elif refusals:
            parent = self._root.rpartition("/")[0] or "/"
            raise MetadataStoreError(f"{self._root} could not be created: create {parent} first ({refusals[0]!r})")
        self.layout()
        return instance_id

    def destroy(self) -> None:
        available = f"{self._root}/available"
        for path in (available, f"{available}/readonly"):
            for name in self._children(path):
                if name != "readonly":
                    raise IllegalOperation(f"bookie {name} is registered: stop all bookies first")
        self._delete(self._root)
        self._delete(logs_root(self._root))
        self._found = None

    def health_checks(self) -> bool:
        return self._session.run(lambda zk: zk.exists_async(f"{self._root}/{HEALTH_CHECKS_OFF}")) is None

    def enable_health_checks(self, *, enabled: bool) -> None:
        path = f"{self._root}/{HEALTH_CHECKS_OFF}"
        with suppress(NoNodeError, NodeExistsError):
            self._session.run(lambda zk: zk.delete_async(path) if enabled else zk.create_async(path, b""))

    def is_initialized(self) -> bool:
        return self._session.run(lambda zk: zk.exists_async(self._root)) is not None

    def instance_id(self) -> str | None:
        self.require_root()
        data = self._session.read(f"{self._root}/INSTANCEID")
        return None if data is None else data.decode()

    def seen(self) -> ClusterSeen:
        session = self._session.id
        self._session.run(lambda zk: zk.sync_async(self._root))
        instance_id = self.instance_id()
        layout = self._session.read(f"{self._root}/LAYOUT")
        if layout is None:
            raise ClusterNotInitialized(
                f"ZooKeeper {self._session.hosts} has no {self._root}/LAYOUT: restore it, or correct metadataServiceUri"
            )
        if not session or self._session.id != session:
            raise MetadataStoreError(f"the session with ZooKeeper {self._session.hosts} ended meanwhile")
        return ClusterSeen(instance_id, parse_layout(layout).kind, session)

    def layout(self) -> Layout:
        """Return the cluster's layout, after storing it if there is none. Raises ConfigurationError if the URI
        names another.
        """
        if self._found is None:
            self._found = self._read_or_store_layout()
        return self._found

    def _read_or_store_layout(self) -> Layout:
        path = f"{self._root}/LAYOUT"
        data = self._session.read(path)
        if data is None:
            self.require_root()
            data = self._wanted.to_bytes()
            try:
                self._session.run(lambda zk: zk.create_async(path, data))
            except NodeExistsError:  # another process was faster, or the answer to our create was lost
                return self._read_or_store_layout()
        found = parse_layout(data)
        if self._kind is not None and found.kind != self._wanted.kind:
            raise ConfigurationError(
                f"metadataServiceUri asks for layout {self._wanted.kind}, but {path} says {found.kind}: "
                f"write zk+{found.kind}://"
            )
        return found

    def _children(self, path: str) -> list[str]:
        try:
            return list(self._session.run(lambda zk: zk.get_children_async(path)))
        except NoNodeError:
            return []

    def _delete(self, path: str) -> None:
        """Delete a node and all below it. Nodes that others delete meanwhile are skipped."""
        for name in self._children(path):
            self._delete(f"{path}/{name}")
        try:
            with suppress(NoNodeError):
                self._session.run(lambda zk: zk.delete_async(path))
        except NotEmptyError:
            raise IllegalOperation(f"{path} is being written to: stop all bookies and clients first") from None

    def _is_ours(self, instance_id: str) -> bool:
        """Return whether the existing cluster was made by our own attempt, whose answer was lost."""
        return self._session.read(f"{self._root}/INSTANCEID") == instance_id.encode()

    def require_root(self) -> None:
        """Raise ClusterNotInitialized if the root does not exist."""
        if not self.is_initialized():
            raise ClusterNotInitialized(
                f"ZooKeeper {self._session.hosts} has no {self._root}: create the cluster first "
                "(bookie-server --init-cluster), or correct the path of metadataServiceUri"
            )


class ZooKeeperDriver:
    """All parts of a `MetadataDriver`, over one session."""

    def __init__(self, where: MetadataUri, *, session_timeout_s: float, secure: bool) -> None:
        self._session = ZooKeeperSession(where.hosts, timeout_s=session_timeout_s, secure=secure)
        self._watcher = Watcher("zookeeper-watch")
        self.cluster = ZooKeeperCluster(self._session, where)
        self.registrations = ZooKeeperRegistrations(self._session, where.path)
        self.bookies = ZooKeeperBookies(self._session, self._watcher, where.path)
        self.cookies = ZooKeeperCookies(self._session, where.path)
        self.ledgers = ZooKeeperLedgers(self._session, self._watcher, where.path, self.cluster.layout)
        self.logs = ZooKeeperLogs(self._session, self._watcher, where.path, self.cluster.require_root)
        self.replication = ZooKeeperReplication(self._session, self._watcher, where.path)
        self.election = ZooKeeperElection(self._session, self._watcher, where.path)
        self._session.on_connect(lambda: self._watcher.wake_topic(""))
        self._started = False

    def start(self) -> None:
        """Connect. Raises MetadataStoreError or ConfigurationError; a cluster that is not initialized is no error
        yet.
        """
        if self._started:
            return
        self._session.start()
        self._watcher.start()
        self._started = True
        if self.cluster.is_initialized():
            self.cluster.layout()

    def hurry(self, patience_s: float) -> None:
        self._session.hurry(patience_s)

    def stop(self) -> None:
        self._session.refuse()
        self._watcher.stop()
        self._session.stop()
