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
    """Write the sums of all chunks of the state files into the page: one row for each program, commit and machine."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(table(_chunks(files))) + f"\n{END}{after}")


def table(chunks: Iterable[Chunk]) -> list[str]:
    """Return the lines of the table."""
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
    lines = list(HEAD)
    for row in sorted(seconds):
        number, commit, machine = row
        totals = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in sums[row].items())
        what = PROGRAMS[order[number]].row
        lines.append(f"| {what} | `{commit}` | {machine} | {totals} | {findings[row]} | {seconds[row] / 3600:.2f} |")
    return lines


def _chunks(files: Iterable[Path]) -> Iterable[Chunk]:
    for file in files:
        for line in file.read_text().splitlines():
            yield Chunk(**json.loads(line))
