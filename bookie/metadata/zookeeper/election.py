"""The election of the auditor in ZooKeeper, compatible with Java: the lowest vote wins (`records.replication`).

A vote is an ephemeral, sequential node; each candidate watches the vote before its own. The winner also writes its
name into the parent node, for observers. Any thread may call; listeners run on the driver's watch thread.
"""

from collections.abc import Callable

from kazoo.exceptions import NoNodeError

from bookie.metadata.driver import Subscription
from bookie.metadata.records import replication as formats
from bookie.metadata.watching import Watch, Watcher
from bookie.metadata.zookeeper.session import ZooKeeperSession

PREFIX = "V_"


class ZooKeeperElection:
    """The election of one cluster."""

    def __init__(self, session: ZooKeeperSession, watcher: Watcher, root: str) -> None:
        self._session = session
        self._watcher = watcher
        self._path = f"{root}/underreplication/auditorelection"

    def stand(self, bookie_id: str, listener: Callable[[bool], None]) -> Subscription:
        return _Candidate(self._session, self._watcher, self._path, bookie_id, listener)

    def auditor(self) -> str | None:
        for vote in _votes(self._session, self._path):
            data = self._session.read(f"{self._path}/{vote}")
            if data is not None:
                return formats.parse_vote(data)
        return None


class _Candidate:
    """One vote, made again under each new session."""

    def __init__(
        self, session: ZooKeeperSession, watcher: Watcher, path: str, bookie_id: str, listener: Callable[[bool], None]
    ) -> None:
        self._session = session
        self._path = path
        self._data = formats.vote_to_bytes(bookie_id)
        self._vote = ""
        self._watch = watcher.add(self._look, listener, topic=path)

    def close(self) -> None:
        self._watch.close()
        if self._vote:
            try:
                self._session.run(lambda zk: zk.delete_async(f"{self._path}/{self._vote}"))
            except NoNodeError:
                return

    def _look(self, watch: Watch[bool]) -> bool:
        """Return whether ours is the lowest vote; if not, watch the one before it. Watch thread."""
        while True:
            votes = _votes(self._session, self._path)
            if self._vote not in votes or not self._is_ours(self._vote):
                self._vote = next((vote for vote in votes if self._is_ours(vote)), "")
            if not self._vote:
                self._create()
                continue
            place = votes.index(self._vote)
            if place == 0:
                self._session.run(lambda zk: zk.set_async(self._path, self._data))
                if self._exists(self._vote, watch):
                    return True
                continue
            if self._exists(votes[place - 1], watch):
                return False

    def _create(self) -> None:
        path = f"{self._path}/{PREFIX}"
        self._session.run(lambda zk: zk.create_async(path, self._data, ephemeral=True, sequence=True, makepath=True))

    def _exists(self, vote: str, watch: Watch[bool]) -> bool:
        path = f"{self._path}/{vote}"
        return self._session.run(lambda zk: zk.exists_async(path, watch=watch.touch)) is not None

    def _is_ours(self, vote: str) -> bool:
        """Return whether a vote is of our session.

        The answer to our create may have been lost, and another process may stand under the same name.
        """
        stat = self._session.run(lambda zk: zk.exists_async(f"{self._path}/{vote}"))
        return stat is not None and stat.ephemeralOwner == self._session.id


def _votes(session: ZooKeeperSession, path: str) -> list[str]:
    """Return the votes in ascending order."""
    try:
        names = session.run(lambda zk: zk.get_children_async(path))
    except NoNodeError:
        return []
    return sorted((name for name in names if name.startswith(PREFIX)), key=lambda name: int(name.removeprefix(PREFIX)))
