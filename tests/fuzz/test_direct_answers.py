"""Runs the fuzz targets of direct_answers over mutated seeds, and with `-m fuzz` for some time under atheris."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.direct_answers import TARGETS
from tests.fuzz.driver import fuzz

WORDS = st.sampled_from([b"\0", b"\xff", b"\7", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\1"])


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_mutated_seeds(name: str, data: st.DataObject) -> None:
    """Answers one behind another, with words overwritten anywhere, never return what was not requested."""
    target, seeds = TARGETS[name]
    first, *more = data.draw(st.lists(st.sampled_from(seeds()), min_size=1, max_size=3))
    out = bytearray(first + b"".join(seed[1:] for seed in more))
    for word in data.draw(st.lists(WORDS, max_size=3)):
        at = data.draw(st.integers(1, len(out) + 1))
        out[at : at + len(word)] = word
    target(bytes(out))


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(name: str, tmp_path: Path) -> None:
    """Atheris runs the target from its seeds: nothing crashes or leaks, and nothing unrequested is returned."""
    fuzz("tests.fuzz.direct_answers", name, TARGETS[name][1](), tmp_path, 8192)
