"""Find a seed for each planted bug of the engine, and write the table: `python -m tests.engine.hunt --most 2000`.

The table, found.txt, has a line for each bug: its name, the first seed at which it is found, and what is found then. A
bug that is still found at its seed is not searched for again. `--page docs/simulation.md` writes the table into a page.
"""

import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.engine.planted import ELSEWHERE, PLANTED
from tests.engine.seeds import FOUND

BEGIN, END = "<!-- planted bugs: written by python -m tests.engine.hunt --page -->", "<!-- end of planted bugs -->"
FINDING = re.compile(r"^seed (\d+): ([^;\n]*)", re.MULTILINE)


def find(bug: str, seeds: str) -> tuple[int, str] | None:
    """Return the first of the seeds at which the bug is found, and what is found."""
    words = [sys.executable, "-m", "tests.engine", seeds, "--plant", bug, "--first"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = FINDING.search(done.stdout)
    return (int(found[1]), re.sub(r"run \d+: ", "", found[2])) if found else None


def hunt(bug: str, known: str, most: int) -> str:
    """Return the line of a bug, or "" if no seed below `most` finds it; `known` is its old line."""
    found = (known and find(bug, known.split()[1])) or find(bug, f"0:{most}")
    if not found:
        return ""
    seed, finding = found
    return f"{bug} {seed} {re.sub(r' [(]peer .*', '', finding)[:110]}\n"


def table() -> str:
    """Return the table of all bugs for a page."""
    lines = ["| Bug | What is wrong | Found at seed | As |", "| --- | --- | --- | --- |"]
    texts = {line.split()[0]: line.split(maxsplit=2) for line in FOUND.read_text().splitlines()}
    for bug in sorted(PLANTED):
        if bug in ELSEWHERE:
            place, finding = f"by `{ELSEWHERE[bug]}`", ""
        elif bug in texts:
            _, seed, finding = texts[bug]
            draw = PLANTED[bug].draw
            place = f"{seed}, {draw.__name__}" if draw else seed
        else:
            place, finding = "not yet", ""
        lines.append(f"| `{bug}` | {PLANTED[bug].sentence} | {place} | {finding.split(':')[0].strip()} |")
    return "\n".join(lines)


def write_page(page: Path) -> None:
    """Replace the table between the markers of a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")


def main() -> int:
    """Parse the arguments, hunt, and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.hunt", description=__doc__)
    parser.add_argument("bugs", nargs="*", help="hunt these bugs only")
    parser.add_argument("--most", type=int, default=2000, help="seeds to try for each bug (2000)")
    parser.add_argument("--jobs", type=int, default=2, help="bugs at a time (2)")
    parser.add_argument("--table", type=Path, default=FOUND, help="the table to complete (tests/engine/found.txt)")
    parser.add_argument("--page", type=Path, help="write the table into this page, and hunt nothing")
    given = parser.parse_args()
    if given.page:
        write_page(given.page)
        return 0
    text = given.table.read_text() if given.table.exists() else ""
    lines = {line.split()[0]: line for line in text.splitlines(keepends=True)}
    missing = 0
    bugs = given.bugs or sorted(PLANTED.keys() - ELSEWHERE)
    with ThreadPoolExecutor(given.jobs) as pool:
        hunts = {pool.submit(hunt, bug, lines.get(bug, ""), given.most): bug for bug in bugs}
        for ended in as_completed(hunts):
            bug, line = hunts[ended], ended.result()
            lines[bug] = line
            missing += not line
            print(line.rstrip() or f"{bug}: not found at seeds 0 to {given.most - 1}", flush=True)
            given.table.write_text("".join(lines[name] for name in sorted(lines)))
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
