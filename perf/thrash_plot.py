"""The thrash curve as a table in Markdown and as a drawing in SVG. Pure: rows in, text out."""

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["plot", "Row", "table"]

Row = dict[str, Any]
SUBJECTS = {"java": ("Apache BookKeeper", "#b3541e"), "ours": ("bookie", "#1e5fb3"),
            "adaptive": ("bookie, adaptive readahead", "#2a8f4f")}  # fmt: skip
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 20, 52


def curves(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """By subject: cache size to reads per entry; the last row of a size counts."""
    found: dict[str, dict[int, float]] = {name: {} for name in SUBJECTS}
    for row in rows:
        found[row["subject"]][row["cache_mb"]] = row["reads_per_entry"]
    return {name: dict(sorted(curve.items())) for name, curve in found.items() if curve}


def table(rows: Sequence[Row]) -> str:
    """A row a cache size, a column a subject."""
    found = curves(rows)
    lines = [
        f"| read cache, MiB | {' | '.join(SUBJECTS[name][0] for name in found)} |",
        "|---" * (len(found) + 1) + "|",
    ]
    for size in sorted({size for curve in found.values() for size in curve}):
        cells = (f"{curve[size]:.2f}" if size in curve else "" for curve in found.values())
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(rows: Sequence[Row]) -> str:
    """Cache size from left to right, reads per entry upwards, both by doublings."""
    found = curves(rows)
    sizes = sorted({size for curve in found.values() for size in curve})
    top = math.ceil(math.log2(max(2.0, *(reads for curve in found.values() for reads in curve.values()))))
    low, high = math.log2(sizes[0]), max(math.log2(sizes[-1]), math.log2(sizes[0]) + 1)

    def x(size: float) -> float:
        return LEFT + (math.log2(size) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(reads: float) -> float:
        return HEIGHT - BOTTOM - math.log2(max(reads, 1.0)) / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        "<style>text { font: 13px sans-serif }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for power in range(top + 1):
        at = y(2**power)
        parts.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{2**power}</text>')
    for size in sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{size}</text>')
    for at, (name, curve) in enumerate(found.items()):
        label, colour = SUBJECTS[name]
        points = " ".join(f"{x(size):.1f},{y(reads):.1f}" for size, reads in curve.items())
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(size):.1f}" cy="{y(reads):.1f}" r="3" fill="{colour}"/>' for size, reads in curve.items()
        ]
        parts.append(
            f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 18 + 18 * at}" text-anchor="end" fill="{colour}">{label}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">read cache, MiB</text>'
    )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">'
        "times an entry is read from disk</text>"
    )
    return "\n".join([*parts, "</svg>"]) + "\n"
