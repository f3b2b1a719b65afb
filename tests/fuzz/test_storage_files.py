"""Runs the fuzz targets of storage_files over mutated seeds, and with `-m fuzz` for some time under atheris."""

import random
from pathlib import Path

import pytest

from tests.fuzz.driver import fuzz
from tests.fuzz.storage_files import TARGETS
from tests.seeded import seeded_random

INTERESTING = [0, 1, 15, 16, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF00, 0x04000000, 0x04000001, 0xF0F0F0F0]


def mutate(drawn: random.Random, data: bytes) -> bytes:
    """Apply a few bit flips, interesting words, cuts, repeats and zeroed stretches."""
    out = bytearray(data)
    for _ in range(drawn.randint(1, 4)):
        at = drawn.randrange(len(out)) if out else 0
        match drawn.randrange(5):
            case 0 if out:
                out[at] ^= 1 << drawn.randrange(8)
            case 1:
                out[at : at + 4] = drawn.choice(INTERESTING).to_bytes(4)
            case 2:
                del out[at:]
            case 3:
                out[at:at] = out[at : at + drawn.randint(1, 600)]
            case _:
                out[at : at + 512] = bytes(len(out[at : at + 512]))
    return bytes(out)


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_seeds(name: str) -> None:
    """The answer is the model's each time: for seeds as they are, and for 2,000 mutations of them."""
    drawn = seeded_random()
    target, seeds = TARGETS[name]
    for data in seeds():
        target(data)
    for _ in range(2000):
        target(mutate(drawn, drawn.choice(seeds())))


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(name: str, tmp_path: Path) -> None:
    """Atheris runs the target from its seeds: nothing crashes or leaks, and no answer differs from the model's."""
    fuzz("tests.fuzz.storage_files", name, TARGETS[name][1](), tmp_path, 16384)
