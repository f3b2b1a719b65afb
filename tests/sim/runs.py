"""Run one seed from its beginning to the judgement, or many of them."""

import gc
import logging
import random
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.sim.draw import Draw
from tests.sim.events import Event
from tests.sim.impatient import impatient
from tests.sim.judge import Violation, judge
from tests.sim.planted import NOTHING, PLANTED
from tests.sim.real_client import real_client
from tests.sim.scenario import play
from tests.sim.small_client import small_client

__all__ = ["failures", "replay_command", "Run", "run_seed"]


@dataclass(frozen=True, slots=True)
class Run:
    """A seed that was run. `violations` break invariants; `problems` are hangs and exceptions not retrieved."""

    seed: int
    history: list[Event]
    violations: list[Violation]
    problems: list[str]
    draw: str

    @property
    def failed(self) -> bool:
        return bool(self.violations or self.problems)

    def description(self) -> str:
        """The first violation or problem in one line."""
        if self.violations:
            first = self.violations[0]
            return f"{first.invariant} at {first.at:.6f} s: {first.what}"
        return self.problems[0] if self.problems else "nothing"

    def lines(self) -> list[str]:
        """Return all violations and problems."""
        found = [f"{one.invariant} at {one.at:.6f} s: {one.what}" for one in self.violations]
        return [self.draw, *(event.line() for event in self.history), *self.problems, *found]


def run_seed(seed: int, plant: str = "", *, small: bool = False, cancels: bool = False) -> Run:
    """Run a seed and judge it. An exception that escapes from the client is a problem.

    With `cancels` there are two more clients, which follow the ledger, and calls of all clients are cancelled.
    """
    planted = PLANTED[plant] if plant else NOTHING
    make = small_client(planted.small) if small else real_client(planted)
    make = impatient(make) if cancels else make
    with planted.patched():
        try:
            draw = planted.draw(Draw.of(random.Random(seed))) if planted.draw else None
            if small:
                draw = replace(draw or Draw.of(random.Random(seed)), advanced=False, deferred=False, replicator=False)
            outcome = play(seed, make, planted.bookies, draw, followers=2 * cancels)
        except Exception as error:  # noqa: BLE001 - any exception belongs to this seed
            where = traceback.format_exception(error)
            return Run(seed, [], [], [f"{type(error).__name__}: {error}", *where], "")
    violations = judge(outcome.history, outcome.world.copies(), outcome.world.lost())
    return Run(seed, outcome.history, violations, outcome.problems, repr(outcome.world.draw))


def failures(
    seeds: Iterable[int], plant: str = "", small: bool = False, cancels: bool = False
) -> list[tuple[int, str]]:
    """Return the seeds that fail, with the first violation or problem of each."""
    found = []
    logging.disable(logging.ERROR)
    gc.disable()  # a world becomes garbage as a whole, so it is collected between seeds
    try:
        for number, seed in enumerate(seeds):
            run = run_seed(seed, plant, small=small, cancels=cancels)
            if run.failed:
                found.append((seed, run.description()))
            if number % 50 == 49:
                gc.collect()
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)
    return found


def replay_command(seed: int, plant: str = "", *, small: bool = False, cancels: bool = False) -> str:
    """Return the command that replays a seed."""
    options = (f" --plant {plant}" if plant else "") + (" --small" if small else "") + (" --cancels" if cancels else "")
    return f"python -m tests.sim {seed} --trace{options}"
