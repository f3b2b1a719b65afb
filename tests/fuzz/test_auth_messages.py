"""Runs the fuzz targets of auth_messages over mutated seeds, and with `-m fuzz` for some time under atheris."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.auth_messages import TARGETS
from tests.fuzz.driver import fuzz

WORDS = st.sampled_from([b"", b'"', b"\\", b",", b"=", b"\xff", b"nonce", b"\0", b"\x7f\xff\xff\xff"])


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    """The targets hold for the seeds as they are, and for each of them cut at every byte."""
    target, seeds = TARGETS[name]
    for seed in seeds():
        for end in range(len(seed) + 1):
            target(seed[:end])


@pytest.mark.thorough
@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_mutated_seeds(name: str, data: st.DataObject) -> None:
    """Seeds one behind another, with words overwritten anywhere, get an answer or a refusal each time."""
    target, seeds = TARGETS[name]
    out = bytearray(b"".join(data.draw(st.lists(st.sampled_from(seeds()), min_size=1, max_size=3))))
    for word in data.draw(st.lists(WORDS, max_size=3)):
        at = data.draw(st.integers(0, len(out)))
        out[at : at + 2] = word
    target(bytes(out))


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(name: str, tmp_path: Path) -> None:
    """Atheris runs the target from its seeds: nothing crashes or leaks, and nobody gets in."""
    fuzz("tests.fuzz.auth_messages", name, TARGETS[name][1](), tmp_path, 8192)
