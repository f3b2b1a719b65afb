"""Test the sliding window under the scans: loads in any order see the file's bytes, within the window's limit."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.base.window import read_pieces

OK, FULL = 0, 12
DATA = bytes(i * i >> 3 & 0xFF for i in range(10_000))
CHUNK = 4 << 20


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 10,000 varying bytes."""
    path = tmp_path_factory.mktemp("window") / "data"
    path.write_bytes(DATA)
    return path


@settings(deadline=None)
@given(steps=st.lists(st.tuples(st.integers(-500, 4000), st.integers(0, 3000), st.integers(0, 5000)), max_size=8))
def test_loads_see_the_file(file: Path, steps: list[tuple[int, int, int]]) -> None:
    """Loads at any position and of any size see the file's bytes, and are short only at the end of the file."""
    pieces = []
    keep = 0
    for step, ahead, size in steps:
        keep = max(keep + step, 0)
        pieces.append((keep, keep + ahead, size))
    for (keep, pos, size), (status, held, got) in zip(pieces, read_pieces(file, pieces), strict=True):
        assert status == OK
        assert got == len(DATA[pos : pos + size])
        if got:
            assert held == DATA[keep : pos + size]


def test_it_grows_up_to_its_bound(tmp_path: Path) -> None:
    """The window grows beyond one chunk. A load beyond its limit is refused, and the window stays usable."""
    path = tmp_path / "large"
    data = DATA * 1200
    path.write_bytes(data)
    pieces = [(0, 0, 10), (1, 1, 2 * CHUNK), (5, 2 * CHUNK, CHUNK), (6, 6, 20)]
    answers = read_pieces(path, pieces, capacity_max=2 * CHUNK)
    assert [answer[0] for answer in answers] == [OK, OK, FULL, OK]
    assert answers[1][1] == data[1 : 1 + 2 * CHUNK]
    assert answers[3][1] == data[6:26]
