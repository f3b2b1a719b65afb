"""Programs of the asyncio client whose awaits are cancelled anywhere (`programs`), and bugs that they must find."""

import asyncio
import random

import pytest

from tests.client.facade.programs import run
from tests.client.planted import PLANTED
from tests.seeded import seeded_random

PROGRAMS_MAX = 40
"""Each planted bug is found by so many programs at most."""


def test_programs_that_are_cancelled_anywhere(uri: str) -> None:
    """No entry is lost, repeated or out of order, no ledger is left, and reads return what they return undisturbed."""
    rng = seeded_random()
    for _ in range(4):
        asyncio.run(run(uri, rng))


@pytest.mark.thorough
def test_many_programs_that_are_cancelled_anywhere(uri: str) -> None:
    """The same, for longer."""
    rng = seeded_random()
    for _ in range(100):
        asyncio.run(run(uri, rng))


@pytest.mark.parametrize("plant", sorted(PLANTED))
def test_a_planted_bug_is_found(uri: str, plant: str) -> None:
    """One of the first programs fails, with what it found or with an error that nobody expects."""

    def found(seed: int) -> bool:
        try:
            asyncio.run(asyncio.wait_for(run(uri, random.Random(seed)), 60))
        except Exception as error:  # noqa: BLE001 - whatever it is, the program has noticed
            print(f"program {seed}: {error!r}")
            return True
        return False

    with PLANTED[plant]():
        assert any(found(seed) for seed in range(PROGRAMS_MAX))
