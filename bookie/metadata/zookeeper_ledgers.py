"""Ledger metadata in ZooKeeper: one node a ledger, versions are the node's. Any thread.

An answer can be lost with the connection. A create that is then refused reads the node back and looks for its own
token; a conditional write that is then refused looks for its own bytes under the next version.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError, NotEmptyError

from bookie.errors import LedgerExists, MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.metadata.driver import Subscription, Versioned
from bookie.metadata.layout import Layout
from bookie.metadata.ledger_codec import parse_ledger, serialize_ledger
from bookie.metadata.ledger_metadata import LedgerMetadata
from bookie.metadata.ledger_paths import LedgerTree, ledger_path, trees
from bookie.metadata.watching import Watch, Watcher
from bookie.metadata.zookeeper_ids import ZooKeeperIds
from bookie.metadata.zookeeper_session import ZooKeeperSession

ANY_VERSION = -1
TOKENS_END = 1 << 63


class ZooKeeperLedgers:
    """The ledgers of one cluster under one layout."""

    def __init__(self, session: ZooKeeperSession, watcher: Watcher, root: str, layout: Callable[[], Layout]) -> None:
        self._session = session
        self._watcher = watcher
        self._root = root
        self._layout = layout
        self._ids = ZooKeeperIds(session, root)

    def create(self, ledger_id: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        path = self._path(ledger_id)
        if metadata.format_version == 3:
            metadata = replace(metadata, token=secrets.randbelow(TOKENS_END - 1) + 1)
        data = serialize_ledger(metadata)

        def settle(refusal: KazooException) -> Any:
            found, stat = self._session.run(lambda zk: zk.get_async(path))
            if not metadata.token or parse_ledger(ledger_id, bytes(found)).token != metadata.token:
                raise refusal
            return path, stat

        try:
            _, stat = self._session.run(
                lambda zk: zk.create_async(path, data, makepath=True, include_data=True), settle
            )
        except NodeExistsError as error:
            raise LedgerExists(f"ledger {ledger_id} exists already") from error
        return Versioned(metadata, int(stat.version), int(stat.ctime))

    def read(self, ledger_id: int) -> Versioned[LedgerMetadata]:
        return self._read(ledger_id)

    def write(self, ledger_id: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        path = self._path(ledger_id)
        metadata = replace(metadata, token=0)
        data = serialize_ledger(metadata)

        def settle(refusal: KazooException) -> Any:
            found, stat = self._session.run(lambda zk: zk.get_async(path))
            if bytes(found) != data or stat.version != version + 1:
                raise refusal
            return stat

        try:
            stat = self._session.run(lambda zk: zk.set_async(path, data, version), settle)
        except BadVersionError as error:
            raise _changed(ledger_id, version) from error
        except NoNodeError as error:
            raise _absent(ledger_id) from error
        return Versioned(metadata, int(stat.version), int(stat.ctime))

    def delete(self, ledger_id: int, version: int | None = None) -> None:
        path = self._path(ledger_id)

        def settle(refusal: KazooException) -> None:
            if not isinstance(refusal, NoNodeError):
                raise refusal

        try:
            self._session.run(lambda zk: zk.delete_async(path, ANY_VERSION if version is None else version), settle)
        except BadVersionError as error:
            raise _changed(ledger_id, version) from error
        except NoNodeError as error:
            raise _absent(ledger_id) from error
        self._drop_empty_parents(path)

    def ranges(self) -> Iterator[list[int]]:
        for tree in trees(self._layout()):
            yield from self._walk(tree, self._root, "")

    def watch(self, ledger_id: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> Subscription:
        path = self._path(ledger_id)

        def read(watch: Watch[Versioned[LedgerMetadata] | None]) -> Versioned[LedgerMetadata] | None:
            if self._session.run(lambda zk: zk.exists_async(path, watch=watch.touch)) is None:
                return None
            try:
                return self._read(ledger_id)
            except NoSuchLedgerMetadata:
                return None

        return self._watcher.add(read, listener, topic=path)

    def new_id(self) -> int:
        return self._ids.new_id()

    def _path(self, ledger_id: int) -> str:
        return self._root + ledger_path(self._layout(), ledger_id)

    def _read(self, ledger_id: int) -> Versioned[LedgerMetadata]:
        try:
            data, stat = self._session.run(lambda zk: zk.get_async(self._path(ledger_id)))
        except NoNodeError as error:
            raise _absent(ledger_id) from error
        return Versioned(parse_ledger(ledger_id, bytes(data)), int(stat.version), int(stat.ctime))

    def _walk(self, tree: LedgerTree, path: str, digits: str, depth: int = 0) -> Iterator[list[int]]:
        """One list for each node of the level above the ledgers, in ascending order."""
        try:
            names = self._session.run(lambda zk: zk.get_children_async(path))
        except NoNodeError:
            if depth == 0:  # the root itself: "no ledgers" would be a lie
                raise
            return  # emptied and dropped since its parent was listed
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
        except NoNodeError:  # another client was first
            return True
        return True


def _absent(ledger_id: int) -> NoSuchLedgerMetadata:
    return NoSuchLedgerMetadata(f"ledger {ledger_id} does not exist")


def _changed(ledger_id: int, version: int | None) -> MetadataVersionConflict:
    return MetadataVersionConflict(f"metadata of ledger {ledger_id} is no longer at version {version}: read it anew")
