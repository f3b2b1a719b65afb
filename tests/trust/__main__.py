"""Run what trust rests on for hours, with new seeds, and write the totals: `python -m tests.trust --minutes 60`.

Each program is run in chunks, every one with seeds that were not used before. A chunk's totals are appended to a file
of JSON lines when it ends, so an interrupted run goes on where it stopped, and files of several machines can be joined.
`--report PAGE` writes the sums into the table of a page, between two markers.
"""

import argparse
import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

STATE = Path("build/trust.jsonl")
BEGIN, END = "<!-- totals: written by python -m tests.trust --report -->", "<!-- end of totals -->"
COUNT = re.compile(r"(\d+) ([a-z]+)")
FINDING = re.compile(r"^seed \d+: .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that plays a range of seeds: its module, the seeds of one chunk, and how its rows are named."""

    module: str
    chunk: int
    row: str


PROGRAMS = {
    "engine": Program("tests.engine", 2_000, "worlds of the engine"),
    "cluster": Program("tests.engine.cluster", 500, "worlds of whole clusters"),
    "protocol": Program("tests.sim", 20_000, "worlds of the client's protocol"),
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """The totals of one chunk, as one line of the state file."""

    program: str
    first: int
    counts: dict[str, int]
    findings: list[str]
    seconds: float
    commit: str
    machine: str


def commit() -> str:
    """Return the commit that is tested, with a mark if files were changed since."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def play(name: str, version: str) -> Chunk:
    """Play one chunk of new seeds in a process of its own."""
    program = PROGRAMS[name]
    first = random.SystemRandom().randrange(1 << 44)
    begun = time.monotonic()
    words = [sys.executable, "-m", program.module, f"{first}:{first + program.chunk}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    counts = {word: int(number) for number, word in COUNT.findall(last)}
    findings = FINDING.findall(done.stdout)
    if not counts or (done.returncode != 0 and not findings):
        findings.append(f"{' '.join(words[1:])} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    took = round(time.monotonic() - begun, 1)
    return Chunk(name, first, counts, findings, took, version, f"{os.cpu_count()} cores, {platform.machine()}")


def run(names: list[str], minutes: float, jobs: int) -> int:
    """Play chunks of the programs in turn until the time is over. Return the number of findings."""
    end, version, found = time.monotonic() + minutes * 60, commit(), 0
    STATE.parent.mkdir(exist_ok=True)

    def worker(offset: int) -> None:
        nonlocal found
        turn = offset
        while time.monotonic() < end:
            chunk = play(names[turn % len(names)], version)
            turn += 1
            found += len(chunk.findings)
            with STATE.open("a") as file:
                file.write(json.dumps(asdict(chunk)) + "\n")
            print(f"{chunk.program}: {chunk.counts}, {chunk.seconds} s", *chunk.findings, sep="\n    ", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(worker, range(jobs)))
    return found


def report(page: Path) -> None:
    """Write the sums of all chunks of the state file into the page."""
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in STATE.read_text().splitlines():
        chunk = Chunk(**json.loads(line))
        row = sums[chunk.program, chunk.commit]
        row["seconds"] += chunk.seconds
        row["findings"] += len(chunk.findings)
        for name, count in chunk.counts.items():
            row[name] += count
    lines = ["| What | Commit | Totals | Findings | CPU hours |", "| --- | --- | --- | --- | --- |"]
    for (name, version), row in sorted(sums.items()):
        totals = ", ".join(
            f"{int(row[key]):,} {key}" for key in row if key not in ("seconds", "findings", "failed", "s")
        )
        lines.append(
            f"| {PROGRAMS[name].row} | `{version}` | {totals} | {int(row['findings'])} | {row['seconds'] / 3600:.1f} |"
        )
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}")


def main() -> int:
    """Parse the arguments, and run or report."""
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long to run (60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="chunks at a time (one for each core)")
    parser.add_argument("--only", choices=sorted(PROGRAMS), action="append", help="run this program only")
    parser.add_argument("--report", type=Path, help="write the totals into this page, and run nothing")
    given = parser.parse_args()
    if given.report:
        report(given.report)
        return 0
    return int(run(given.only or list(PROGRAMS), given.minutes, given.jobs) > 0)


if __name__ == "__main__":
    sys.exit(main())
