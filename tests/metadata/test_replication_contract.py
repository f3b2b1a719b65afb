"""Marks, locks and the election: what every metadata store must do (`bookie.metadata.driver.Replication`)."""

import sys
import threading
from random import Random
from typing import Any

import pytest

from bookie.errors import MetadataStoreError
from bookie.metadata.etcd.store import EtcdStore
from bookie.metadata.records.replication import Check, Claim, Mark
from tests.metadata.conftest import Cluster
from tests.metadata.seen import PATIENCE_S, Seen

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

LEDGERS = [0, 7, 65_535, 1_234_567_890, 123_456_789_012_345, (1 << 63) - 1]


def ignore() -> None:
    """Do nothing."""


def test_marks_are_merged(cluster: Cluster) -> None:
    """Bookies in an earlier mark stay in it; the time is that of the last change."""
    ours, theirs = cluster.connect(), cluster.connect()
    assert ours.replication.marked(7) is None
    ours.replication.mark(7, ["a:1"], 1000)
    theirs.replication.mark(7, ["b:1", "a:1"], 2000)
    ours.replication.mark(7, ["a:1"], 3000)
    assert theirs.replication.marked(7) == Mark(7, ("a:1", "b:1"), 2000)
    ours.replication.mark(8, [], None)
    assert theirs.replication.marked(8) == Mark(8, (), None)


def test_marks_of_many_at_once(cluster: Cluster) -> None:
    """No mark is lost if processes mark one ledger at the same time."""
    drivers = [cluster.connect() for _ in range(3)]
    start = threading.Barrier(len(drivers))

    def mark(number: int) -> None:
        start.wait()
        for k in range(5):
            drivers[number].replication.mark(7, [f"bookie-{number}-{k}:1"], 1)

    threads = [threading.Thread(target=mark, args=(number,)) for number in range(len(drivers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mark_found = drivers[0].replication.marked(7)
    assert mark_found is not None
    assert len(mark_found.missing) == 15


def test_marks_are_listed(cluster: Cluster) -> None:
    """Every marked ledger is listed, with ids of any length, and nothing else."""
    driver = cluster.connect()
    assert list(driver.replication.marks()) == []
    for ledger in LEDGERS:
        driver.replication.mark(ledger, ["a:1"], ledger)
    found = [mark for page in driver.replication.marks() for mark in page]
    assert sorted(mark.ledger for mark in found) == LEDGERS


def test_each_ledger_is_claimed_once(cluster: Cluster) -> None:
    """Claims of two processes never overlap; finished ledgers are gone, and released ones can be claimed again."""
    ours, theirs = cluster.connect(), cluster.connect()
    for ledger in LEDGERS:
        ours.replication.mark(ledger, ["a:1"], 1)
    random = Random(1)
    claims: list[Claim] = []
    for driver in (ours, theirs) * (len(LEDGERS) // 2):
        claim = driver.replication.claim(f"worker-{len(claims) % 2}", random, ignore)
        assert claim is not None
        claims.append(claim)
    assert sorted(claim.ledger for claim in claims) == LEDGERS
    assert ours.replication.claim("worker-0", random, ignore) is None
    held = ours.replication.holders()
    assert {held[claims[0].ledger], held[claims[1].ledger]} == {"worker-0", "worker-1"}

    ours.replication.release(claims[0])
    assert theirs.replication.claim("worker-1", random, ignore) == claims[0]
    assert theirs.replication.finish(claims[0])
    assert ours.replication.marked(claims[0].ledger) is None
    assert theirs.replication.claim("worker-1", random, ignore) is None
    assert len(ours.replication.holders()) == len(LEDGERS) - 1


def test_a_ledger_that_is_marked_anew_stays_marked(cluster: Cluster) -> None:
    """A mark is removed only if it has not changed since the ledger was claimed."""
    ours, auditor = cluster.connect(), cluster.connect()
    auditor.replication.mark(7, ["a:1"], 1)
    claim = ours.replication.claim("w", Random(1), ignore)
    assert claim is not None
    auditor.replication.mark(7, ["b:1"], 2)
    assert not ours.replication.finish(claim)
    assert ours.replication.marked(7) == Mark(7, ("a:1", "b:1"), 2)
    again = ours.replication.claim("w", Random(1), ignore)
    assert again is not None
    assert again.version > claim.version


def test_a_mark_that_the_same_bookie_sets_again_stays(cluster: Cluster) -> None:
    """A bookie may lose a replica again after the worker looked at it; the mark keeps its time, but not its version."""
    ours, auditor = cluster.connect(), cluster.connect()
    auditor.replication.mark(7, ["a:1"], 1)
    claim = ours.replication.claim("w", Random(1), ignore)
    assert claim is not None
    auditor.replication.mark(7, ["a:1"], 2)
    assert not ours.replication.finish(claim)
    assert ours.replication.marked(7) == Mark(7, ("a:1",), 1)
    again = ours.replication.claim("w", Random(1), ignore)
    assert again is not None
    assert ours.replication.finish(again)
    assert ours.replication.marked(7) is None


def test_who_lost_the_lock_removes_no_mark(cluster: Cluster) -> None:
    """A new mark has the version of the one that the lock's next holder finished, so the version is not enough."""
    ours, theirs = cluster.connect(), cluster.connect()
    theirs.replication.mark(7, ["a:1"], 1)
    late = ours.replication.claim("late", Random(1), ignore)
    assert late is not None
    ours.replication.release(late)
    next_one = theirs.replication.claim("next", Random(1), ignore)
    assert next_one is not None
    assert theirs.replication.finish(next_one)
    theirs.replication.mark(7, ["b:1"], 2)
    assert not ours.replication.finish(late)
    assert ours.replication.marked(7) == Mark(7, ("b:1",), 2)


def test_what_others_finished_meanwhile_is_not_claimed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim on a mark that is gone could later remove a new mark by the old version."""
    ours, theirs = cluster.connect(), cluster.connect()
    theirs.replication.mark(7, ["a:1"], 1)
    kind: Any = type(ours.replication)
    take = kind._take

    def late(self: object, ledger: int, owner: str) -> bool:
        if owner == "late":
            claim = theirs.replication.claim("w", Random(1), ignore)
            assert claim is not None
            assert theirs.replication.finish(claim)
        return bool(take(self, ledger, owner))

    monkeypatch.setattr(kind, "_take", late)
    assert ours.replication.claim("late", Random(1), ignore) is None
    assert ours.replication.holders() == {}


def test_a_claim_that_fails_leaves_no_lock(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store fails after the lock was taken, the ledger can be claimed again, by this session or another."""
    ours, theirs = cluster.connect(), cluster.connect()
    ours.replication.mark(7, ["a:1"], 1)
    replication: Any = ours.replication
    looked_up, name = (replication, "_stat") if hasattr(replication, "_stat") else (replication._store, "get")
    real = getattr(looked_up, name)

    def fails(_: str) -> Any:
        monkeypatch.setattr(looked_up, name, real)
        raise MetadataStoreError("no answer in time")

    take = replication._take

    def taken(ledger: int, owner: str) -> bool:
        ours_now = bool(take(ledger, owner))
        monkeypatch.setattr(looked_up, name, fails)
        return ours_now

    monkeypatch.setattr(replication, "_take", taken)
    with pytest.raises(MetadataStoreError, match="no answer in time"):
        ours.replication.claim("w", Random(1), ignore)
    assert theirs.replication.holders() == {}
    assert theirs.replication.claim("w", Random(1), ignore) is not None


def failing(replication: Any, monkeypatch: pytest.MonkeyPatch, name: str, *, done: bool) -> None:
    """Let the next change fail as if the store did not answer for a session timeout, after it was `done` or not."""
    zookeeper = hasattr(replication, "_session")
    store, name = (replication._session, "run") if zookeeper else (replication._store, name)
    real = getattr(store, name)

    def fails(*given: Any, **named: Any) -> None:
        monkeypatch.setattr(store, name, real)
        if done:
            real(*given, **named)
        raise MetadataStoreError("no answer in time")

    monkeypatch.setattr(store, name, fails)


def test_a_lock_whose_answer_never_came_is_released(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the lock would exist as long as the process, and the ledger would never be copied."""
    ours, theirs = cluster.connect(), cluster.connect()
    ours.replication.mark(7, ["a:1"], 1)
    failing(ours.replication, monkeypatch, "put", done=True)
    with pytest.raises(MetadataStoreError, match="no answer in time"):
        ours.replication.lock(7).__enter__()
    assert list(theirs.replication.holders()) == [7]
    assert theirs.replication.claim("w", Random(1), ignore) is None
    with ours.replication.lock(8):
        claim = theirs.replication.claim("w", Random(1), ignore)
    assert claim is not None
    assert theirs.replication.finish(claim)


def test_a_lock_that_could_not_be_released_goes_later(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that failed is repeated before the next claim."""
    ours, theirs = cluster.connect(), cluster.connect()
    ours.replication.mark(7, ["a:1"], 1)
    claim = ours.replication.claim("w", Random(1), ignore)
    assert claim is not None
    failing(ours.replication, monkeypatch, "delete", done=False)
    with pytest.raises(MetadataStoreError, match="no answer in time"):
        ours.replication.release(claim)
    assert list(theirs.replication.holders()) == [7]
    assert ours.replication.claim("w", Random(1), ignore) == claim
    assert ours.replication.finish(claim)
    assert theirs.replication.holders() == {}


def test_a_lock_that_was_taken_over_during_its_release_stays(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may end after it was seen to have the lock. The embedded store is not asked: there a new lock has the
    version of the old one.
    """
    ours, theirs = cluster.connect(), cluster.connect()
    replication: Any = ours.replication
    zookeeper = hasattr(replication, "_stat")
    if not zookeeper and not isinstance(replication._store, EtcdStore):
        pytest.skip("the embedded store has no unique versions")
    ours.replication.mark(7, ["a:1"], 1)
    claim = ours.replication.claim("late", Random(1), ignore)
    assert claim is not None
    looked_up, name = (replication, "_stat") if zookeeper else (replication._store, "get")
    real = getattr(looked_up, name)

    def taken_over(path: str) -> Any:
        monkeypatch.setattr(looked_up, name, real)
        seen = real(path)
        replication._drop(path)
        assert theirs.replication.claim("next", Random(1), ignore) == claim
        if zookeeper:
            monkeypatch.setattr(replication._session, "id", replication._session.id + 1)
        return seen

    monkeypatch.setattr(looked_up, name, taken_over)
    ours.replication.release(claim)
    assert theirs.replication.holders() == {7: "next"}


def test_a_claim_ends_with_its_session(cluster: Cluster) -> None:
    """The ledger of a worker that is gone can be claimed by others, which are notified."""
    ours, dead = cluster.connect(), cluster.connect()
    ours.replication.mark(7, ["a:1"], 1)
    assert dead.replication.claim("dead", Random(1), ignore) is not None
    reported = Seen()
    assert ours.replication.claim("alive", Random(1), reported) is None
    dead.stop()
    reported.wait_for(lambda _: True, "of the lock's end")
    claim = ours.replication.claim("alive", Random(1), ignore)
    assert claim is not None
    assert claim.ledger == 7


def test_who_waits_is_told_of_marks(cluster: Cluster) -> None:
    """A waiting worker is notified of marks anywhere in the tree; a lock of the garbage collector keeps workers off."""
    ours, auditor = cluster.connect(), cluster.connect()
    with auditor.replication.lock(7) as held:
        assert held
        auditor.replication.mark(7, ["a:1"], 1)
        for ledger in (8, 1 << 40):
            wake = threading.Event()
            assert ours.replication.claim("w", Random(1), wake.set) is None
            auditor.replication.mark(ledger, ["a:1"], 1)
            assert wake.wait(PATIENCE_S)
            claim = ours.replication.claim("w", Random(1), ignore)
            assert claim is not None
            assert claim.ledger == ledger


def test_replication_can_be_disabled(cluster: Cluster) -> None:
    """While disabled, ledgers are marked but cannot be claimed; waiting workers are notified when it is enabled."""
    ours, operator = cluster.connect(), cluster.connect()
    assert ours.replication.enabled()
    operator.replication.enable(enabled=False)
    operator.replication.enable(enabled=False)
    assert not ours.replication.enabled()
    ours.replication.mark(7, ["a:1"], 1)
    wake = threading.Event()
    assert ours.replication.claim("w", Random(1), wake.set) is None
    operator.replication.enable(enabled=True)
    operator.replication.enable(enabled=True)
    assert wake.wait(PATIENCE_S)
    assert ours.replication.claim("w", Random(1), ignore) is not None


def test_the_delay_of_lost_bookies(cluster: Cluster) -> None:
    """The first auditor sets it, later operators do; writing the same value again notifies the auditor, too."""
    ours, operator = cluster.connect(), cluster.connect()
    assert ours.replication.lost_bookie_delay_s() is None
    ours.replication.set_lost_bookie_delay_s(5, only_if_unset=True)
    operator.replication.set_lost_bookie_delay_s(9, only_if_unset=True)
    assert operator.replication.lost_bookie_delay_s() == 5
    seen = Seen()
    watch = ours.replication.watch_lost_bookie_delay(seen)
    seen.wait_equal(5)
    operator.replication.set_lost_bookie_delay_s(60)
    seen.wait_equal(60)
    reported = len(seen.values)
    operator.replication.set_lost_bookie_delay_s(60)
    seen.wait_for(lambda _: len(seen.values) > reported, "of the same value")
    watch.close()


@pytest.mark.parametrize("check", Check)
def test_the_time_of_a_check_is_kept(cluster: Cluster, check: Check) -> None:
    """It is kept for the next auditor, which may be another process."""
    ours, theirs = cluster.connect(), cluster.connect()
    assert ours.replication.last_check_ms(check) is None
    ours.replication.set_last_check_ms(check, 1_700_000_000_000)
    ours.replication.set_last_check_ms(check, 1_700_000_000_001)
    assert theirs.replication.last_check_ms(check) == 1_700_000_000_001


def test_one_auditor_is_elected(cluster: Cluster) -> None:
    """The first candidate is elected, and the next one when it leaves; one that withdrew is not."""
    bystander, first, second, third = (cluster.connect() for _ in range(4))
    assert bystander.election.auditor() is None
    reported = [Seen() for _ in range(3)]
    standing = []
    for driver, seen, name in zip((first, second, third), reported, ("a:1", "b:1", "c:1"), strict=True):
        standing.append(driver.election.stand(name, seen))
        seen.wait_for(lambda value: value is not None, "whether it is elected")
    assert [seen.values for seen in reported] == [[True], [False], [False]]
    assert third.election.auditor() == "a:1"
    standing[1].close()
    first.stop()
    reported[2].wait_equal(True)
    assert second.election.auditor() == "c:1"
    standing[2].close()
    assert second.election.auditor() is None


def test_a_vote_whose_answer_never_came_is_found(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vote exists under our session; a second one would wait behind it, and so would all others."""
    driver = cluster.connect()
    votes: Any = sys.modules[type(driver.election).__module__]
    create = votes._Candidate._create

    def unheard(self: object) -> None:
        monkeypatch.setattr(votes._Candidate, "_create", create)
        create(self)
        raise MetadataStoreError("no answer in time")

    monkeypatch.setattr(votes._Candidate, "_create", unheard)
    seen = Seen()
    candidacy = driver.election.stand("a:1", seen)
    seen.wait_equal(True)
    candidacy.close()
    assert driver.election.auditor() is None
