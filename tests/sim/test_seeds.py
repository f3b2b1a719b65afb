"""The ledger protocol under faults, seed by seed: the real client in modelled worlds, judged by L1 to L15.

A failing seed prints itself and the command that replays it with a trace; it is then added to seeds.txt for good.
"""

import os
from pathlib import Path

import pytest

from tests.sim.runs import failures, replay_command

SEEDS = int(os.environ.get("BOOKIE_SIM_SEEDS", "20000"))
FIRST = int(os.environ.get("BOOKIE_SIM_FIRST", "0"))
ALWAYS = 200
CHUNKS = 40
CANCELS = 100


def seeds_of(name: str) -> list[int]:
    """Return the seeds of a file of this directory."""
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line[0] != "#"]


def check(seeds: range | list[int], *, cancels: bool = False) -> None:
    """Check that none of these seeds fails."""
    failed = failures(seeds, cancels=cancels)
    text = "\n".join(f"seed {seed}: {what}\n    {replay_command(seed, cancels=cancels)}" for seed, what in failed)
    assert not failed, f"{len(failed)} of {len(seeds)} seeds failed\n{text}"


def test_l1_to_l14_seeds_that_once_failed() -> None:
    """The seeds of seeds.txt pass."""
    check(seeds_of("seeds.txt"))


def test_l1_to_l14_some_seeds() -> None:
    """A few seeds pass with every run of the tests."""
    check(range(FIRST, FIRST + ALWAYS))


def test_l1_to_l14_cancelled_calls_that_once_failed() -> None:
    """The seeds of cancelled_seeds.txt pass."""
    check(seeds_of("cancelled_seeds.txt"), cancels=True)


@pytest.mark.thorough
def test_l1_to_l14_cancelled_calls() -> None:
    """Calls are cancelled at any await and made again: no entry is left out, added twice or stuck."""
    check(range(FIRST, FIRST + CANCELS), cancels=True)


@pytest.mark.sim
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_l1_to_l14(chunk: int) -> None:
    """A chunk of BOOKIE_SIM_SEEDS seeds from BOOKIE_SIM_FIRST on passes."""
    begin, end = (FIRST + SEEDS * at // CHUNKS for at in (chunk, chunk + 1))
    check(range(begin, end))


@pytest.mark.sim
@pytest.mark.parametrize("chunk", range(4))
def test_l1_to_l14_cancelled(chunk: int) -> None:
    """A tenth of the seeds passes with cancelled calls, too."""
    begin, end = (FIRST + SEEDS // 10 * at // 4 for at in (chunk, chunk + 1))
    check(range(begin, end), cancels=True)
