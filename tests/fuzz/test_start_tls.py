"""Runs the fuzz target of start_tls over mutated seeds, and with `-m fuzz` for BOOKIE_FUZZ_SECONDS under atheris."""

from pathlib import Path

import pytest

from tests.fuzz.driver import fuzz
from tests.fuzz.start_tls import NAME, running, seeds
from tests.seeded import seeded_random

ROUNDS = 200


def test_mutated_seeds() -> None:
    """With seeds as they are, and with bytes changed, lost and repeated, others are served and nothing is kept."""
    drawn = seeded_random()
    given = seeds()
    with running() as target:
        for good in given:
            target(good)
        for _ in range(ROUNDS):
            data = bytearray(drawn.choice(given))
            for _ in range(drawn.randrange(4)):
                at = drawn.randrange(len(data) + 1)
                data[at : at + drawn.randrange(3)] = drawn.randbytes(drawn.randrange(4))
            target(bytes(data))


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.leaks("the fuzzer leaves by itself")
def test_fuzz(tmp_path: Path) -> None:
    """Atheris runs the target from its seeds: nothing crashes, and connections in clear are served all the time."""
    fuzz("tests.fuzz.start_tls", NAME, seeds(), tmp_path, 8192)
