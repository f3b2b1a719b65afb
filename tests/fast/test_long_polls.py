"""Test waiting for a higher LAC (server.long_polls, store.notices) against a dictionary, on stores that are written."""

import tempfile
import threading
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bookie._fast.server.long_polls import LongPolls
from tests.fixtures.draws import examples
from tests.reference.long_polls import Ledger, Polls
from tests.reference.storage import entry, lac_packet
from tests.storage.opened import Opened

WAITING_MAX = 12
PER_OWNER_MAX = 6
IDS = [0, 1, 2, 64, 2**40]
LEDGERS = st.sampled_from(IDS)
OWNERS = st.integers(0, 3)


def polls_on(one: Opened) -> LongPolls:
    """Return the polls of one more loop."""
    assert one.storage.stores is not None
    return LongPolls(one.storage.stores, waiting_max=WAITING_MAX, per_owner_max=PER_OWNER_MAX)


class Waits(RuleBasedStateMachine):
    """Polls of four connections on five ledgers agree with the model. The rules let time pass."""

    @initialize()
    def start(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="polls-")
        self.opened = Opened(Path(self.directory.name))
        self.polls = polls_on(self.opened)
        self.model = Polls(WAITING_MAX, PER_OWNER_MAX)
        self.now_ms = 1000
        self.number = 0

    @rule(
        owner=OWNERS,
        ledger=LEDGERS,
        previous_lac=st.integers(-1, 6),
        timeout_ms=st.sampled_from([-1, 0, 1, 9, 50, 51, 3_000, 2**62]),
        count=st.integers(1, 4),
    )
    def wait(self, owner: int, ledger: int, previous_lac: int, timeout_ms: int, count: int) -> None:
        """Begin some equal polls."""
        for _ in range(count):
            self.number += 1
            wait = (owner, self.number, ledger, previous_lac, timeout_ms, self.now_ms)
            asked = self.polls.wait(*wait)
            expected = self.model.wait(*wait)
            assert asked == expected

    @rule(ledger=LEDGERS, lac=st.integers(-1, 8))
    def add(self, ledger: int, lac: int) -> None:
        """Add an entry with this LAC. A LAC lower than before changes nothing."""
        self.opened.direct.add(entry(ledger, lac + 1, lac), recovery=True)
        known = self.model.ledgers.setdefault(ledger, Ledger())
        known.lac = max(known.lac, lac)

    @rule(ledger=LEDGERS)
    def fence(self, ledger: int) -> None:
        """Fence the ledger, which ends its polls. A second fence is no event."""
        fenced = self.opened.direct.ledger(ledger)
        self.opened.direct.fence(ledger)
        known = self.model.ledgers.setdefault(ledger, Ledger())
        known.events += fenced is None or not fenced.fenced

    @rule(ledger=LEDGERS, lac=st.integers(-1, 8))
    def write_lac(self, ledger: int, lac: int) -> None:
        """Write an explicit LAC, which ends all polls of the ledger, whatever it is."""
        self.opened.direct.write_lac(lac_packet(ledger, lac))
        known = self.model.ledgers.setdefault(ledger, Ledger())
        known.lac = max(known.lac, lac)
        known.events += 1

    @rule(owner=OWNERS)
    def close(self, owner: int) -> None:
        """Close a connection, with all its polls."""
        assert self.polls.cancel(owner) == self.model.cancel(owner)

    @rule(later_ms=st.sampled_from([0, 1, 9, 10, 60, 4_000]))
    def take(self, later_ms: int) -> None:
        """Run one round of the loop."""
        self.now_ms += later_ms
        assert self.polls.take(self.now_ms) == self.model.take(self.now_ms)

    @rule()
    def stop(self) -> None:
        """End all polls."""
        assert self.polls.take(-1) == self.model.take(-1)

    @invariant()
    def sizes(self) -> None:
        """The tables contain exactly the waiting polls, and empty tables need no memory."""
        if not hasattr(self, "polls"):
            return
        state = self.polls.state()
        assert state["waiting"] == len(self.model.polls)
        assert state["heap"] == len(self.model.polls)
        assert state["ledgers"] == len({poll.ledger for poll in self.model.polls.values()})
        if not self.model.polls:
            assert state["buckets"] == state["heap_room"] == 0

    @invariant()
    def sleep(self) -> None:
        """A loop sleeps until the nearest deadline, but at most an hour."""
        if hasattr(self, "polls"):
            nearest = self.model.nearest_ms()
            left = -1 if nearest is None else min(max(nearest - self.now_ms, 0), 3_600_000)
            assert self.polls.timeout_ms(self.now_ms) == left

    def teardown(self) -> None:
        """Close the storage first, because it wakes the loops."""
        if hasattr(self, "polls"):
            self.opened.crash()
            self.polls.close()
            self.directory.cleanup()


TestWaits = Waits.TestCase
TestWaits.settings = settings(
    max_examples=examples(25), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_more_changes_than_notices(tmp_path: Path) -> None:
    """If a loop misses more changes than can be listed, it looks at all polls and finds the changed ones."""
    one = Opened(tmp_path)
    polls = polls_on(one)
    for ledger in range(5):
        one.direct.add(entry(ledger, 0))
    for lac in range(400):
        for ledger in range(5):
            assert polls.wait(0, ledger, ledger, lac - 1, 1000, 0) == "PENDING"
            one.direct.add(entry(ledger, lac + 1, lac))
        assert polls.cancel(0) == 5
    for ledger in range(5):
        assert polls.wait(0, ledger, ledger, 399, 1000, 0) == "PENDING"
    one.direct.add(entry(3, 401, 400))
    one.direct.fence(1)
    assert polls.take(0) == [(1, False), (3, True)]
    assert polls.state()["waiting"] == 3
    one.crash()
    polls.close()


def test_a_rise_behind_another_change_tells_its_time(tmp_path: Path) -> None:
    """A fence has woken the loop already. If the LAC rises before the loop looks, the poll has the time of the rise."""
    one = Opened(tmp_path)
    polls = polls_on(one)
    one.direct.add(entry(3, 0))
    assert polls.wait(0, 0, 3, 0, 1000, 0) == "PENDING"
    one.direct.fence(3)
    one.direct.add(entry(3, 2, 1), recovery=True)
    assert polls.take(0) == [(0, True)]
    one.crash()
    polls.close()


def test_no_change_is_missed(tmp_path: Path) -> None:
    """Two threads write while a third polls for each LAC in turn: no change is missed, and no poll times out."""
    one = Opened(tmp_path)
    polls = polls_on(one)
    for ledger in range(2):
        one.direct.add(entry(ledger, 0))
    lasts = 2000

    def write(ledger: int) -> None:
        user = one.user()
        for at in range(lasts):
            user.add(entry(ledger, at + 1, at))
        user.close()

    writers = [threading.Thread(target=write, args=(ledger,)) for ledger in range(2)]
    for writer in writers:
        writer.start()
    seen = [-1, -1]
    while min(seen) < lasts - 1:
        for ledger in range(2):
            if seen[ledger] < lasts - 1:
                begun = polls.wait(ledger, ledger, ledger, seen[ledger], 1000, 0)
                while begun == "PENDING" and polls.take(0) != [(ledger, True)]:
                    pass
                known = one.direct.ledger(ledger)
                assert known is not None
                assert known.lac > seen[ledger]
                seen[ledger] = known.lac
    for writer in writers:
        writer.join()
    assert polls.state()["waiting"] == 0
    one.crash()
    polls.close()


def test_a_ledger_of_an_earlier_process_is_not_waited_for(tmp_path: Path) -> None:
    """After a restart, the LAC must be read from the last entry on disk before a poll may wait."""
    one = Opened(tmp_path)
    one.direct.add(entry(3, 0, -1))
    one.direct.add(entry(3, 1, 0))
    one.stop()
    again = Opened(tmp_path)
    polls = polls_on(again)
    assert polls.wait(0, 0, 3, -1, 1000, 0) == "NEED_MORE"
    again.crash()
    polls.close()


def test_the_size_of_a_poll(tmp_path: Path) -> None:
    """A poll takes less memory than the budget counts for it."""
    one = Opened(tmp_path)
    polls = polls_on(one)
    assert polls.state()["poll_bytes"] <= 512
    one.crash()
    polls.close()
