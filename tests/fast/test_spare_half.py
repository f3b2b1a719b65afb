"""Test a flushed half that readers still point into: it is not reused meanwhile, and its own flush does not wait."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bookie._fast.store.direct import Held
from tests.reference.storage import entry
from tests.storage.opened import MIB, Opened

BYTES = 5000


def add(one: Opened, ledger: int, ids: range) -> list[bytes]:
    """Store entries with different bytes, and return them."""
    entries = [entry(ledger, at, payload=bytes([ledger, at % 251]) * (BYTES // 2)) for at in ids]
    for data in entries:
        one.direct.add(data)
    assert one.direct.commit()
    return entries


def found(one: Opened, ledger: int, count: int) -> list[bytes]:
    """Return the entries from 0 on."""
    held: Held = one.direct.read(ledger, 0, count=count, size=MIB)
    try:
        assert held.status == "OK"
        return held.entries()
    finally:
        held.release()


@pytest.fixture
def one(tmp_path: Path, faulty: ModuleType) -> Iterator[Opened]:
    """Open storage on a disk with planned faults."""
    opened = Opened(tmp_path, files=faulty.FaultyFiles())
    yield opened
    faulty.clear()
    opened.crash()


def test_no_flush_of_it_waits_and_only_the_next_swap_does(one: Opened) -> None:
    """B21: flushes without new entries go on, and the swap of halves waits until the reader releases its response."""
    stored = add(one, 1, range(20))
    held = one.direct.read(1, 0, count=20, size=MIB)
    for _ in range(3):
        one.checkpoint()
    later = add(one, 2, range(20))
    swap = threading.Thread(target=one.checkpoint, daemon=True)
    swap.start()
    assert found(one, 2, 20) == later
    assert held.entries() == stored
    assert swap.is_alive()
    held.release()
    swap.join()
    assert (found(one, 1, 20), found(one, 2, 20)) == (stored, later)


def test_a_flush_tried_again_on_a_full_disk_beside_a_slow_reader(one: Opened, faulty: ModuleType) -> None:
    """B18, B21: entries that found no space are flushed at the next try, and the halves are swapped only when the
    reader has released its response. Entries that were added meanwhile are not lost, and the reader's bytes do not
    change.
    """
    stored = add(one, 1, range(20))
    held = one.direct.read(1, 0, count=20, size=MIB)
    faulty.plan("pwritev", "ENOSPC", suffix=".log", times=-1)
    with pytest.raises(OSError, match="no space"):
        one.checkpoint()
    faulty.clear()
    later = add(one, 2, range(20))
    again = threading.Thread(target=one.checkpoint, daemon=True)
    again.start()
    while one.storage.stats()["flushes"] == 0:
        assert again.is_alive()
    more = add(one, 3, range(20))
    assert held.entries() == stored
    assert (found(one, 2, 20), found(one, 3, 20)) == (later, more)
    assert again.is_alive()
    held.release()
    again.join()
    assert one.direct.pins()["halves"] == 0
    one.checkpoint()
    assert [found(one, ledger, 20) for ledger in (1, 2, 3)] == [stored, later, more]
