"""The list of a ledger's entries: upstream's bytes, its periods understood, anything else refused."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.availability import AvailableEntries, encode, encode_periodic
from tests.reference.entry_ranges import decode_entries, encode_entries, maximal_ranges

# Made by upstream's AvailabilityOfEntriesOfLedger from the ids 0, 1, 2, 5, 6, 8.
UPSTREAM = bytes.fromhex(
    "0000000000000003" + "00" * 56 + "000000000000000000000000000000000000000300000000"
    "000000000000000500000000000000050000000200000000" + "000000000000000800000000000000080000000100000000"
)
LAST = (1 << 63) - 1


def test_upstreams_bytes() -> None:
    """Both ways; no entries are the header alone."""
    ids = [0, 1, 2, 5, 6, 8]
    assert encode(maximal_ranges(ids)) == UPSTREAM == encode_entries(ids)
    available = AvailableEntries.decode(UPSTREAM)
    assert [entry for entry in range(-1, 11) if entry in available] == ids
    assert available.count() == 6
    assert encode([]) == bytes(64)
    assert AvailableEntries.decode(bytes(64)).count() == 0
    assert not AvailableEntries.decode(bytes(64)).mask(np.arange(3)).any()


@given(st.sets(st.integers(0, 200)))
def test_any_entries_go_there_and_back(entries: set[int]) -> None:
    """Membership and count are those of the set."""
    data = encode(maximal_ranges(entries))
    assert data == encode_entries(entries)
    available = AvailableEntries.decode(data)
    assert {entry for entry in range(-2, 205) if entry in available} == entries
    assert available.count() == len(entries)


@given(
    st.lists(
        st.tuples(st.integers(1, 20), st.integers(1, 4), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=5
    )
)
def test_periods_are_understood(parts: list[tuple[int, int, int, int]]) -> None:
    """Groups of several runs, as the format allows though nobody writes them."""
    groups, at = [], 0
    for gap, size, extra, times in parts:
        first, period = at + gap, size + extra if times > 1 else 0
        last = first + (times - 1) * period
        groups.append(struct.pack(">qqii", first, last, size, period))
        at = last + size
    data = struct.pack(">ii56x", 0, len(groups)) + b"".join(groups)
    available = AvailableEntries.decode(data)
    expected = decode_entries(data)
    assert {entry for entry in range(at + 10) if entry in available} == expected
    ids = np.arange(-2, at + 10)
    assert set(ids[available.mask(ids)].tolist()) == expected
    for entry in range(-2, at + 10):
        assert available.next_from(entry) == min((one for one in expected if one >= entry), default=None)
    assert available.count() == len(expected)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 6)), max_size=8).map(
        lambda parts: [part for gap, size, times in parts for part in [(gap, size)] * times]
    )
)
def test_repeating_runs_are_one_group(runs: list[tuple[int, int]]) -> None:
    """The same entries, never in more groups; a stripe of any length is one."""
    ranges, at = [], 0
    for gap, size in runs:
        ranges.append((at + gap, at + gap + size - 1))
        at += gap + size
    short, plain = encode_periodic(ranges), encode(ranges)
    assert len(short) <= len(plain)
    entries = {entry for first, last in ranges for entry in range(first, last + 1)}
    assert decode_entries(short) == entries
    found = AvailableEntries.decode(short)
    ids = np.arange(at + 10)
    assert set(ids[found.mask(ids)].tolist()) == entries
    striped = [(first, first + 1) for first in range(0, 3_000, 3)]
    assert len(encode_periodic(striped[: 1 + at])) == 64 + 24


@pytest.mark.parametrize("first", [LAST, LAST - 1, LAST - 5])
def test_the_last_ids_are_there(first: int) -> None:
    """A run up to 2**63 - 1, the last id that Apache BookKeeper's bookies store, does not count as empty."""
    available = AvailableEntries.decode(encode([(0, 3), (first, LAST)]))
    ids = np.arange(LAST - 9, LAST + 1, dtype=np.int64)
    assert ids[available.mask(ids)].tolist() == [*range(first, LAST + 1)]
    assert (LAST in available, first - 1 in available) == (True, False)
    assert [available.next_from(entry) for entry in (4, LAST, LAST + 1)] == [first, LAST, None]
    assert (available.last(), available.count()) == (LAST, LAST - first + 5)


def changed(at: int, form: str, value: int) -> bytes:
    """UPSTREAM with one number replaced."""
    data = bytearray(UPSTREAM)
    struct.pack_into(form, data, at, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "at least 64 bytes"),
        (changed(0, ">i", 1), "version 1"),
        (changed(4, ">i", 2), "announces 2 groups"),
        (changed(4, ">i", -1), "announces -1 groups"),
        (changed(64 + 16, ">i", 0), "invalid group"),
        (changed(64 + 20, ">i", 2), "invalid group"),
        (changed(64 + 24, ">q", 0), "invalid group"),
        (changed(64, ">q", -5), "invalid group"),
        (struct.pack(">ii56xqqii", 0, 1, LAST, LAST, 2, 0), "invalid group"),
    ],
)
def test_broken_lists_are_refused(data: bytes, why: str) -> None:
    """Version, length and order are checked before anything is believed."""
    with pytest.raises(ValueError, match=why):
        AvailableEntries.decode(data)
