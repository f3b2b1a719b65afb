"""Kill real bookies, or cut their power, for many seeds: `python -m tests.crash kills 0:10`, `... power_cuts 0:10`.

A seed is one life of a bookie: its settings, its load, and ten kills or power cuts on the same directories.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from tests.crash.scenarios import cut_power, kill_again_and_again
from tests.history.checker import Violation

TIMES_A_LIFE = 10
SHOWN_MAX = 3
SCENARIOS: dict[str, Callable[[Path, str, int], list[Violation]]] = {
    "kills": kill_again_and_again,
    "power_cuts": cut_power,
}


def main() -> int:
    """Parse the arguments, play the lives, and print the findings and the totals."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("scenario", choices=sorted(SCENARIOS), help="what ends the bookie")
    parser.add_argument("seeds", help="a seed, or first:last (the last one is not played)")
    given = parser.parse_args()
    first, _, end = given.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    begun, failed = time.monotonic(), 0
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="bookie-crash-") as directory, redirect_stdout(sys.stderr):
            found = SCENARIOS[given.scenario](Path(directory), str(seed), TIMES_A_LIFE)
        if found:
            failed += 1
            told = "; ".join(f"{one.invariant}: {one.what}" for one in found[:SHOWN_MAX])
            print(f"seed {seed}: {told}", flush=True)
    took = time.monotonic() - begun
    print(f"{len(seeds)} lives, {len(seeds) * TIMES_A_LIFE} {given.scenario}, {failed} failed, {took:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
