"""The bit flips from a shell: `python -m tests.crash.flips --flips 5000 --seed 7 --kinds logs,index`.

The flips are divided among the kinds (`SHARES`: of 5,000, 2,500 in logs, 2,000 in the index, 200 in journals and in
cookies, 100 in marks), which take turns.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.flips.cluster import Cluster
from tests.crash.flips.files import SHARES
from tests.crash.flips.rounds import Rounds, Tally


def main() -> int:
    """Return 0 if there was no wrong answer, wrong denial or crash, and all damage in use was found and repaired."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=200, help="in all (200)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="repeats a run")
    parser.add_argument("--kinds", default=",".join(SHARES), help=f"in turn, separated by commas ({','.join(SHARES)})")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no round after this")
    parser.add_argument("--directory", type=Path, help="keep everything there")
    asked = parser.parse_args()
    kinds = asked.kinds.split(",")
    if unknown := set(kinds) - set(SHARES):
        parser.error(f"--kinds {','.join(sorted(unknown))}: choose of {','.join(SHARES)}")
    print(f"seed {asked.seed}")
    with tempfile.TemporaryDirectory(prefix="flips-") as temporary:
        tallies = run(asked.directory or Path(temporary), asked.seed, kinds, asked.flips, asked.seconds)
    print(table(tallies))
    problems = [problem for tally in tallies.values() for problem in tally.problems]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def run(directory: Path, seed: int, kinds: list[str], flips: int, seconds: float = float("inf")) -> dict[str, Tally]:
    """Make `flips` flips, each of the kind that has had the least of its share so far."""
    rng = random.Random(seed)
    begun = time.monotonic()
    share = {kind: max(1, round(flips * SHARES[kind] / sum(SHARES[each] for each in kinds))) for kind in kinds}
    with Cluster.running(directory, rng) as cluster:
        rounds = Rounds(cluster, rng, lambda text: print(text, flush=True))
        left = dict(share)
        while any(left.values()) and time.monotonic() - begun < seconds:
            kind = max(kinds, key=lambda each: left[each] / share[each])
            left[kind] -= rounds.run(kind, left[kind])
    return rounds.tallies


def table(tallies: dict[str, Tally]) -> str:
    """Format the tallies as a Markdown table."""
    lines = [f"| kind | {' | '.join(Tally.HEAD)} |", "|---" * (len(Tally.HEAD) + 1) + "|"]
    lines += [f"| {kind} | {' | '.join(tally.row())} |" for kind, tally in tallies.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
