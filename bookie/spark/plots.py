"""SVG plots and HTML pages of them. Pure functions: numbers in, text out; the pages load nothing from elsewhere."""

import html
import math
from collections.abc import Mapping, Sequence

from bookie.terminal.output import rounded

__all__ = ["bar_plot", "line_plot", "page"]

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 20, 52
COLOURS = ("#1e5fb3", "#b3541e", "#2a8f4f", "#8a3fb0", "#b02a5b", "#4f6f7f", "#8f7a1e", "#333333")
TICKS = 6

Curve = Sequence[tuple[float, float]]


class Axis:
    """An axis, which maps numbers to coordinates on a linear or a base-2 logarithmic scale."""

    def __init__(self, numbers: Sequence[float], start: float, end: float, *, doublings: bool, zero: bool) -> None:
        """Create an axis for `numbers` between the coordinates `start` and `end`.

        Args:
            numbers: the numbers that must fit on the axis.
            start: coordinate of the smallest number.
            end: coordinate of the largest number.
            doublings: use a base-2 logarithmic scale.
            zero: begin at 0, or at 1 on the logarithmic scale.
        """
        self._doublings = doublings
        self._start, self._length = start, end - start
        low, high = min(numbers), max(numbers)
        if zero:
            low = min(low, 1.0 if doublings else 0.0)
        if doublings:
            low, high = math.log2(max(low, 1e-9)), math.log2(max(high, 1e-9))
            high = max(math.ceil(high) if zero else high, low + 1)
        elif high <= low:
            high = low + 1
        self._low, self._high = low, high

    def at(self, number: float) -> float:
        """Return the coordinate of a number."""
        if self._doublings:
            number = math.log2(max(number, 2**self._low))
        return self._start + (number - self._low) / (self._high - self._low) * self._length

    def ticks(self) -> list[float]:
        """Return round numbers on the axis."""
        if self._doublings:
            return [2.0**power for power in range(math.ceil(self._low), math.floor(self._high) + 1)]
        raw = (self._high - self._low) / TICKS
        size = 10 ** math.floor(math.log10(raw))
        step = next(size * one for one in (1, 2, 5, 10) if size * one >= raw)
        first = math.ceil(self._low / step)
        return [one * step for one in range(first, math.floor(self._high / step + 1e-9) + 1)]


def line_plot(
    curves: Mapping[str, Curve],
    x: str,
    y: str,
    *,
    colours: Mapping[str, str] | None = None,
    by_doublings: tuple[bool, bool] = (False, False),
    dots: bool = False,
) -> str:
    """Draw a line for each curve and return the SVG.

    Args:
        curves: the points of each line, by its name.
        x: label of the x axis.
        y: label of the y axis.
        colours: the colours of lines, by name.
        by_doublings: whether x and y have a logarithmic scale.
        dots: mark each point, and label each x at which there is one.
    """
    points = [point for curve in curves.values() for point in curve] or [(0.0, 0.0)]
    across = Axis([one for one, _ in points], LEFT, WIDTH - RIGHT, doublings=by_doublings[0], zero=False)
    up = Axis([one for _, one in points], HEIGHT - BOTTOM, TOP, doublings=by_doublings[1], zero=True)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        "<style>text { font: 13px sans-serif }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for tick in up.ticks():
        at = up.at(tick)
        parts.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in sorted({one for one, _ in points}) if dots else across.ticks():
        parts.append(f'<text x="{across.at(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    for place, (name, curve) in enumerate(curves.items()):
        colour = (colours or {}).get(name, COLOURS[place % len(COLOURS)])
        line = " ".join(f"{across.at(one):.1f},{up.at(other):.1f}" for one, other in curve)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if dots:
            parts += [
                f'<circle cx="{across.at(one):.1f}" cy="{up.at(other):.1f}" r="3" fill="{colour}"/>'
                for one, other in curve
            ]
        parts.append(
            f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 18 + 18 * place}" text-anchor="end" fill="{colour}">'
            f"{html.escape(name)}</text>"
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{html.escape(x)}</text>'
    )
    parts.append(
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">{html.escape(y)}</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def bar_plot(bars: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Draw a bar for each name, made of its parts, and return the SVG. A part has the same colour in every bar."""
    parts = list(dict.fromkeys(part for bar in bars.values() for part in bar))
    colours = {part: COLOURS[place % len(COLOURS)] for place, part in enumerate(parts)}
    longest = max([sum(bar.values()) for bar in bars.values()] + [1e-9])
    row, left = 24, WIDTH // 3
    height = row * (len(bars) + len(parts) + 1)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
        "<style>text { font: 13px sans-serif }</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for place, (name, bar) in enumerate(bars.items()):
        at, y = float(left), row * place + 4
        drawn.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{html.escape(name)}</text>')
        for part, number in bar.items():
            wide = number / longest * (WIDTH - left - 90)
            drawn.append(f'<rect x="{at:.1f}" y="{y}" width="{wide:.1f}" height="{row - 6}" fill="{colours[part]}"/>')
            at += wide
        drawn.append(f'<text x="{at + 6:.1f}" y="{y + 14}">{sum(bar.values()):g} {html.escape(unit)}</text>')
    for place, part in enumerate(parts, len(bars)):
        y = row * place + 8
        drawn.append(f'<rect x="{left}" y="{y}" width="12" height="12" fill="{colours[part]}"/>')
        drawn.append(f'<text x="{left + 18}" y="{y + 11}">{html.escape(part)}</text>')
    return "\n".join([*drawn, "</svg>"]) + "\n"


def page(title: str, plots: Mapping[str, str], rows: Sequence[Mapping[str, object]], notes: Sequence[str] = ()) -> str:
    """Return a self-contained HTML page of notes, a table and plots under their titles."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in names)
    lines = ["".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in names) for row in rows]
    body = [
        f"<h1>{html.escape(title)}</h1>",
        *(f"<p>{html.escape(note)}</p>" for note in notes),
        f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>",
        *(f"<h2>{html.escape(name)}</h2>{drawing}" for name, drawing in plots.items()),
    ]
    style = (
        "body{font:15px sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}"
        "td,th{border:1px solid #ccc;padding:.2rem .5rem;text-align:right}svg{max-width:45rem}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{style}</style>{''.join(body)}</html>\n"
    )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return rounded(value) if isinstance(value, float) else str(value)
