"""Calls of the asyncio client that are cancelled anywhere: drawn programs, and courses that find planted bugs."""

import asyncio

import pytest

from bookie.client.aio import BookKeeper
from tests.client.cancelling import Moment
from tests.client.facade.courses import COURSES
from tests.client.facade.programs import run
from tests.client.planted import PLANTED
from tests.seeded import seeded_random

REPEATED = 2
"""How often a planted bug is looked for: a course that finds it by chance would fail."""


def test_programs_that_are_cancelled_anywhere(uri: str) -> None:
    """No entry is lost, repeated or out of order, no ledger is left, and reads return what they return undisturbed."""
    rng = seeded_random()
    for _ in range(4):
        asyncio.run(run(uri, rng))


@pytest.mark.thorough
def test_many_programs_that_are_cancelled_anywhere(uri: str) -> None:
    """The same, for longer."""
    rng = seeded_random()
    for _ in range(40):
        asyncio.run(run(uri, rng))


async def course(uri: str, name: str) -> None:
    """Cancel the calls of a course at every point, at both moments."""
    async with BookKeeper(uri, useV2WireProtocol=True, maxOutstandingAdds=2, batchReadEnabled=False) as bk:
        for moment in Moment:
            await COURSES[name](bk, moment)


@pytest.mark.parametrize("name", COURSES)
def test_calls_that_are_cancelled_at_every_point(uri: str, name: str) -> None:
    """A course of calls leaves nothing behind, and has the results that it has undisturbed."""
    asyncio.run(course(uri, name))


@pytest.mark.thorough
@pytest.mark.parametrize("plant", sorted(PLANTED))
def test_a_planted_bug_is_found(uri: str, plant: str) -> None:
    """The course for it fails, with what it found or with an error that nobody expects, every time."""
    with PLANTED[plant]():
        for _ in range(REPEATED):
            with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is, the course has noticed
                asyncio.run(course(uri, plant))
