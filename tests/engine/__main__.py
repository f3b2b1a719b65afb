"""Play worlds of the engine: `python -m tests.engine 0:1000`; one with a trace: `python -m tests.engine 17 --trace`."""

import argparse
import sys
import time
from collections import Counter

from tests.engine.seeds import fixed_environment, seeds_of

COUNTED = ("runs", "kills", "cuts", "steps", "requests")


def main() -> int:
    """Parse the arguments, play the seeds, and print the findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine", description=__doc__)
    parser.add_argument("seeds", help="a seed, first:last (the last one is not played), or several between commas")
    parser.add_argument("--trace", action="store_true", help="print the calls of the last run")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    given = parser.parse_args()
    fixed_environment("tests.engine")
    return play_all(given)


def play_all(given: argparse.Namespace) -> int:
    """Play the seeds, and return 1 if a world has a finding."""
    # Not imported before, because these load numpy, which reads the environment.
    from tests.engine.plan import draw_plan
    from tests.engine.runtime import Runtime
    from tests.engine.world import play

    runtime = Runtime()
    runtime.redirect()
    begun, failed, fingerprint = time.monotonic(), 0, 0
    total: Counter[str] = Counter()
    for seed in seeds_of(given.seeds):
        if time.monotonic() - begun > given.seconds:
            break
        outcome = play(runtime, draw_plan(seed), keep_trace=given.trace)
        total += Counter(worlds=1, **{name: getattr(outcome, name) for name in COUNTED})
        fingerprint = outcome.fingerprint
        if given.trace:
            print("\n".join([str(draw_plan(seed)), *outcome.trace, outcome.output]))
        if outcome.findings:
            failed += 1
            print(f"seed {seed}: " + "; ".join(outcome.findings), flush=True)
    rate = total["worlds"] * 60 / max(time.monotonic() - begun, 1e-9)
    print(f"hash {fingerprint:016x}")
    counts = ", ".join(f"{total[name]} {name}" for name in ("worlds", *COUNTED))
    print(f"{counts}, {failed} failed, {rate:.0f}/min")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
