"""The tables of totals in a page, between two markers: the sums of each program, and a row for each commit."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.trust.programs import PROGRAMS, Chunk

__all__ = ["report"]

BEGIN, END = "<!-- totals: written by python -m tests.trust --report -->", "<!-- end of totals -->"
SUMS = ("| What | Commits | Totals | Findings | Process hours |", "| --- | --- | --- | --- | --- |")
ROWS = (
    "",
    "Each commit:",
    "",
    "| What | Commit | Machine | Totals | Findings | Process hours |",
    "| --- | --- | --- | --- | --- | --- |",
)
COUNTED = re.compile(r"([\d,]+) (\D[^,|]*)")


def report(page: Path, files: Iterable[Path]) -> None:
    """Write the sums of all chunks of the state files into the page, for each program, commit and machine.

    A row of the page for which the files have no chunk stays.
    """
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    order = [program.row for program in PROGRAMS.values()]
    known = tuple(f"| {what} | `" for what in order)
    kept = {_names(line): line for line in old.splitlines() if line.startswith(known)}
    lines = [line for _, line in sorted((kept | rows(_chunks(files))).items(), key=lambda row: order.index(row[0][0]))]
    page.write_text("\n".join([f"{before}{BEGIN}", *SUMS, *sums(lines), *ROWS, *lines, f"{END}{after}"]))


def sums(lines: Iterable[str]) -> list[str]:
    """Return one line for each program, from the lines of its commits, in their order."""
    commits: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    findings: dict[str, int] = defaultdict(int)
    hours: dict[str, float] = defaultdict(float)
    for line in lines:
        what, commit, _, totals, found, spent = (cell.strip() for cell in line.split("|")[1:-1])
        commits[what].add(commit)
        findings[what] += int(found)
        hours[what] += float(spent)
        for number, name in COUNTED.findall(totals):
            counts[what][name] += int(number.replace(",", ""))
    return [
        f"| {what} | {len(commits[what])} | {_text(counts[what])} | {findings[what]} | {hours[what]:.2f} |"
        for what in commits
    ]


def _text(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())


def rows(chunks: Iterable[Chunk]) -> dict[tuple[str, ...], str]:
    """Return the lines of the table by what was run, its commit and its machine."""
    counts: dict[tuple[int, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    findings: dict[tuple[int, str, str], int] = defaultdict(int)
    seconds: dict[tuple[int, str, str], float] = defaultdict(float)
    order = list(PROGRAMS)
    for chunk in chunks:
        row = order.index(chunk.program), chunk.commit, chunk.machine
        findings[row] += len(chunk.findings)
        seconds[row] += chunk.seconds
        for name, count in chunk.counts.items():
            counts[row][name] += count
    lines = {}
    for row in sorted(seconds):
        number, commit, machine = row
        what = PROGRAMS[order[number]].row
        line = (
            f"| {what} | `{commit}` | {machine} | {_text(counts[row])} | {findings[row]} | {seconds[row] / 3600:.2f} |"
        )
        lines[_names(line)] = line
    return lines


def _names(line: str) -> tuple[str, ...]:
    """Return the first three cells of a row."""
    return tuple(cell.strip() for cell in line.split("|")[1:4])


def _chunks(files: Iterable[Path]) -> Iterable[Chunk]:
    for file in files:
        for line in file.read_text().splitlines():
            yield Chunk(**json.loads(line))
