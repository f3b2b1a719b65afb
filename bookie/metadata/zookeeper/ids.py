"""Ledger ids from ZooKeeper: sequence numbers of short-lived nodes, 31 bits first, then 63 for good.

    idgen/ID-<n>                    until n passes 2147483646; then idgen-long appears, and its mere existence
    idgen-long/HOB-<high>/ID-<n>    makes every client take (high << 32) | n; HOB- nodes count up from 1

Any thread. A lost answer wastes an id, but no id is ever assigned twice.
"""

import contextlib

from kazoo.exceptions import NodeExistsError, NoNodeError, NotEmptyError
from kazoo.security import OPEN_ACL_UNSAFE

from bookie.errors import LedgerIdOverflow
from bookie.metadata.zookeeper.ledger_paths import SHORT_IDS_END
from bookie.metadata.zookeeper.session import ZooKeeperSession

PREFIX = "ID-"
HIGH_PREFIX = "HOB-"
HIGH_KEPT = 3
HIGH_END = 1 << 31
TAKEN_MAX = 1000


class ZooKeeperIds:
    """The generator of ledger ids of one cluster; all layouts share it."""

    def __init__(self, session: ZooKeeperSession, root: str) -> None:
        self._session = session
        self._short = f"{root}/idgen"
        self._long = f"{root}/idgen-long"

    def new_id(self) -> int:
        if self._session.run(lambda zk: zk.exists_async(self._long)) is None:
            low = self._sequence(self._short)
            if low is not None:
                return low
            self._create(self._long)
        return self._new_long_id()

    def last_id(self) -> int:
        """Return the highest id that was assigned, or -1."""
        if (high := self._highest()) is not None:
            return (high << 32) + self._last_number(f"{self._long}/{_high_node(high)}") if high else SHORT_IDS_END - 1
        return self._last_number(self._short)

    def leave(self, last: int) -> None:
        """Go on after `last`. Sequence numbers cannot be set, so this takes a few, or begins the next HOB node."""
        now = self.last_id()
        if now >> 32 == last >> 32 and last - now <= TAKEN_MAX:
            for _ in range(last - now):
                self.new_id()
        elif now < last:
            high = (last >> 32) + 1
            if high >= HIGH_END:
                raise LedgerIdOverflow(f"no ledger id is left after {last}")
            self._create(f"{self._long}/{_high_node(high)}", OPEN_ACL_UNSAFE)

    def _last_number(self, parent: str) -> int:
        """Return the last sequence number below `parent`, or -1.

        The next one is the number of children that were ever created. Clients are shown twice that less the present
        number of children as `cversion`, in 32 bits.
        """
        stat = self._session.run(lambda zk: zk.exists_async(parent))
        if stat is None:
            return -1
        created = ((stat.cversion + stat.numChildren) & 0xFFFFFFFF) // 2
        return int(created) - 1

    def _new_long_id(self) -> int:
        while True:
            high = self._highest() or 0
            low = self._sequence(f"{self._long}/{_high_node(high)}") if high else None
            if low is not None:
                return high << 32 | low
            if high + 1 >= HIGH_END:
                raise LedgerIdOverflow(f"{self._long} has reached {_high_node(high)}: no ledger id is left")
            self._create(f"{self._long}/{_high_node(high + 1)}", OPEN_ACL_UNSAFE)  # it has an open ACL in every cluster
            self._drop_old(high + 1)

    def _highest(self) -> int | None:
        """Return the number of the highest HOB node, 0 if there is none, and None if ids have 31 bits."""
        try:
            names = self._session.run(lambda zk: zk.get_children_async(self._long))
        except NoNodeError:
            return None
        return max((int(name.removeprefix(HIGH_PREFIX)) for name in names if _is_high_node(name)), default=0)

    def _sequence(self, parent: str) -> int | None:
        """Return the next number under `parent`, or None when the numbers have overflowed."""
        path = self._session.run(
            lambda zk: zk.create_async(f"{parent}/{PREFIX}", b"", ephemeral=True, sequence=True, makepath=True)
        )
        number = int(path.rpartition(PREFIX)[2])
        with contextlib.suppress(NoNodeError):  # the answer to the delete was lost, or the session ended
            self._session.run(lambda zk: zk.delete_async(path))
        return number if 0 <= number < SHORT_IDS_END else None

    def _create(self, path: str, acl: object = None) -> None:
        try:
            self._session.run(lambda zk: zk.create_async(path, b"", acl=acl, makepath=True))
        except NodeExistsError:
            return

    def _drop_old(self, high: int) -> None:
        names = self._session.run(lambda zk: zk.get_children_async(self._long))
        for name in names:
            if _is_high_node(name) and int(name.removeprefix(HIGH_PREFIX)) <= high - HIGH_KEPT:
                self._drop(f"{self._long}/{name}")

    def _drop(self, path: str) -> None:
        with contextlib.suppress(NoNodeError, NotEmptyError):  # another client was faster, or is taking an id there
            self._session.run(lambda zk: zk.delete_async(path))


def _high_node(high: int) -> str:
    return f"{HIGH_PREFIX}{high:010d}"


def _is_high_node(name: str) -> bool:
    return name.startswith(HIGH_PREFIX) and name.removeprefix(HIGH_PREFIX).isdigit()
