"""Test that an index whose runs form no chain yet is upgraded when it is opened."""

import itertools
import random
from pathlib import Path

import lmdb
import pytest

from bookie._fast.index.view import Index, Reader
from bookie.storage.tools.verify_index import table_values, verify_index
from tests.reference import location_index as model

BEYOND_ONE_VALUE = 630
"""The number of one-byte slots that fitted a value of version 1, and does not fit one of version 2."""


def runs_of_version_1() -> list[tuple[int, int, int, int, list[int]]]:
    """Return runs of several ledgers, some of which need values of the largest size."""
    numbers = random.Random(7)
    runs = []
    for ledger in (0, 1, 5, 1000, 2**62):
        first = numbers.randrange(5)
        for _ in range(numbers.randrange(1, 60)):
            count = numbers.choice([1, 5, 300, BEYOND_ONE_VALUE])
            lengths = [numbers.choice([0, *range(100, 300)]) for _ in range(count)]
            lengths[0] = lengths[-1] = 100
            runs.append((ledger, first, numbers.randrange(9), numbers.randrange(1 << 30), lengths))
            first += count + numbers.randrange(3)
    return runs


def write_version_1(directory: Path, runs: list[tuple[int, int, int, int, list[int]]], upgraded: int = 0) -> None:
    """Write version 1 as the previous release did. `upgraded` is how many runs a killed process had upgraded."""
    with lmdb.open(str(directory), max_dbs=4) as environment:
        for name in (b"ledgers", b"fences"):
            environment.open_db(name)
        table = environment.open_db(b"locations")
        with environment.begin(table, write=True) as transaction:
            for run in runs:
                transaction.put(*model.pack_unchained(*run))
            for run, following in itertools.pairwise(runs[: upgraded + 1]):
                for key, value in model.pack_whole(*run, next_run=following[:2]):
                    transaction.put(key, value)


def entries(runs: list[tuple[int, int, int, int, list[int]]]) -> model.Model:
    """Return the entries of runs."""
    found = model.Model()
    for run in runs:
        found.put_run(*run)
    return found


def stored_entries(reader: Reader, ledgers: set[int]) -> model.Model:
    """Return the entries of ledgers in an index."""
    found = model.Model()
    for run in (run for ledger in ledgers for run in reader.runs(ledger)):
        found.put_run(*run)
    return found


@pytest.mark.parametrize("upgraded", [0, 1, 50])
def test_an_index_of_version_1_is_upgraded_when_it_is_opened(tmp_path: Path, upgraded: int) -> None:
    """Every entry is found, and missing ones are proven missing, even if a process was killed during the upgrade."""
    runs = runs_of_version_1()
    write_version_1(tmp_path, runs, upgraded)
    index = Index.open(tmp_path)
    expected = entries(runs)
    assert stored_entries(index.reader(), {run[0] for run in runs}) == expected
    assert verify_index(tmp_path).problems == ()
    assert table_values(tmp_path, b"locations")[0][0][0] == b"\0"
    for ledger, first in [(0, 0), (1, 10**9), (999, 5), (2**62 + 1, 0)]:
        assert (index.reader().lookup(ledger, first) is None) == ((ledger, first) not in expected.entries)
    index.begin()
    index.put_run(1, 10**9, 1, 1024, [5])
    index.commit()
    index.close()
    assert verify_index(tmp_path).problems == ()


def test_damage_of_version_1_stays_what_it_is(tmp_path: Path) -> None:
    """A damaged value is an error of look-ups that need it, before the upgrade and after it."""
    runs = [(1, first, 1, 1024, [100] * 10) for first in (0, 10, 20)]
    write_version_1(tmp_path, runs)
    with lmdb.open(str(tmp_path), max_dbs=4) as environment:
        table = environment.open_db(b"locations")
        with environment.begin(table, write=True) as transaction:
            key, value = model.pack_unchained(*runs[1])
            transaction.put(key, value[:8] + bytes([value[8] ^ 1]) + value[9:])
    for _ in range(2):
        index = Index.open(tmp_path)
        reader = index.reader()
        assert reader.lookup(1, 5)
        assert reader.lookup(1, 25)
        assert reader.lookup(1, 30) is None
        with pytest.raises(ValueError, match="fails its checksum"):
            reader.lookup(1, 15)
        index.close()
