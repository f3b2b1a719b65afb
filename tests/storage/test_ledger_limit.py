"""The limit on ledgers (store.ledger_counts): new ledgers beyond it are refused, and existing ones not affected."""

import logging
from pathlib import Path

import pytest

from bookie._fast.store.direct import Refused
from bookie._fast.store.ledger_table import LEDGER_BYTES
from tests.reference.storage import entry
from tests.storage.collecting import KEY, Collecting

MOST = 40
MORE = MOST // 8


def add(one: Collecting, ledger: int, at: int = 0, *, recovery: bool = False) -> str:
    """Return the answer to an add."""
    data = entry(ledger, at)
    try:
        one.one.direct.add(data, KEY, recovery=recovery)
    except Refused as refused:
        return refused.status
    one.model.add(data, KEY, recovery=recovery)
    return "OK"


def full(root: Path) -> Collecting:
    """Create as many ledgers as the limit allows."""
    one = Collecting(root, ledgers_max=MOST)
    assert {add(one, ledger) for ledger in range(MOST)} == {"OK"}
    return one


def test_a_new_ledger_beyond_the_limit_is_refused_and_a_known_one_is_not(tmp_path: Path) -> None:
    """Its writer chooses another bookie, as for a read-only one, and deleting ledgers makes room again."""
    one = full(tmp_path)
    assert add(one, MOST) == "READ_ONLY"
    assert one.one.direct.ledger(MOST) is None
    assert add(one, 0, 1) == "OK"
    one.one.direct.fence(0, KEY)
    one.model.fence(0, KEY)
    assert one.one.direct.commit()
    assert one.delete(5) == 1
    assert add(one, MOST) == "OK"
    assert add(one, MOST + 1) == "READ_ONLY"
    one.check()
    one.one.stop()


def test_recoveries_and_fences_may_bring_an_eighth_more(tmp_path: Path) -> None:
    """A cluster that lost bookies must copy somewhere, and even that is bounded."""
    one = full(tmp_path)
    assert {add(one, 100 + i, recovery=True) for i in range(MORE - 1)} == {"OK"}
    one.one.direct.fence(200, KEY)
    one.model.fence(200, KEY)
    assert add(one, 201, recovery=True) == "READ_ONLY"
    with pytest.raises(Refused, match="READ_ONLY"):
        one.one.direct.fence(201, KEY)
    assert one.one.direct.commit()
    one.one.stop()


@pytest.mark.parametrize("crash", [False, True])
def test_what_was_taken_before_is_held_whatever_the_limit_is_now(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, crash: bool
) -> None:
    """Ledgers from the index and the journal, which is replayed before the limit applies, are kept, as the log says."""
    one = full(tmp_path)
    assert one.one.direct.commit()
    one.settings["ledgers_max"] = 10
    with caplog.at_level(logging.WARNING):
        one.restart(crash=crash)
    assert "there are more ledgers than dbStorage_maxLedgers" in caplog.text
    one.check()
    assert add(one, 7, 1) == "OK"
    assert add(one, MOST) == "READ_ONLY"
    one.one.stop()


def test_b8_fenced_ledgers_are_not_deleted_before_their_fences_can_be_kept(tmp_path: Path) -> None:
    """The oldest fences are not dropped in their favour, because a forgotten fence would let a fenced writer in."""
    one = Collecting(tmp_path, ledgers_max=MOST)
    ledgers = range(MOST)
    for round_ in (0, 1):
        mine = [round_ * MOST + ledger for ledger in ledgers]
        assert {add(one, ledger) for ledger in mine} == {"OK"}
        for ledger in mine[: 3 * MOST // 4]:
            one.one.direct.fence(ledger, KEY)
        assert one.one.direct.commit()
        one.one.checkpoint()
        gone = one.collector.delete_ledgers(mine)
        assert gone == (MOST if round_ == 0 else MOST // 2)
    stats = one.one.storage.stats()
    assert (stats["kept_fences"], stats["ledgers"]) == (MOST, MOST // 2)
    for ledger in (*range(3 * MOST // 4), *range(MOST, MOST + 3 * MOST // 4)):
        assert add(one, ledger, 1) == "FENCED"
    assert one.collector.drop_fences(0) == MOST
    assert one.collector.delete_ledgers(range(MOST, 2 * MOST)) == MOST // 2
    one.one.stop()


def test_the_budget_counts_the_ledgers(tmp_path: Path) -> None:
    """The budget counts the largest number of ledgers allowed."""
    one = Collecting(tmp_path, ledgers_max=MOST)
    assert one.one.storage.memory_budget()["ledger_table"] == MOST * LEDGER_BYTES
    one.one.stop()
