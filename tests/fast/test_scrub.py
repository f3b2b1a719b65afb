"""Test verdicts on records, and the records of a log in the index, for a store with known contents."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bookie._fast.store.gc.scrub import DELETED, DISAGREES, ELSEWHERE, LIVE, ORPHAN, Scrubber
from tests.reference.entry_log import HEADER, entry
from tests.storage.opened import Opened

ENTRIES = 3000
BYTES = 4 + 16 + 10


@pytest.fixture
def scrubber(tmp_path: Path) -> Iterator[Scrubber]:
    store = Opened(tmp_path)
    for number in range(ENTRIES):
        store.direct.add(entry(1, number, b"0123456789"))
    store.direct.fence(2)
    assert store.direct.commit()
    store.checkpoint()
    (found,) = store.storage.scrubbers()
    yield found
    store.stop()


def test_verdicts(scrubber: Scrubber) -> None:
    """Each verdict is given, for records at their place or elsewhere, and for unknown ledgers and entries."""
    rows = [
        (1, 0, HEADER, BYTES - 4, LIVE),
        (1, 0, HEADER, BYTES, DISAGREES),
        (1, 1, HEADER, BYTES - 4, ELSEWHERE),
        (1, ENTRIES, HEADER, BYTES - 4, ORPHAN),
        (2, 0, HEADER, BYTES - 4, ORPHAN),
        (3, 0, HEADER, BYTES - 4, DELETED),
    ]
    ledger, number, offset, length, wanted = (np.array(column) for column in zip(*rows, strict=True))
    log_id = next(iter(scrubber.live_bytes()))
    assert scrubber.judge(log_id, ledger, number, offset, length).tolist() == wanted.tolist()
    assert scrubber.judge(log_id + 1, ledger, number, offset, length).tolist()[0] == ELSEWHERE


def test_what_the_index_has_of_a_log(scrubber: Scrubber) -> None:
    """The bytes of a log are right, and its records are listed by offset, for a range of offsets or up to a number."""
    ((log_id, live),) = scrubber.live_bytes().items()
    assert live == ENTRIES * BYTES
    assert scrubber.is_open(log_id)
    whole = scrubber.pointed(log_id)
    assert (whole.entry.tolist(), whole.more) == (list(range(ENTRIES)), False)
    assert whole.offset.tolist() == [HEADER + BYTES * number for number in range(ENTRIES)]
    part = scrubber.pointed(log_id, HEADER + 10 * BYTES + 1, HEADER + 20 * BYTES)
    assert part.entry.tolist() == list(range(11, 20))
    few = scrubber.pointed(log_id, most=7)
    assert (len(few.entry), few.more) == (7, True)
    assert len(scrubber.pointed(log_id + 1).entry) == 0
