"""Play worlds of whole clusters: `python -m tests.engine.cluster 0:100`, or one with its history: `... 17 --trace`."""

import argparse
import sys
import time
from dataclasses import replace

from tests.engine.seeds import fixed_environment, seeds_of


def main() -> int:
    """Parse the arguments, play the seeds, and print the findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.cluster", description=__doc__)
    parser.add_argument("seeds", help="a seed, first:last (the last one is not played), or several between commas")
    parser.add_argument("--trace", action="store_true", help="print the history")
    parser.add_argument("--calls", action="store_true", help="print the last calls")
    parser.add_argument("--hashes", action="store_true", help="print the hash of each world")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--plant", default="", metavar="NAME", help="play them with a bug of planted.py")
    parser.add_argument("--world", default="", metavar="NAME", help="play the worlds of that bug without it")
    parser.add_argument("--first", action="store_true", help="end at the first world with a finding")
    given = parser.parse_args()
    fixed_environment("tests.engine.cluster")
    from tests.engine.cluster.planted import NOTHING, PLANTED
    from tests.engine.cluster.world import play
    from tests.engine.runtime import Runtime

    planted = PLANTED[given.plant] if given.plant else NOTHING
    if given.world:
        planted = replace(NOTHING, draw=PLANTED[given.world].draw)
    runtime = Runtime()
    runtime.redirect()
    begun, worlds, steps, failed, unfinished, fingerprint = time.monotonic(), 0, 0, 0, 0, 0
    for seed in seeds_of(given.seeds):
        if time.monotonic() - begun > given.seconds or (failed and given.first):
            break
        outcome = play(runtime, seed, planted, traced=given.calls)
        worlds, steps, fingerprint = worlds + 1, steps + outcome.steps, outcome.fingerprint
        if outcome.unfinished:
            unfinished += 1
            print(f"seed {seed} takes too long, and was not finished", flush=True)
        if given.hashes:
            print(f"hash of seed {seed}: {fingerprint:016x}")
        if given.trace:
            print("\n".join(outcome.lines))
        if given.calls:
            print("\n".join(runtime.trace()))
        if outcome.findings:
            failed += 1
            print(f"seed {seed}: " + "; ".join(outcome.findings), flush=True)
    rate = worlds * 60 / max(time.monotonic() - begun, 1e-9)
    print(f"hash {fingerprint:016x}")
    print(f"{worlds - unfinished} worlds, {unfinished} unfinished, {steps} steps, {failed} failed, {rate:.0f}/min")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
