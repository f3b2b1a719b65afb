"""Run what trust rests on for hours, with new seeds, and write the totals: `python -m tests.trust --minutes 60`.

Each program is run in chunks, every one with seeds that were not used before. A chunk's totals are appended to a file
of JSON lines when it ends, so an interrupted run goes on where it stopped. Several machines divide the seeds among
them by `--share 1/3`, and their files are joined by `--report PAGE FILE FILE`, which writes the sums into a table.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests.trust.programs import PROGRAMS, Share, play
from tests.trust.report import report

STATE = Path("build/trust.jsonl")


def commit() -> str:
    """Return the commit that is tested, with a mark if files were changed since."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def run(names: list[str], minutes: float, jobs: int, share: Share) -> int:
    """Play chunks of the programs in turn until the time is over. Return the number of findings.

    Next comes a program that is not running, and of these the one that has had the least time so far.
    """
    end, version, found = time.monotonic() + minutes * 60, commit(), 0
    running, spent = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    STATE.parent.mkdir(exist_ok=True)

    def worker(_: int) -> None:
        nonlocal found
        while time.monotonic() < end:
            name = min(names, key=lambda name: (running[name], spent[name]))
            running[name] += 1
            chunk = play(name, version, share)
            running[name] -= 1
            spent[name] += chunk.seconds
            found += len(chunk.findings)
            with STATE.open("a") as file:
                file.write(json.dumps(asdict(chunk)) + "\n")
            print(f"{chunk.program}: {chunk.counts}, {chunk.seconds} s", *chunk.findings, sep="\n    ", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(worker, range(jobs)))
    return found


def main() -> int:
    """Parse the arguments, and run or report."""
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long to run (60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="chunks at a time (one for each core)")
    parser.add_argument("--only", choices=sorted(PROGRAMS), action="append", help="run this program only")
    parser.add_argument("--share", type=Share.of, default=Share(), help="the part of the seeds of this machine: 1/3")
    parser.add_argument("--report", type=Path, metavar="PAGE", help="write the totals into this page, and run nothing")
    parser.add_argument("files", type=Path, nargs="*", help=f"the files with the totals to report ({STATE})")
    given = parser.parse_args()
    if given.report:
        report(given.report, given.files or [STATE])
        return 0
    usable = [name for name, program in PROGRAMS.items() if program.usable]
    return int(run(given.only or usable, given.minutes, given.jobs, given.share) > 0)


if __name__ == "__main__":
    sys.exit(main())
