"""Runs the fuzz targets of wire_frames over mutated seeds, and with `-m fuzz` for BOOKIE_FUZZ_SECONDS under atheris."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.driver import fuzz
from tests.fuzz.wire_frames import TARGETS

WORDS = st.sampled_from(
    [0, 1, 4, 15, 16, 23, 24, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 4092, 4093, 0x02010000, 0x02070001]
)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    """The targets hold for the seeds as they are, and for each of them cut at every byte."""
    target, seeds = TARGETS[name]
    for seed in seeds():
        for end in range(len(seed) + 1):
            target(seed[:end])


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_mutated_seeds(name: str, data: st.DataObject) -> None:
    """Seeds one behind another, with words overwritten anywhere, get the model's answer each time."""
    target, seeds = TARGETS[name]
    out = bytearray(b"".join(data.draw(st.lists(st.sampled_from(seeds()), min_size=1, max_size=3))))
    for word in data.draw(st.lists(WORDS, max_size=3)):
        at = data.draw(st.integers(0, len(out)))
        out[at : at + 4] = word.to_bytes(4, "big")
    target(bytes(out))


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(name: str, tmp_path: Path) -> None:
    """Atheris runs the target from its seeds: nothing crashes or leaks, and no answer differs from the model's."""
    fuzz("tests.fuzz.wire_frames", name, TARGETS[name][1](), tmp_path, 8192)
