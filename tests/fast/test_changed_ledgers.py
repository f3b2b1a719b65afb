"""Test how records of changed ledgers get into the index (store.changed_ledgers): adds continue meanwhile, and none of
their changes is lost, even if the transaction fails.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie._fast.base import crash_steps
from tests.reference.storage import entry, lac_packet
from tests.storage.opened import Opened

STEP_LEDGER_PUT = 51
KEY = b"k" * 20
SHARDS = 64


def shard(ledger: int) -> int:
    """Return the shard of a ledger, as `shard_of` does."""
    return (ledger * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 58


def neighbours(ledger: int, count: int) -> list[int]:
    """Return other ledgers of the same shard."""
    found = [other for other in range(1, 200 * count) if other != ledger and shard(other) == shard(ledger)]
    return found[:count]


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Opened]:
    """Open storage, and release threads that are held at a step after the test."""
    opened = Opened(tmp_path)
    yield opened
    crash_steps.hold_at_step(0)
    opened.crash()


def held_flush(one: Opened) -> threading.Thread:
    """Start a checkpoint that stops between two records of its transaction."""
    crash_steps.hold_at_step(STEP_LEDGER_PUT)
    flush = threading.Thread(target=one.checkpoint)
    flush.start()
    assert crash_steps.wait_held(60)
    return flush


def go_on(flush: threading.Thread) -> None:
    crash_steps.hold_at_step(0)
    flush.join()


def add_within(one: Opened, ledger: int, at: int, seconds: float) -> bool:
    """Return whether an add by another thread ends while the flush is held, and is durable."""
    user = one.user()
    done: list[bool] = []

    def add() -> None:
        user.add(entry(ledger, at, payload=b"beside"), KEY)
        done.append(user.commit())

    thread = threading.Thread(target=add, daemon=True)
    thread.start()
    thread.join(seconds)
    if done:
        user.close()
    return done == [True]


def test_an_add_does_not_wait_for_puts_of_its_shard(one: Opened) -> None:
    """A put of a record may wait for the disk. Ledgers of its shard can be written, created and fenced meanwhile."""
    there, *others, fresh = neighbours(0, 5)
    for ledger in (there, *others):
        one.direct.add(entry(ledger, 0), KEY)
    flush = held_flush(one)
    try:
        assert add_within(one, there, 1, 30)
        assert add_within(one, fresh, 0, 30)
        one.direct.fence(others[0], KEY)
    finally:
        go_on(flush)


def test_a_change_between_copy_and_commit_is_in_the_next_flush(one: Opened) -> None:
    """A record that was copied before a fence is written without it, and the next flush writes it with the fence."""
    ledgers = neighbours(0, 3)
    for ledger in ledgers:
        one.direct.add(entry(ledger, 0), KEY)
    flush = held_flush(one)
    try:
        for ledger in ledgers:
            one.direct.fence(ledger, KEY)
            one.direct.write_lac(lac_packet(ledger, 7), KEY)
    finally:
        go_on(flush)
    states = [one.direct.ledger(ledger) for ledger in ledgers]
    assert all(state is not None and state.dirty for state in states)
    one.checkpoint()
    assert not any(state.dirty for state in map(one.direct.ledger, ledgers) if state is not None)


def test_many_ledgers_of_a_shard(one: Opened, tmp_path: Path) -> None:
    """With more ledgers than are copied at a time, some with long LACs, all records are there after the next start."""
    ledgers = neighbours(0, 200)
    for ledger in ledgers:
        one.direct.add(entry(ledger, 0), KEY)
        if ledger % 3 == 0:
            one.direct.write_lac(lac_packet(ledger, 0) + bytes(20), KEY)
        if ledger % 2 == 0:
            one.direct.fence(ledger, KEY)
    assert one.direct.commit()
    one.checkpoint()
    one.crash()
    again = Opened(tmp_path)
    assert again.report.entries == 0
    for ledger in ledgers:
        state = again.direct.ledger(ledger)
        assert state is not None
        assert (state.key, state.fenced, state.explicit_lac is not None) == (KEY, ledger % 2 == 0, ledger % 3 == 0)
    again.stop()


def test_a_transaction_that_comes_to_nothing(tmp_path: Path) -> None:
    """After a transaction failed on a full map, a later one writes all records with their latest contents."""
    one = Opened(tmp_path, index_map_bytes=1 << 18)
    ledgers = neighbours(0, 4000)
    for ledger in ledgers:
        one.direct.write_lac(lac_packet(ledger, 0) + bytes(20), KEY)
        assert ledger % 50 or one.direct.commit()
    assert one.direct.commit()
    with pytest.raises(OSError, match="no space left"):
        one.checkpoint()
    assert all(state is not None and state.dirty for state in map(one.direct.ledger, ledgers))
    one.direct.fence(ledgers[0], KEY)
    assert one.direct.commit()
    for _ in range(3):
        try:
            one.checkpoint()
            break
        except OSError:
            continue
    assert not any(state.dirty for state in map(one.direct.ledger, ledgers) if state is not None)
    one.crash()
    again = Opened(tmp_path)
    fenced = again.direct.ledger(ledgers[0])
    assert fenced is not None
    assert fenced.fenced
    assert again.report.entries == 0
    again.stop()
