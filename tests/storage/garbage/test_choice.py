"""The choice of entry logs to compact, and their order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bookie.storage.garbage.choice import LogUse


def use(*rows: tuple[int, int, int]) -> LogUse:
    """Return usage from rows of (log id, bytes, live)."""
    ids, sizes, live = zip(*rows, strict=True) if rows else ((), (), ())
    return LogUse(np.array(ids, np.int64), np.array(sizes, np.int64), np.array(live, np.int64))


def test_emptiest_first_by_tenths() -> None:
    """Within a tenth the oldest comes first; dead logs and full ones are not compacted."""
    logs = use((1, 100, 55), (2, 100, 5), (3, 100, 0), (4, 100, 100), (5, 100, 9), (6, 100, 80), (7, 100, 51))
    assert logs.below(0.8) == [2, 5, 1, 7]
    assert logs.below(0.2) == [2, 5]
    assert logs.dead() == [3]
    assert logs.buckets() == [3, 0, 0, 0, 0, 2, 0, 0, 1, 1]
    assert use().below(0.8) == use().dead() == []


def test_a_small_log_judged_as_a_full_one() -> None:
    """useTargetEntryLogSizeForGc: a log of a tenth of the full size is worth compacting, however full it is."""
    assert use((1, 100, 100), (2, 1000, 900)).below(0.5, full_bytes=1000) == [1]


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)), max_size=30), st.floats(0.01, 1))
def test_whatever_is_chosen_is_below_the_threshold(rows: list[tuple[int, int]], threshold: float) -> None:
    """Each log is chosen once, has live entries, is below the threshold, and emptier tenths come before fuller ones."""
    logs = use(*((at, size, live) for at, (size, live) in enumerate(rows)))
    chosen = logs.below(threshold)
    assert sorted(chosen) == sorted(set(chosen))
    shares = logs.usage()
    assert all(0 < shares[at] < threshold for at in chosen)
    tenths = [int(shares[at] * 10) for at in chosen]
    assert tenths == sorted(tenths)
    assert sum(logs.buckets()) == len(rows)
