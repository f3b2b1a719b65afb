"""Metric families: samples that were measured at one time. Plain values that any thread may create and pass on."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

__all__ = ["counter", "Family", "gauge", "histogram", "Kind", "Labels", "merged", "Sample"]

Labels = tuple[tuple[str, str], ...]
"""Label names and values, in the order in which they are shown."""


class Kind(StrEnum):
    """The type of a family, in the words of the text formats."""

    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"
    HISTOGRAM = "histogram"


class Sample(NamedTuple):
    """A value of a metric family. `suffix` is appended to the family's name: ``, `_count`, `_sum` or `_bucket`."""

    value: float
    labels: Labels = ()
    suffix: str = ""


class Family(NamedTuple):
    """All samples with one name. `help` is one sentence with the unit."""

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


def counter(name: str, text: str, value: float, labels: Labels = ()) -> Family:
    """Return a family with a single counter."""
    return Family(name, Kind.COUNTER, text, (Sample(value, labels),))


def gauge(name: str, text: str, value: float, labels: Labels = ()) -> Family:
    """Return a family with a single gauge."""
    return Family(name, Kind.GAUGE, text, (Sample(value, labels),))


def histogram(name: str, text: str, counts: Mapping[float, int], total: float, labels: Labels = ()) -> Family:
    """Return a histogram of `counts`, not cumulated, by the upper bounds of buckets; the last one is infinity."""
    samples, seen = [], 0
    for edge, count in counts.items():
        seen += count
        samples.append(Sample(seen, (*labels, ("le", edge_text(edge))), "_bucket"))
    samples += [Sample(total, labels, "_sum"), Sample(seen, labels, "_count")]
    return Family(name, Kind.HISTOGRAM, text, tuple(samples))


def edge_text(edge: float) -> str:
    """Format a bound for the label `le`, in the form that all readers of both formats take for the same series."""
    return "+Inf" if edge == float("inf") else repr(float(edge))


def merged(families: Iterable[Family]) -> Iterator[Family]:
    """Yield each name once, in the order of first appearance, with the samples of all families of that name."""
    known: dict[str, list[Family]] = {}
    for family in families:
        known.setdefault(family.name, []).append(family)
    for parts in known.values():
        if len(parts) == 1:
            yield parts[0]
        else:
            yield parts[0]._replace(samples=tuple(sample for part in parts for sample in part.samples))
