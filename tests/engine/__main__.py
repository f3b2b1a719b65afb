"""Play worlds of the engine: `python -m tests.engine 0:1000`; one with a trace: `python -m tests.engine 17 --trace`.

A world that fails is shrunk, and the plan that is left is printed. In a file, it can be given instead of a seed.
"""

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.engine.compiled import use_compiled
from tests.engine.seeds import fixed_environment, seeds_of
from tests.fixtures.planted import NUMBERS

if TYPE_CHECKING:
    from tests.engine.plan import Plan
    from tests.engine.standby import Standby

COUNTED = ("runs", "kills", "cuts", "steps", "requests", "compacted")
SEEDS = Path(__file__).with_name("seeds.txt")


def main() -> int:
    """Parse the arguments, play the seeds, and print the findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine", description=__doc__)
    parser.add_argument(
        "seeds", help="a seed, first:last (the last one is not played), a file NAME.json, or several between commas"
    )
    parser.add_argument("--trace", action="store_true", help="print the plan, and the calls of the last run")
    parser.add_argument("--hashes", action="store_true", help="print the hash of each world")
    parser.add_argument("--plant", default="", metavar="NAME", help="play them with a bug of tests/engine/planted.py")
    parser.add_argument("--world", default="", metavar="NAME", help="play worlds of tests/engine/named.py")
    parser.add_argument("--first", action="store_true", help="end at the first world with a finding")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--shrink", type=float, default=120, help="seconds for shrinking a failing world; 0: do not")
    parser.add_argument(
        "--keep", action="store_true", help="add failing seeds to seeds.txt, which every test run plays"
    )
    parser.add_argument("--python", action="store_true", help="do not compile the peers, to debug them; slower")
    given = parser.parse_args()
    fixed_environment("tests.engine", BOOKIE_PLANTED=str(NUMBERS.get(given.plant, 0)))
    if not given.python:
        use_compiled()
    return play_all(given)


def plans_of(text: str) -> Iterator[tuple[str, "Plan"]]:
    """Yield the worlds that `text` names, each after its name."""
    # Not imported before, because these load numpy, which reads the environment.
    from tests.engine.hardships import draw_world
    from tests.engine.plan_files import read_plan

    for part in text.split(","):
        if part.endswith(".json"):
            yield part, read_plan(Path(part))
        else:
            yield from ((f"seed {seed}", draw_world(seed)) for seed in seeds_of(part))


def play_all(given: argparse.Namespace) -> int:
    """Play the worlds, and return 1 if one has a finding."""
    from tests.engine.named import NAMED
    from tests.engine.plan_files import written
    from tests.engine.planted import NOTHING, PLANTED
    from tests.engine.runtime import Runtime
    from tests.engine.standby import Standby
    from tests.engine.world import play

    planted = PLANTED[given.plant] if given.plant else NOTHING
    if given.world:
        planted = replace(planted, draw=NAMED[given.world])
    planted.begin()
    runtime = Runtime()
    runtime.redirect()
    standby = Standby(runtime)
    gc.collect()
    gc.freeze()  # a collection would write to all objects, and each run copies what is written after its fork
    gc.set_threshold(100_000)  # the events of a world are many objects without circles
    begun, failed, fingerprint = time.monotonic(), 0, 0
    total: Counter[str] = Counter()
    for name, drawn in plans_of(given.seeds):
        if time.monotonic() - begun > given.seconds or (failed and given.first):
            break
        plan = planted.plan(drawn)
        outcome = play(standby, plan, keep_trace=given.trace)
        total += Counter(worlds=1, **{counted: getattr(outcome, counted) for counted in COUNTED})
        fingerprint = outcome.fingerprint
        if given.hashes:
            print(f"hash of {name}: {fingerprint:016x}")
        if given.trace:
            print("\n".join([written(plan), *outcome.trace, outcome.output]))
        if outcome.findings:
            failed += 1
            print(f"{name}: " + "; ".join(outcome.findings), flush=True)
            if given.keep and name.startswith("seed"):
                with SEEDS.open("a") as file:
                    file.write(f"{plan.seed}  {outcome.findings[0]}\n")
            if given.shrink and not given.trace and not given.plant:
                print(_shrunken(standby, plan, given.shrink), flush=True)
    standby.close()
    rate = total["worlds"] * 60 / max(time.monotonic() - begun, 1e-9)
    print(f"hash {fingerprint:016x}")
    counts = ", ".join(f"{total[name]} {name}" for name in ("worlds", *COUNTED))
    print(f"{counts}, {failed} failed, {rate:.0f}/min")
    return int(failed > 0)


def _shrunken(standby: "Standby", plan: "Plan", seconds: float) -> str:
    """Return the text of a smaller plan with the same finding."""
    from tests.engine.plan_files import written
    from tests.engine.shrink import shrink
    from tests.engine.world import play

    return written(shrink(plan, lambda smaller: next(iter(play(standby, smaller).findings), ""), seconds))


if __name__ == "__main__":
    sys.exit(main())
