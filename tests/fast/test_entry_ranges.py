"""Test module store.entry_ranges: which entries of a ledger are stored, whether in memory, on disk or both."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.store.entry_ranges import entry_ranges
from bookie._fast.store.storage import StorageEngine
from tests.fixtures.draws import examples
from tests.reference.entry_ranges import maximal_ranges
from tests.reference.storage import entry
from tests.storage.opened import Opened


def stores(opened: Opened) -> StorageEngine:
    """Return the compiled storage engine under the facade."""
    assert opened.storage.stores is not None
    return opened.storage.stores


@settings(max_examples=examples(12))
@given(st.lists(st.tuples(st.sampled_from([3, 4]), st.integers(0, 60), st.booleans()), max_size=120))
def test_ranges_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, adds: list[tuple[int, int, bool]]
) -> None:
    """Adds in any order, some of them repeated, with checkpoints in between, give the model's maximal ranges."""
    opened = Opened(tmp_path_factory.mktemp("ranges"), ledger_dirs=2)
    model: dict[int, set[int]] = {}
    for ledger, number, flush in adds:
        opened.direct.add(entry(ledger, number), b"k" * 20)
        model.setdefault(ledger, set()).add(number)
        if flush and number % 8 == 0:
            opened.direct.commit()
            opened.checkpoint()
        assert entry_ranges(stores(opened), ledger) == maximal_ranges(model[ledger])
    opened.direct.commit()
    opened.checkpoint()
    for ledger in (3, 4):
        expected = maximal_ranges(model[ledger]) if ledger in model else None
        assert entry_ranges(stores(opened), ledger) == expected
    opened.stop()


def test_a_ledger_that_is_known_but_empty(tmp_path: Path) -> None:
    """A ledger that only has a fence is known and empty, and other ledgers are unknown."""
    opened = Opened(tmp_path)
    opened.direct.fence(9, b"k" * 20)
    assert entry_ranges(stores(opened), 9) == []
    assert entry_ranges(stores(opened), 10) is None
    opened.stop()


def test_a_long_ledger_is_a_few_ranges(tmp_path: Path) -> None:
    """Ranges do not depend on the ends of runs: only a gap splits a long ledger in two."""
    opened = Opened(tmp_path)
    for number in range(5000):
        if number != 4000:
            opened.direct.add(entry(1, number), b"k" * 20)
        if number == 2500:
            opened.direct.commit()
            opened.checkpoint()
    assert entry_ranges(stores(opened), 1) == [(0, 3999), (4001, 4999)]
    opened.stop()
