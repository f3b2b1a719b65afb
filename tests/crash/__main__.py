"""Kill real bookies, or cut their power, for many seeds: `python -m tests.crash kills 0:10`.

A seed is one life of a bookie: its settings, its load, and ten kills or power cuts on the same directories.
`power_cuts` loses and tears writes that no sync covers; `ext4_cuts` and `xfs_cuts` cut the power of a real file system.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from tests.crash.real_disk import RealDisk
from tests.crash.scenarios import cut_power, kill_again_and_again
from tests.history.checker import Violation

TIMES_A_LIFE = 10
"""Kills or power cuts, unless others are asked for."""
SHOWN_MAX = 3


def on(kind: str) -> Callable[[Path, str, int], list[Violation]]:
    """Return `cut_power` on a real file system."""

    def cut(directory: Path, seed: str, times: int) -> list[Violation]:
        disk = RealDisk(directory / "disk", kind)
        try:
            return cut_power(directory, seed, times, real=disk)
        finally:
            disk.end()

    return cut


SCENARIOS: dict[str, Callable[[Path, str, int], list[Violation]]] = {
    "kills": kill_again_and_again,
    "power_cuts": cut_power,
    "ext4_cuts": on("ext4"),
    "xfs_cuts": on("xfs"),
}


def main() -> int:
    """Parse the arguments, play the lives, and print the findings and the totals."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("scenario", choices=sorted(SCENARIOS), help="what ends the bookie")
    parser.add_argument("seeds", help="a seed, or first:last (the last one is not played)")
    parser.add_argument("--times", type=int, default=TIMES_A_LIFE, help=f"how often a life is ended ({TIMES_A_LIFE})")
    given = parser.parse_args()
    first, _, end = given.seeds.partition(":")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    if given.scenario in ("ext4_cuts", "xfs_cuts"):
        RealDisk.private_mounts()
    begun, failed = time.monotonic(), 0
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="bookie-crash-") as directory, redirect_stdout(sys.stderr):
            found = SCENARIOS[given.scenario](Path(directory), str(seed), given.times)
        if found:
            failed += 1
            told = "; ".join(f"{one.invariant}: {one.what}" for one in found[:SHOWN_MAX])
            print(f"seed {seed}: {told}", flush=True)
    took = time.monotonic() - begun
    print(f"{len(seeds)} lives, {len(seeds) * given.times} {given.scenario}, {failed} failed, {took:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
