"""The table of totals in a page, between two markers."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.trust.programs import PROGRAMS, Chunk

__all__ = ["report"]

BEGIN, END = "<!-- totals: written by python -m tests.trust --report -->", "<!-- end of totals -->"
HEAD = ("| What | Commit | Machine | Totals | Findings | Process hours |", "| --- | --- | --- | --- | --- | --- |")


def report(page: Path, files: Iterable[Path]) -> None:
    """Write the sums of all chunks of the state files into the page: one row for each program, commit and machine.

    A row of the page for which the files have no chunk stays.
    """
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    sums = rows(_chunks(files))
    order = [program.row for program in PROGRAMS.values()]
    kept = {_names(line): line for line in old.splitlines() if line.startswith(tuple(f"| {what} |" for what in order))}
    lines = sorted((kept | sums).items(), key=lambda row: order.index(row[0][0]))
    page.write_text("\n".join([f"{before}{BEGIN}", *HEAD, *(line for _, line in lines), f"{END}{after}"]))


def rows(chunks: Iterable[Chunk]) -> dict[tuple[str, ...], str]:
    """Return the lines of the table by what was run, its commit and its machine."""
    sums: dict[tuple[int, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    findings: dict[tuple[int, str, str], int] = defaultdict(int)
    seconds: dict[tuple[int, str, str], float] = defaultdict(float)
    order = list(PROGRAMS)
    for chunk in chunks:
        row = order.index(chunk.program), chunk.commit, chunk.machine
        findings[row] += len(chunk.findings)
        seconds[row] += chunk.seconds
        for name, count in chunk.counts.items():
            sums[row][name] += count
    lines = {}
    for row in sorted(seconds):
        number, commit, machine = row
        totals = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in sums[row].items())
        what = PROGRAMS[order[number]].row
        line = f"| {what} | `{commit}` | {machine} | {totals} | {findings[row]} | {seconds[row] / 3600:.2f} |"
        lines[_names(line)] = line
    return lines


def _names(line: str) -> tuple[str, ...]:
    """Return the first three cells of a row."""
    return tuple(cell.strip() for cell in line.split("|")[1:4])


def _chunks(files: Iterable[Path]) -> Iterable[Chunk]:
    for file in files:
        for line in file.read_text().splitlines():
            yield Chunk(**json.loads(line))
