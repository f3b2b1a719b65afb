"""When a bookie counts as lost."""

from bookie.client.replication.lost_bookies import LostBookies

A, B, C = "a:1", "b:1", "c:1"


def test_a_bookie_that_returns_in_time_is_not_lost() -> None:
    """A restart within the delay moves nothing; each absence is timed from its own start."""
    lost = LostBookies()
    lost.look(frozenset({A, B}), 0)
    lost.look(frozenset({A}), 10)
    assert lost.due(60, 69) == frozenset()
    assert lost.next_due_s(60) == 70
    lost.look(frozenset({A, B}), 69)
    assert lost.due(60, 1000) == frozenset()
    assert not lost.waiting
    lost.look(frozenset({A}), 1000)
    assert lost.due(60, 1059) == frozenset()
    assert lost.due(60, 1060) == {B}
    lost.audited({B})
    assert lost.due(60, 2000) == frozenset()
    assert lost.missing == {B}


def test_op2_the_periodic_check_keeps_to_the_delay() -> None:
    """OP2 (bookkeeper#3817): a bookie that the check finds missing is timed from when it was first missed."""
    lost = LostBookies()
    lost.look(frozenset({A}), 0)
    lost.know({A, B})
    lost.look(frozenset({A}), 5)
    lost.know({A, B})
    assert lost.due(60, 64) == frozenset()
    assert lost.due(60, 65) == {B}


def test_bug_38_a_bookie_that_died_before_the_auditor_began() -> None:
    """bookkeeper#4419: bookies in ledger metadata are known, even if they were never seen registered."""
    lost = LostBookies()
    lost.look(frozenset({A}), 0)
    assert lost.due(0, 100) == frozenset()
    lost.know({A, B})
    lost.look(frozenset({A}), 100)
    assert lost.due(0, 100) == {B}


def test_several_at_a_time_have_the_whole_delay() -> None:
    """Each missing bookie has the delay, however many are missing; after an operator's request it has the grace."""
    lost = LostBookies(grace_s=10)
    lost.look(frozenset({A, B, C}), 0)
    lost.look(frozenset({A}), 1)
    lost.look(frozenset(), 2)
    assert lost.due(60, 60) == frozenset()
    assert lost.due(60, 61) == {B, C}
    assert lost.due(60, 62) == {A, B, C}
    lost.look(frozenset({B}), 3)
    lost.hurry()
    lost.look(frozenset(), 4)
    assert lost.due(60, 11) == {C}
    assert lost.due(60, 12) == {A, C}
    assert lost.next_due_s(60) == 11


def test_nobody_is_lost_within_the_grace() -> None:
    """A delay of 0 does not mean that a restart of the metadata store moves data: the sessions must begin again."""
    lost = LostBookies(grace_s=10)
    lost.look(frozenset({A, B}), 0)
    lost.look(frozenset({A}), 5)
    assert lost.due(0, 14) == frozenset()
    lost.interrupted(14)
    lost.look(frozenset(), 14)
    lost.hurry()
    assert lost.due(0, 23) == frozenset()
    assert lost.next_due_s(0) == 24
    lost.look(frozenset({B}), 23)
    assert lost.due(0, 24) == {A}


def test_a_periodic_check_marks_again() -> None:
    """Marks may have been lost, so bookies that are still missing are audited again."""
    lost = LostBookies()
    lost.look(frozenset({A, B}), 0)
    lost.look(frozenset({A}), 1)
    lost.audited(lost.due(0, 1))
    assert not lost.waiting
    lost.know({B})
    assert lost.due(0, 1) == {B}
