"""Families as Prometheus reads them: text format 0.0.4, and OpenMetrics for who asks for it. Pure functions.

A name is the same in both. OpenMetrics wants counters to end in `_total`; the names of Apache BookKeeper do not, so
there they are of type `unknown`, which changes no query.
"""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

from bookie.metrics.family import Family, Kind, Labels

__all__ = ["content_type", "OPENMETRICS", "TEXT", "wants_openmetrics", "write"]

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
LABELS_KEPT = 1 << 15
"""Sets of labels whose text is kept from scrape to scrape."""


def write(families: Iterable[Family], *, openmetrics: bool = False) -> bytes:
    """The whole page, to be sent as `content_type(openmetrics)`."""
    lines: list[str] = []
    for family in families:
        lines += _lines(family, openmetrics=openmetrics)
    if openmetrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode() if lines else b""


def content_type(*, openmetrics: bool) -> str:
    """The header of an answer."""
    return OPENMETRICS if openmetrics else TEXT


def wants_openmetrics(accept: str) -> bool:
    """Whether a request's `Accept` likes OpenMetrics at least as much as the plain text."""
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
    if math.isnan(value):  # as most quantiles of a quiet bookie are
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
