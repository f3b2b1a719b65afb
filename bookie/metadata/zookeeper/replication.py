"""Ledgers with too few replicas, in ZooKeeper; marks and locks are shared with Java's auditors and workers.

Names and texts are in `records.replication`. Any thread may call. As in Java, the nodes that `claim` has read without
finding a ledger are watched; so a change anywhere in the tree is reported, and a busy tree costs no watches.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack
from random import Random
from typing import Any

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError, NotEmptyError

from bookie.metadata.driver import Subscription
from bookie.metadata.records import replication as formats
from bookie.metadata.records.replication import Check, Claim, Mark, ledger_of, mark_path, merge, node_name
from bookie.metadata.unsure_locks import UnsureLocks
from bookie.metadata.watching import Watch, Watcher
from bookie.metadata.zookeeper.session import ZooKeeperSession

ANY_VERSION = -1
DEPTH = 4
"""The number of nodes between `ledgers` and a mark."""


class _SessionEnded(Exception):
    """The session is another one than that of the lock."""


class ZooKeeperReplication:
    """The marks, the locks and the few settings of one cluster."""

    def __init__(self, session: ZooKeeperSession, watcher: Watcher, root: str) -> None:
        self._session = session
        self._watcher = watcher
        self._base = f"{root}/underreplication"
        self._marks = f"{self._base}/ledgers"
        self._locks = f"{self._base}/locks"
        self._disable = f"{self._base}/disable"
        self._delay = f"{self._base}/lostBookieRecoveryDelay"
        self._layout_known = False
        self._claimants: dict[str, Callable[[], None]] = {}
        self._unsure = UnsureLocks(lambda ledger: self.release(Claim(ledger, ANY_VERSION)))

    def lock(self, ledger_id: int) -> AbstractContextManager[bool]:
        return self._unsure.holding(ledger_id, self._take)

    def mark(self, ledger_id: int, missing: Collection[str], now_ms: int | None) -> None:
        self._require_layout()
        path = f"{self._marks}/{mark_path(ledger_id)}"
        while True:
            known = self._read_mark(ledger_id)
            data = formats.mark_to_bytes(merge(known and known[0], ledger_id, missing, now_ms))
            try:
                if known is None:
                    self._create(path, data)
                else:
                    self._set(path, data, known[1])
            except (NodeExistsError, NoNodeError, BadVersionError):  # another process changed it, so read it again
                continue
            return

    def marked(self, ledger_id: int) -> Mark | None:
        known = self._read_mark(ledger_id)
        return known and known[0]

    def marks(self) -> Iterator[list[Mark]]:
        waiting = [(self._marks, 0)]
        while waiting:
            path, depth = waiting.pop()
            names = self._children(path)
            if depth < DEPTH:
                waiting += [(f"{path}/{name}", depth + 1) for name in names]
                continue
            found = (self.marked(ledger) for name in names if (ledger := ledger_of(name)) is not None)
            if page := [mark for mark in found if mark is not None]:
                yield page

    def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        self._require_layout()
        self._unsure.release_all()
        self._claimants[owner] = changed
        if self._session.run(lambda zk: zk.exists_async(self._disable, watch=self._touched)) is not None:
            return None
        locked = set(self._children(self._locks, self._touched))
        waiting = [(self._marks, 0)]
        while waiting:
            path, depth = waiting.pop()
            names = self._children(path, self._touched)
            random.shuffle(names)
            if depth < DEPTH:
                waiting += [(f"{path}/{name}", depth + 1) for name in names]
                continue
            for name in names:
                ledger = ledger_of(name)
                if ledger is None or name in locked:
                    continue
                if not self._take(ledger, owner):
                    continue
                with ExitStack() as taken:
                    taken.callback(self.release, Claim(ledger, ANY_VERSION))
                    stat = self._stat(f"{path}/{name}")  # the previous holder of the lock may have finished
                    if stat is not None:
                        taken.pop_all()
                        return Claim(ledger, int(stat.version))
        return None

    def finish(self, claim: Claim) -> bool:
        owner = self._session.id
        try:
            return self.holds(claim) and self._remove_mark(claim, owner)
        finally:
            self.release(claim)

    def release(self, claim: Claim) -> None:
        """Release the lock if it is ours, and not one that another worker took after our session had ended.

        If that fails, it is repeated before the next claim.
        """
        with self._unsure.releasing(claim.ledger):
            owner = self._session.id
            if self.holds(claim):
                self._drop(self._lock_path(claim.ledger), owner)

    def holds(self, claim: Claim) -> bool:
        stat = self._stat(self._lock_path(claim.ledger))
        return stat is not None and stat.ephemeralOwner == self._session.id

    def holders(self) -> dict[int, str]:
        held: dict[int, str] = {}
        for name in self._children(self._locks):
            ledger, data = ledger_of(name), self._session.read(f"{self._locks}/{name}")
            if ledger is not None and data is not None:
                held[ledger] = formats.parse_holder(data)
        return held

    def enabled(self) -> bool:
        return self._session.run(lambda zk: zk.exists_async(self._disable)) is None

    def enable(self, *, enabled: bool) -> None:
        if enabled:
            self._drop(self._disable)
            return
        try:
            self._create(self._disable, b"")
        except NodeExistsError:
            return

    def lost_bookie_delay_s(self) -> int | None:
        data = self._session.read(self._delay)
        return None if data is None else formats.parse_delay(data)

    def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None:
        self._put(self._delay, str(seconds).encode(), replace=not only_if_unset)

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription:
        def read(watch: Watch[tuple[int | None, int]]) -> tuple[int | None, int]:
            stat = self._session.run(lambda zk: zk.exists_async(self._delay, watch=watch.touch))
            return self.lost_bookie_delay_s(), ANY_VERSION if stat is None else int(stat.version)

        return self._watcher.add(read, lambda seen: listener(seen[0]), topic=self._delay)

    def last_check_ms(self, check: Check) -> int | None:
        data = self._session.read(f"{self._base}/{check.value}")
        return None if data is None else formats.parse_check_time(data)

    def set_last_check_ms(self, check: Check, at_ms: int) -> None:
        self._put(f"{self._base}/{check.value}", formats.check_time_to_bytes(at_ms), replace=True)

    def _touched(self, _event: object) -> None:
        """Call all claimants. It is one function for all, since the session keeps one watcher per node, however
        often it is set.
        """
        for changed in list(self._claimants.values()):
            changed()

    def _require_layout(self) -> None:
        """Create the layout and the parents as Java does, if needed. Raises MetadataSerializationError for another
        layout.
        """
        if self._layout_known:
            return
        path = f"{self._base}/LAYOUT"
        data = self._session.read(path)
        if data is None:
            try:
                self._create(path, formats.layout_to_bytes())
            except NodeExistsError:  # another process was faster
                self._require_layout()
                return
        else:
            formats.check_layout(data)
        for parent in (self._marks, self._locks):
            self._ensure(parent)
        self._layout_known = True

    def _read_mark(self, ledger_id: int) -> tuple[Mark, int] | None:
        path = f"{self._marks}/{mark_path(ledger_id)}"
        try:
            data, stat = self._session.run(lambda zk: zk.get_async(path))
        except NoNodeError:
            return None
        return formats.parse_mark(ledger_id, bytes(data)), int(stat.version)

    def _remove_mark(self, claim: Claim, owner: int) -> bool:
        """Remove a mark and its empty parents, in session `owner` only. Returns whether the mark is gone.

        Under another session, the next holder of the lock may have removed it, and it may have been set again with
        the same version.
        """
        path = f"{self._marks}/{mark_path(claim.ledger)}"

        def delete(zk: Any) -> Any:
            if self._session.id != owner:
                raise _SessionEnded
            return zk.delete_async(path, claim.version)

        def settle(refusal: KazooException) -> None:
            if not isinstance(refusal, NoNodeError):
                raise refusal

        try:
            self._session.run(delete, settle)
        except (BadVersionError, _SessionEnded):
            return False
        except NoNodeError:
            return True
        for _ in range(DEPTH):
            path = path.rpartition("/")[0]
            try:
                self._delete(path)
            except (NotEmptyError, NoNodeError):
                break
        return True

    def _take(self, ledger_id: int, owner: str) -> bool:
        path = self._lock_path(ledger_id)

        def settle(refusal: KazooException) -> None:
            """Accept a node that our first attempt has made, whose answer was lost."""
            if not isinstance(refusal, NodeExistsError):
                raise refusal
            stat = self._session.run(lambda zk: zk.exists_async(path))
            if stat is None or stat.ephemeralOwner != self._session.id:
                raise refusal

        data = formats.holder_to_bytes(owner)
        try:
            with self._unsure.taking(ledger_id):
                self._session.run(lambda zk: zk.create_async(path, data, ephemeral=True, makepath=True), settle)
        except NodeExistsError:
            return False
        return True

    def _lock_path(self, ledger_id: int) -> str:
        return f"{self._locks}/{node_name(ledger_id)}"

    def _drop(self, path: str, owner: int | None = None) -> None:
        """Delete a node, if it exists; with an `owner` only in this session, after which the node may be another's."""

        def delete(zk: Any) -> Any:
            if owner is not None and self._session.id != owner:
                raise _SessionEnded
            return zk.delete_async(path)

        def settle(refusal: KazooException) -> None:
            if not isinstance(refusal, NoNodeError):
                raise refusal

        try:
            self._session.run(delete, settle)
        except (NoNodeError, _SessionEnded):  # a lock ends with its session
            return

    def _put(self, path: str, data: bytes, *, replace: bool) -> None:
        while True:
            try:
                self._create(path, data)
            except NodeExistsError:
                if replace:
                    try:
                        self._session.run(lambda zk: zk.set_async(path, data))
                    except NoNodeError:
                        continue
            return

    def _create(self, path: str, data: bytes) -> None:
        self._session.run(lambda zk: zk.create_async(path, data, makepath=True))

    def _set(self, path: str, data: bytes, version: int) -> None:
        self._session.run(lambda zk: zk.set_async(path, data, version))

    def _stat(self, path: str) -> Any:
        return self._session.run(lambda zk: zk.exists_async(path))

    def _delete(self, path: str) -> None:
        self._session.run(lambda zk: zk.delete_async(path))

    def _ensure(self, path: str) -> None:
        self._session.run(lambda zk: zk.ensure_path_async(path))

    def _children(self, path: str, touched: Callable[[object], None] | None = None) -> list[str]:
        try:
            return list(self._session.run(lambda zk: zk.get_children_async(path, watch=touched)))
        except NoNodeError:  # it was emptied and deleted since its parent was listed
            return []
