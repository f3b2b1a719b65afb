"""Bookies in ZooKeeper: registrations (ephemeral nodes), the sets that clients watch, and cookies.

    available/<id>            a writable bookie      cookies/<id>   text of its VERSION files, permanent
    available/readonly/<id>   a read-only bookie

Any thread may call; listeners run on the driver's watch thread.
"""

import threading
import time
from collections.abc import Callable

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from bookie.errors import BookieAlreadyRegistered, MetadataVersionConflict
from bookie.metadata.driver import Subscription
from bookie.metadata.watching import Watch, Watcher
from bookie.metadata.zookeeper.session import ZooKeeperSession

READ_ONLY_NODE = "readonly"
ANY_VERSION = -1
LEAVE_S = 2.0
PATIENCE = 1.5
"""How many session timeouts to wait for the end of an old session, which may come a tick after its timeout."""


class ZooKeeperRegistrations:
    """Registers bookies of this process in ZooKeeper, and removes their registrations."""

    def __init__(self, session: ZooKeeperSession, root: str) -> None:
        self._session = session
        self._root = root

    def register(self, bookie_id: str, info: bytes, *, read_only: bool) -> None:
        deadline = time.monotonic() + PATIENCE * self._session.timeout_s
        wanted = registration_path(self._root, bookie_id, read_only=read_only)
        other = registration_path(self._root, bookie_id, read_only=not read_only)
        self._await_ours_or_free(other, bookie_id, deadline)
        while not self._await_ours_or_free(wanted, bookie_id, deadline):
            try:
                self._session.run(lambda zk: zk.create_async(wanted, info, ephemeral=True, makepath=True))
            except NodeExistsError:  # by our create whose answer was lost, or by another process; the owner tells which
                continue
        self._delete(other)

    def unregister(self, bookie_id: str) -> None:
        """Leave both modes. If the server does not answer soon, it drops the nodes when the session times out."""
        for read_only in (False, True):
            path = registration_path(self._root, bookie_id, read_only=read_only)
            if self._owner(path, patience_s=LEAVE_S) == self._session.id:
                self._delete(path, patience_s=LEAVE_S)

    def is_registered(self, bookie_id: str, *, read_only: bool) -> bool:
        wanted = self._owner(registration_path(self._root, bookie_id, read_only=read_only))
        other = self._owner(registration_path(self._root, bookie_id, read_only=not read_only))
        return wanted == self._session.id and other is None

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        self._session.on_loss(listener)

    def _await_ours_or_free(self, path: str, bookie_id: str, deadline: float) -> bool:
        """Return True if the node is ours, and False if it is absent; wait while it belongs to another session."""
        while True:
            gone = threading.Event()
            owner = self._owner(path, gone)
            if owner is None or owner == self._session.id:
                return owner is not None
            if not gone.wait(max(deadline - time.monotonic(), 0)):
                raise BookieAlreadyRegistered(
                    f"bookie {bookie_id} is registered by another process (ZooKeeper session {owner:#x}): "
                    "stop it, or give this bookie another bookieId"
                )

    def _owner(self, path: str, gone: threading.Event | None = None, *, patience_s: float | None = None) -> int | None:
        watch = None if gone is None else lambda _event: gone.set()
        stat = self._session.run(lambda zk: zk.exists_async(path, watch=watch), patience_s=patience_s)
        return None if stat is None else int(stat.ephemeralOwner)

    def _delete(self, path: str, *, patience_s: float | None = None) -> None:
        try:
            self._session.run(lambda zk: zk.delete_async(path), patience_s=patience_s)
        except NoNodeError:
            return


class ZooKeeperBookies:
    """The bookies of the cluster."""

    def __init__(self, session: ZooKeeperSession, watcher: Watcher, root: str) -> None:
        self._session = session
        self._watcher = watcher
        self._root = root

    def present(self, *, read_only: bool) -> frozenset[str]:
        try:
            return self._children(registrations_path(self._root, read_only=read_only))
        except NoNodeError:
            return frozenset()

    def known(self) -> frozenset[str]:
        try:
            return self._children(f"{self._root}/cookies")
        except NoNodeError:
            return frozenset()

    def info(self, bookie_id: str) -> bytes | None:
        for read_only in (False, True):
            data = self._session.read(registration_path(self._root, bookie_id, read_only=read_only))
            if data is not None:
                return data
        return None

    def watch(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> Subscription:
        path = registrations_path(self._root, read_only=read_only)

        def read(watch: Watch[frozenset[str]]) -> frozenset[str]:
            try:
                return self._children(path, watch)
            except NoNodeError:  # no bookie was registered in this mode yet, and a watch needs the node
                self._session.run(lambda zk: zk.ensure_path_async(path))
                return self._children(path, watch)

        return self._watcher.add(read, listener, topic=path)

    def on_interruption(self, listener: Callable[[], None]) -> None:
        self._session.on_connect(listener)

    def _children(self, path: str, watch: Watch[frozenset[str]] | None = None) -> frozenset[str]:
        touch = None if watch is None else watch.touch
        names = self._session.run(lambda zk: zk.get_children_async(path, watch=touch))
        return frozenset(names) - {READ_ONLY_NODE}


class ZooKeeperCookies:
    """The cookies, one node for each bookie."""

    def __init__(self, session: ZooKeeperSession, root: str) -> None:
        self._session = session
        self._root = root

    def read(self, bookie_id: str) -> tuple[bytes, int] | None:
        try:
            data, stat = self._session.run(lambda zk: zk.get_async(self._path(bookie_id)))
        except NoNodeError:
            return None
        return bytes(data), int(stat.version)

    def write(self, bookie_id: str, text: bytes, version: int | None) -> int:
        path = self._path(bookie_id)
        replaced = -1 if version is None else version

        def settle(refusal: KazooException) -> int:
            if self.read(bookie_id) == (text, replaced + 1):
                return replaced + 1
            raise refusal

        try:
            if version is None:
                self._session.run(lambda zk: zk.create_async(path, text, makepath=True), settle)
            else:
                self._session.run(lambda zk: zk.set_async(path, text, version), settle)
        except (NodeExistsError, NoNodeError, BadVersionError) as error:
            raise MetadataVersionConflict(
                f"cookie of {bookie_id} was changed by another process: read it again"
            ) from error
        return replaced + 1

    def remove(self, bookie_id: str, version: int | None = None) -> None:
        def settle(refusal: KazooException) -> None:
            if not isinstance(refusal, NoNodeError):
                raise refusal

        number = ANY_VERSION if version is None else version
        try:
            self._session.run(lambda zk: zk.delete_async(self._path(bookie_id), number), settle)
        except (NoNodeError, BadVersionError) as error:
            raise MetadataVersionConflict(f"cookie of {bookie_id} is absent or was changed: read it again") from error

    def _path(self, bookie_id: str) -> str:
        return f"{self._root}/cookies/{bookie_id}"


def registrations_path(root: str, *, read_only: bool) -> str:
    """Return the parent node of the registrations of one mode."""
    return f"{root}/available/{READ_ONLY_NODE}" if read_only else f"{root}/available"


def registration_path(root: str, bookie_id: str, *, read_only: bool) -> str:
    """Return the node of a bookie's registration in one mode."""
    return f"{registrations_path(root, read_only=read_only)}/{bookie_id}"
