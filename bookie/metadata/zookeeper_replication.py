"""The locks of ledgers that are being copied, in ZooKeeper: Java's replicators take the same.

`underreplication/locks/urL<id>` below the ledgers root, ephemeral, holding who has it as protobuf text. Any thread.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError

from bookie.metadata.zookeeper_session import ZooKeeperSession


class ZooKeeperReplication:
    """The locks of one cluster."""

    def __init__(self, session: ZooKeeperSession, root: str) -> None:
        self._session = session
        self._locks = f"{root}/underreplication/locks"

    @contextmanager
    def lock(self, ledger_id: int) -> Iterator[bool]:
        path = f"{self._locks}/urL{ledger_id:010d}"
        if not self._take(path):
            yield False
            return
        try:
            yield True
        finally:
            self._release(path)

    def _take(self, path: str) -> bool:
        data = f'bookieId: "{socket.gethostname()}"\n'.encode()

        def settle(refusal: KazooException) -> None:
            """A first attempt whose answer was lost may have made the node."""
            if not isinstance(refusal, NodeExistsError):
                raise refusal
            stat = self._session.run(lambda zk: zk.exists_async(path))
            if stat is None or stat.ephemeralOwner != self._session.id:
                raise refusal

        try:
            self._session.run(lambda zk: zk.create_async(path, data, ephemeral=True, makepath=True), settle)
        except NodeExistsError:
            return False
        return True

    def _release(self, path: str) -> None:
        def settle(refusal: KazooException) -> None:
            if not isinstance(refusal, NoNodeError):
                raise refusal

        try:
            self._session.run(lambda zk: zk.delete_async(path), settle)
        except NoNodeError:  # it ended with a session
            return
