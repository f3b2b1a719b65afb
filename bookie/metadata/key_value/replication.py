"""Ledgers with too few replicas, and the election of the auditor, over versioned keys.

    replicating/<19 digits>          the worker that copies this ledger, under its session
    underreplicated/<19 digits>      a mark, with the same text as in ZooKeeper
    replication/disable              replication is disabled while it exists
    replication/<name>               the delay and the last checks, as in ZooKeeper
    auditor-votes/<19 digits>        candidates, under their sessions; the lowest is the auditor
    next-auditor-vote                counter

Any thread; watch listeners run on the watch thread.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from random import Random

from bookie.metadata.driver import Subscription
from bookie.metadata.key_value.keys import Item, KeyAbsent, KeyExists, KeyValues, VersionConflict, pages
from bookie.metadata.records import replication as formats
from bookie.metadata.records.replication import Check, Claim, Mark, merge
from bookie.metadata.unsure_locks import UnsureLocks
from bookie.metadata.watching import Watch, Watcher

LOCKS = "replicating/"
MARKS = "underreplicated/"
SETTINGS = "replication/"
DISABLE = f"{SETTINGS}disable"
DELAY = f"{SETTINGS}lostBookieRecoveryDelay"
VOTES = "auditor-votes/"
NEXT_VOTE = "next-auditor-vote"


class KeyValueReplication:
    """The marks, the locks and the few settings of one cluster."""

    def __init__(self, store: KeyValues, watcher: Watcher) -> None:
        self._store = store
        self._watcher = watcher
        self._claimants: dict[str, Callable[[], None]] = {}
        self._unsure = UnsureLocks(lambda ledger: self.release(Claim(ledger, 0)))

    def lock(self, ledger_id: int) -> AbstractContextManager[bool]:
        return self._unsure.holding(ledger_id, self._take)

    def mark(self, ledger_id: int, missing: Collection[str], now_ms: int | None) -> None:
        key = numbered_key(MARKS, ledger_id)
        while True:
            item = self._store.get(key)
            known = None if item is None else formats.parse_mark(ledger_id, item.value)
            data = formats.mark_to_bytes(merge(known, ledger_id, missing, now_ms))
            try:
                self._store.put(key, data, None if item is None else item.version)
            except (KeyExists, KeyAbsent, VersionConflict):  # another process changed it, so read it again
                continue
            return

    def marked(self, ledger_id: int) -> Mark | None:
        item = self._store.get(numbered_key(MARKS, ledger_id))
        return None if item is None else formats.parse_mark(ledger_id, item.value)

    def marks(self) -> Iterator[list[Mark]]:
        for page in self.items(MARKS):
            yield [formats.parse_mark(ledger, item.value) for ledger, item in page]

    def claim(self, owner: str, random: Random, changed: Callable[[], None]) -> Claim | None:
        self._unsure.release_all()
        if not self._claimants:
            self._store.watch(self._touched)
        self._claimants[owner] = changed
        if not self.enabled():
            return None
        locked = {ledger for page in self.numbers(LOCKS) for ledger in page}
        for page in self.numbers(MARKS):
            free = [ledger for ledger in page if ledger not in locked]
            random.shuffle(free)
            for ledger in free:
                if not self._take(ledger, owner):
                    continue
                with ExitStack() as taken:
                    taken.callback(self.release, Claim(ledger, 0))
                    item = self._store.get(numbered_key(MARKS, ledger))  # whoever had the lock may have finished
                    if item is not None:
                        taken.pop_all()
                        return Claim(ledger, item.version)
        return None

    def finish(self, claim: Claim) -> bool:
        try:
            if not self.holds(claim):  # its next holder may have removed the mark, and it may have been set again
                return False
            self._store.delete(numbered_key(MARKS, claim.ledger), claim.version)
        except KeyAbsent:
            return True
        except VersionConflict:
            return False
        finally:
            self.release(claim)
        return True

    def release(self, claim: Claim) -> None:
        """Release the lock if it is ours, and not one that another worker took after our session had ended.

        If that fails, it is repeated before the next claim.
        """
        with self._unsure.releasing(claim.ledger):
            lock = self._lock_of(claim)
            if lock is not None:
                with suppress(KeyAbsent, VersionConflict):  # it has ended with its session
                    self._store.delete(numbered_key(LOCKS, claim.ledger), lock.version)

    def holds(self, claim: Claim) -> bool:
        return self._lock_of(claim) is not None

    def _lock_of(self, claim: Claim) -> Item | None:
        """Return the lock of a claim if it is ours."""
        item = self._store.get(numbered_key(LOCKS, claim.ledger))
        return item if item is not None and item.session == self._store.session() else None

    def holders(self) -> dict[int, str]:
        return {ledger: formats.parse_holder(item.value) for page in self.items(LOCKS) for ledger, item in page}

    def enabled(self) -> bool:
        return self._store.get(DISABLE) is None

    def enable(self, *, enabled: bool) -> None:
        if enabled:
            self._drop(DISABLE)
        else:
            with suppress(KeyExists):
                self._store.put(DISABLE, b"", None)

    def lost_bookie_delay_s(self) -> int | None:
        item = self._store.get(DELAY)
        return None if item is None else formats.parse_delay(item.value)

    def set_lost_bookie_delay_s(self, seconds: int, *, only_if_unset: bool = False) -> None:
        self._put(DELAY, str(seconds).encode(), replace=not only_if_unset)

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Subscription:
        def read(_watch: Watch[tuple[int | None, int]]) -> tuple[int | None, int]:
            item = self._store.get(DELAY)
            return (None, -1) if item is None else (formats.parse_delay(item.value), item.version)

        return self._watcher.add(read, lambda seen: listener(seen[0]), topic=DELAY)

    def last_check_ms(self, check: Check) -> int | None:
        item = self._store.get(SETTINGS + check.value)
        return None if item is None else formats.parse_check_time(item.value)

    def set_last_check_ms(self, check: Check, at_ms: int) -> None:
        self._put(SETTINGS + check.value, formats.check_time_to_bytes(at_ms), replace=True)

    def numbers(self, prefix: str) -> Iterator[list[int]]:
        """Yield the ledgers that have a key with this prefix, ascending, in pages."""
        for page in pages(self._store, prefix):
            yield [int(key.removeprefix(prefix)) for key in page]

    def items(self, prefix: str) -> Iterator[list[tuple[int, Item]]]:
        """Yield the same with what is stored."""
        for page in self.numbers(prefix):
            found = ((ledger, self._store.get(numbered_key(prefix, ledger))) for ledger in page)
            yield [(ledger, item) for ledger, item in found if item is not None]

    def _touched(self, key: str) -> None:
        if not key or key.startswith((MARKS, LOCKS, DISABLE)):
            for changed in list(self._claimants.values()):
                changed()

    def _take(self, ledger_id: int, owner: str) -> bool:
        try:
            with self._unsure.taking(ledger_id, refusals=(KeyExists,)):
                self._store.put(
                    numbered_key(LOCKS, ledger_id), formats.holder_to_bytes(owner), None, self._store.session()
                )
        except KeyExists:
            return False
        return True

    def _drop(self, key: str) -> None:
        with suppress(KeyAbsent):  # a lock ends with its session
            self._store.delete(key)

    def _put(self, key: str, value: bytes, *, replace: bool) -> None:
        while True:
            item = self._store.get(key)
            if item is not None and not replace:
                return
            try:
                self._store.put(key, value, None if item is None else item.version)
            except (KeyExists, KeyAbsent, VersionConflict):
                continue
            return


class KeyValueElection:
    """The election of one cluster."""

    def __init__(self, store: KeyValues, watcher: Watcher) -> None:
        self._store = store
        self._watcher = watcher

    def stand(self, bookie_id: str, listener: Callable[[bool], None]) -> Subscription:
        return _Candidate(self._store, self._watcher, bookie_id, listener)

    def auditor(self) -> str | None:
        for key in _votes(self._store):
            item = self._store.get(key)
            if item is not None:
                return formats.parse_vote(item.value)
        return None


class _Candidate:
    """One vote, made again under each new session."""

    def __init__(self, store: KeyValues, watcher: Watcher, bookie_id: str, listener: Callable[[bool], None]) -> None:
        self._store = store
        self._data = formats.vote_to_bytes(bookie_id)
        self._vote = ""
        self._watch = watcher.add(self._look, listener, topic=VOTES)

    def close(self) -> None:
        self._watch.close()
        if self._vote:
            with suppress(KeyAbsent):
                self._store.delete(self._vote)

    def _look(self, _watch: Watch[bool]) -> bool:
        """Return whether ours is the lowest vote. Watch thread."""
        while True:
            votes = _votes(self._store)
            if self._vote not in votes or not self._is_ours(self._vote):
                self._vote = next((vote for vote in votes if self._is_ours(vote)), "")
            if self._vote:
                return votes[0] == self._vote
            self._create()

    def _create(self) -> None:
        vote = numbered_key(VOTES, self._store.increment(NEXT_VOTE))
        self._store.put(vote, self._data, None, self._store.session())

    def _is_ours(self, vote: str) -> bool:
        """Return whether a vote is of our session, since the answer to our put may have been lost."""
        item = self._store.get(vote)
        return item is not None and item.session == self._store.session()


def _votes(store: KeyValues) -> list[str]:
    """Return the votes in ascending order."""
    return [key for page in pages(store, VOTES) for key in page]


def numbered_key(prefix: str, number: int) -> str:
    """Return the key of a ledger or of a vote."""
    return f"{prefix}{number:019d}"
