"""Which ledgers are deleted, on ids alone (B12): a listing counts only if it is complete and ascending."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.storage.garbage.decision import GUARD_LEDGERS_MIN, ListingBroken, candidates, too_many, whole_listing

IDS = st.sets(st.integers(0, 60) | st.integers(0, (1 << 63) - 1)).map(sorted)


@given(IDS, st.lists(st.integers(0, 40)))
def test_a_listing_in_any_pieces_is_one_listing(ids: list[int], cuts: list[int]) -> None:
    """Empty pieces and cuts anywhere change nothing."""
    edges = [0, *sorted(cut for cut in cuts if cut <= len(ids)), len(ids)]
    pieces = [ids[a:b] for a, b in pairwise(edges)]
    assert whole_listing(pieces).tolist() == ids


@pytest.mark.parametrize(
    "pieces",
    [
        [[1, 2], [2, 3]],
        [[1, 3, 2]],
        [[5], [4]],
        [[1, 1]],
        [[-1, 4]],
        [[1 << 63]],
        [["x"]],
    ],
)
def test_b12_a_listing_that_does_not_ascend_is_not_believed(pieces: list[list[int]]) -> None:
    """Repeated and descending ids, within a piece or between two, and values that are not ledger ids are refused."""
    with pytest.raises(ListingBroken):
        whole_listing(pieces)


@given(IDS, IDS)
def test_candidates_are_the_difference(local: list[int], listed: list[int]) -> None:
    """Candidates are a set difference, on sorted arrays."""
    found = candidates(np.array(local, np.int64), np.array(listed, np.int64))
    assert found.tolist() == sorted(set(local) - set(listed))


def test_b12_a_share_that_is_too_large_is_refused() -> None:
    """Above the share nothing is deleted; a handful always may be; a share of 1 allows everything."""
    assert too_many(51, 100, 0.5)
    assert not too_many(50, 100, 0.5)
    assert not too_many(GUARD_LEDGERS_MIN - 1, GUARD_LEDGERS_MIN - 1, 0.0)
    assert too_many(GUARD_LEDGERS_MIN, 1 << 20, 0.0)
    assert not too_many(1 << 20, 1 << 20, 1.0)
