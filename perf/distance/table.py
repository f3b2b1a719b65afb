"""`python -m perf.distance.table`: the table of perf/README.md, of the newest line for each distance."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from perf.distance.run import BYTES, ROWS
from perf.markdown import head, line

__all__ = ["newest", "table"]

COPIES = 3
HEAD = ("round trip", "loss", "adds: outstanding", "asyncio /s", "of TCP", "threads /s", "of TCP", "Java /s", "of TCP")
MORE = (
    "round trip",
    "loss",
    "batch reads MB/s",
    "of TCP",
    "Java MB/s",
    "of TCP",
    "copy MB/s",
    "recovery s",
    "frozen s",
    "cut off s",
)


def newest(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the last row for each distance, in the order of the distances."""
    rows = [json.loads(one) for one in lines]
    return [value for _, value in sorted({(row["rtt_ms"], row["loss_percent"]): row for row in rows}.items())]


def table(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return two tables in Markdown, the second of reads, recoveries and gaps."""
    found = list(rows)
    first, second = head(HEAD), head(MORE)
    for row in found:
        where = [f"{row['rtt_ms']:g} ms", f"{row['loss_percent']:g} %"]
        for outstanding in (1, 1000, 10_000):
            cells = [
                cell for client in ("asyncio", "threads", "java") for cell in _adds(row, f"{client}_{outstanding}")
            ]
            if any(cells):
                first.append(line([*where, f"{outstanding:,}", *cells]))
        gaps = [_seconds(row.get(name)) for name in ("gap_frozen_s", "gap_cut_s")]
        rates = [*_reads(row, "reads_mb_s"), *_reads(row, "java_reads_mb_s"), f"{row['copy_mb_s']:.0f}"]
        second.append(line([*where, *rates, _seconds(row["recovery_s"]), *gaps]))
    return [*first, "", *second]


def _adds(row: Mapping[str, Any], name: str) -> list[str]:
    """Return a rate, and the share that all copies of the payloads have of what three streams carry."""
    rate = row.get(name)
    if rate is None:
        return ["", ""]
    share = rate * BYTES * COPIES / 1e6 / row["stream_three_mb_s"]
    return [f"{rate:,.0f}", f"{share:.2f}" if not name.endswith("_1") else ""]


def _reads(row: Mapping[str, Any], name: str) -> list[str]:
    """Return a rate, and its share of what one stream carries."""
    rate = row.get(name)
    return ["", ""] if rate is None else [f"{rate:.0f}", f"{rate / row['stream_down_mb_s']:.2f}"]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    print("\n".join(table(newest(ROWS.read_text().splitlines()))))
