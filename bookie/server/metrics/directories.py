"""Metrics of the directories and their disks."""

import re
from collections.abc import Iterable, Iterator

from bookie.metrics.family import Family, Kind, Sample, gauge
from bookie.server.disks.state import INDEX, JOURNAL, LEDGER, DiskState, State
from bookie.storage.disk_level import DiskLevel

__all__ = ["directory_families"]

BAD = re.compile(r"[^a-zA-Z0-9:_]")


def directory_families(state: DiskState) -> Iterator[Family]:
    """Yield the families, as of the last check of the disks."""
    for kind in (LEDGER, INDEX):
        of_kind = [one for one in state.directories if one.kind == kind]
        for one in of_kind:
            if one.usage is not None:
                name = f"bookie_{kind}_dir_{BAD.sub('_', str(one.path))}_usage"
                yield gauge(name, f"Used share of the disk of a {kind} directory, in percent.", 100 * one.usage.used)
        if of_kind:
            writable = sum(one.level < DiskLevel.FULL for one in of_kind)
            yield gauge(f"bookie_{kind}_num_dirs", f"Number of {kind} directories.", len(of_kind))
            yield gauge(f"bookie_{kind}_writable_dirs", f"Number of {kind} directories that are not full.", writable)
    yield from _labelled(state.directories)


def _labelled(states: Iterable[State]) -> Iterator[Family]:
    states = [one for one in states if one.kind in {LEDGER, INDEX, JOURNAL}]
    measured = [one for one in states if one.usage is not None]
    for name, text, samples in (
        ("level", "0 ok, 1 nearly full, 2 full, 3 unusable.", [(one, int(one.level)) for one in states]),
        (
            "usable_bytes",
            "bytes that may still be written.",
            [(one, one.usage.usable) for one in measured if one.usage],
        ),
        ("size_bytes", "bytes of its file system.", [(one, one.usage.total) for one in measured if one.usage]),
    ):
        found = tuple(Sample(value, (("kind", one.kind), ("directory", str(one.path)))) for one, value in samples)
        if found:
            yield Family(f"pybookie_directory_{name}", Kind.GAUGE, f"For each directory: {text}", found)
