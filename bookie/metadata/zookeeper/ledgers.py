"""Ledger metadata in ZooKeeper: one node for each ledger, with the node's versions. Any thread.

If the answer to a create is lost with the connection, the creator recognises its own node by a token in it.
"""

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace

from kazoo.exceptions import NoNodeError, NotEmptyError

from bookie.errors import LedgerExists, MetadataStoreError, NoSuchLedgerMetadata
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.records.ledger_codec import parse_ledger, serialize_ledger, serialize_new_ledger
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metadata.watching import Watcher
from bookie.metadata.zookeeper.ids import ZooKeeperIds
from bookie.metadata.zookeeper.layout import Layout
from bookie.metadata.zookeeper.ledger_paths import LedgerTree, ledger_path, trees
from bookie.metadata.zookeeper.nodes import NodeKind, ZooKeeperNodes
from bookie.metadata.zookeeper.session import ZooKeeperSession

TOKENS_END = 1 << 63
log = logging.getLogger(__name__)


class ZooKeeperLedgers:
    """The ledgers of one cluster with one layout."""

    def __init__(self, session: ZooKeeperSession, watcher: Watcher, root: str, layout: Callable[[], Layout]) -> None:
        self._session = session
        self._root = root
        self._layout = layout
        self._ids = ZooKeeperIds(session, root)
        kind = NodeKind(
            self._path, parse_ledger, lambda ledger_id: f"ledger {ledger_id}", LedgerExists, NoSuchLedgerMetadata
        )
        self._nodes = ZooKeeperNodes(session, watcher, kind)

    def create(self, ledger_id: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        if metadata.format_version == 3:
            metadata = replace(metadata, token=secrets.randbelow(TOKENS_END - 1) + 1)

        def own(found: bytes, version: int) -> bool:  # noqa: ARG001  # another client may have written it since
            return bool(metadata.token) and parse_ledger(ledger_id, found).token == metadata.token

        return self._nodes.create(ledger_id, metadata, serialize_new_ledger(ledger_id, metadata), own)

    def read(self, ledger_id: int, *, latest: bool = False) -> Versioned[LedgerMetadata]:
        if latest:  # let our server learn all that the leader has; the session never goes back behind it
            self._session.run(lambda zk: zk.sync_async(self._path(ledger_id)))
        return self._nodes.read(ledger_id)

    def write(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        metadata = replace(metadata, token=0)
        return self._nodes.write(ledger_id, metadata, serialize_ledger(metadata), version)

    def delete(self, ledger_id: int, version: int | None = None) -> None:
        self._nodes.delete(ledger_id, version)
        try:
            self._drop_empty_parents(self._path(ledger_id))
        except MetadataStoreError as error:  # the ledger is deleted, and an empty parent does no harm
            log.info("cannot delete empty parents of a deleted ledger ledger=%d error=%s", ledger_id, error)

    def ranges(self) -> Iterator[list[int]]:
        for tree in trees(self._layout()):
            yield from self._walk(tree, self._root, "")

    def watch(self, ledger_id: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription:
        return self._nodes.watch(ledger_id, listener)

    def new_id(self) -> int:
        return self._ids.new_id()

    def last_id(self) -> int:
        return self._ids.last_id()

    def leave_ids(self, last: int) -> None:
        self._ids.leave(last)

    def _path(self, ledger_id: int) -> str:
        return self._root + ledger_path(self._layout(), ledger_id)

    def _walk(self, tree: LedgerTree, path: str, digits: str, depth: int = 0) -> Iterator[list[int]]:
        """Yield one list for each node of the level above the ledgers, in ascending order."""
        try:
            names = self._session.run(lambda zk: zk.get_children_async(path))
        except NoNodeError:
            if depth == 0:  # if the root is absent, an empty answer would be wrong
                raise
            return  # it was emptied and deleted since its parent was listed
        pattern = tree.level(depth)
        found = sorted((match.group(1), name) for name in names if (match := pattern.match(name)))
        if depth < len(tree.widths) - 1:
            for part, name in found:
                yield from self._walk(tree, f"{path}/{name}", digits + part, depth + 1)
        elif found:
            yield sorted(int(digits + part) for part, _ in found)

    def _drop_empty_parents(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        while parent != self._root:
            if not self._drop_if_empty(parent):
                return
            parent = parent.rpartition("/")[0]

    def _drop_if_empty(self, path: str) -> bool:
        try:
            self._session.run(lambda zk: zk.delete_async(path))
        except NotEmptyError:
            return False
        except NoNodeError:  # another client was faster
            return True
        return True
