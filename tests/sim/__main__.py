"""Run seeds: `python -m tests.sim 0:20000`, or replay one with a trace: `python -m tests.sim 4711 --trace`.

`--plant NAME` plants a bug (tests/sim/planted.py), `--small` uses the small client instead of the real one. The exit
code is 1 if a seed failed; each failing seed is printed with the command that replays it.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.sim.planted import PLANTED
from tests.sim.runs import failures, replay_command, run_seed

CHUNK = 100
SHOWN_MAX = 10


def main() -> int:
    """Parse the arguments, run the seeds, and print the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("seeds", help="one seed, or first:last (the last one is not run)")
    parser.add_argument("--trace", action="store_true", help="print what happened")
    parser.add_argument("--plant", default="", choices=["", *sorted(PLANTED)], help="with this bug in the world")
    parser.add_argument("--small", action="store_true", help="the small client instead of the real one")
    parser.add_argument("--cancels", action="store_true", help="cancel calls at any await, and make them again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--first", action="store_true", help="stop at the first failing seed")
    given = parser.parse_args()
    first, _, end = given.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    if given.trace:
        run = run_seed(seeds[0], given.plant, small=given.small, cancels=given.cancels)
        print("\n".join(run.lines()))
        return int(run.failed)
    return _many(seeds, given)


def _many(seeds: range, given: argparse.Namespace) -> int:
    begin, failed = time.monotonic(), 0
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    with ProcessPoolExecutor(given.jobs) as pool:
        options = [[option] * len(chunks) for option in (given.plant, given.small, given.cancels)]
        for found in pool.map(failures, chunks, *options):
            for seed, problem in found:
                failed += 1
                if failed <= SHOWN_MAX:
                    replay = replay_command(seed, given.plant, small=given.small, cancels=given.cancels)
                    print(f"seed {seed}: {problem}\n    {replay}", flush=True)
            if failed and given.first:
                pool.shutdown(cancel_futures=True)
                break
    took = time.monotonic() - begin
    print(f"{len(seeds)} seeds, {failed} failed, {took:.0f} s, {len(seeds) / max(took, 1e-9):.0f} seeds/s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
