"""A flushed half that readers still point into: never used again under them, never waited for by its own flush."""

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
    """Store entries, each of its own bytes."""
    entries = [entry(ledger, at, payload=bytes([ledger, at % 251]) * (BYTES // 2)) for at in ids]
    for data in entries:
        one.direct.add(data)
    assert one.direct.commit()
    return entries


def found(one: Opened, ledger: int, count: int) -> list[bytes]:
    """All of them."""
    held: Held = one.direct.read(ledger, 0, count=count, size=MIB)
    try:
        assert held.status == "OK"
        return held.entries()
    finally:
        held.release()


@pytest.fixture
def one(tmp_path: Path, faulty: ModuleType) -> Iterator[Opened]:
    """Storage on a disk that fails as planned."""
    opened = Opened(tmp_path, files=faulty.FaultyFiles())
    yield opened
    faulty.clear()
    opened.crash()


def test_no_flush_of_it_waits_and_only_the_next_swap_does(one: Opened) -> None:
    """B21: flushes with nothing to add go on; the swap waits until the reader lets go."""
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
    """B18, B21: what found no space is flushed at the next try, and the halves do not change places before the reader
    has let go of it: nothing that was added meanwhile is lost, and the reader has the right bytes throughout.
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
