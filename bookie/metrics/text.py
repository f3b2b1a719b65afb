"""The text formats of Prometheus: format 0.0.4, and OpenMetrics on request. Pure functions.

A name is the same in both. OpenMetrics requires counters to end in `_total`. The names of Apache BookKeeper's
counters do not, so OpenMetrics shows them with the type `unknown`, which changes no query.
"""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

from bookie.metrics.family import Family, Kind, Labels

__all__ = ["content_type", "OPENMETRICS", "TEXT", "wants_openmetrics", "write"]

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LABELS_KEPT = 1 << 15
"""The number of label sets whose text is cached between scrapes."""


def write(families: Iterable[Family], *, openmetrics: bool = False) -> bytes:
    """Return the complete page, to be sent as `content_type(openmetrics)`."""
    lines: list[str] = []
    for family in families:
        lines += _lines(family, openmetrics=openmetrics)
    if openmetrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode() if lines else b""


def content_type(*, openmetrics: bool) -> str:
    """Return the `Content-Type` of a response."""
    return OPENMETRICS if openmetrics else TEXT


def wants_openmetrics(accept: str) -> bool:
    """Return whether a request's `Accept` prefers OpenMetrics at least as much as plain text."""
    liked = {"text/plain": 0.0, "application/openmetrics-text": 0.0}
    for part in accept.lower().split(","):
        kind, *options = [piece.strip() for piece in part.split(";")]
        if kind in liked:
            liked[kind] = max(liked[kind], _quality(options))
    return 0 < liked["application/openmetrics-text"] >= liked["text/plain"]


def _quality(options: Iterable[str]) -> float:
    for option in options:
        name, _, value = option.partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _lines(family: Family, *, openmetrics: bool) -> Iterator[str]:
    name, kind = family.name, str(family.kind)
    headed = name
    if openmetrics and family.kind is Kind.COUNTER:
        headed = name.removesuffix("_total")
        kind = "counter" if headed != name else "unknown"
    yield f"# HELP {headed} {_escaped(family.help, quotes=openmetrics)}"
    yield f"# TYPE {headed} {kind}"
    for value, labels, suffix in family.samples:
        number = str(value) if isinstance(value, int) else _number(value)
        yield f"{name}{suffix}{_labels(labels) if labels else ''} {number}"


def _number(value: float) -> str:
    if math.isnan(value):  # common: most quantiles of an idle bookie are NaN
        return "NaN"
    if math.isfinite(value):
        return repr(float(value))
    return "+Inf" if value > 0 else "-Inf"


@lru_cache(LABELS_KEPT)
def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quotes else text
