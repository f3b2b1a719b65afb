"""Test memory for items of one size (base.slabs)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base.slabs import Items


@given(st.lists(st.sampled_from(["take", "take", "take", "back", "clear"]), max_size=600))
def test_items_are_zeros_and_apart(steps: list[str]) -> None:
    """Each item is all zeros when it is taken, and no two of those in use share a byte."""
    items, used = Items(), list[int]()
    for step in steps:
        if step == "take":
            used.append(items.take())
        elif step == "back" and used:
            items.give_back(used.pop(len(used) // 2))
        elif step == "clear":
            items.clear()
            used.clear()
        ordered = sorted(used)
        assert all(after - before >= 48 for before, after in pairwise(ordered))
    assert set(used) <= set(items.names())


def test_what_was_given_back_is_taken_first() -> None:
    """A thousand items that come and go take the memory of one."""
    items = Items()
    kept = items.take()
    for _ in range(1000):
        items.give_back(items.take())
    assert len(items.names()) == 2
    assert kept in items.names()
