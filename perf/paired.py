"""What all measurements of adds beside something else share: adds at a fixed rate, in turn alone and beside it.

with Aside(work, 1, 2) as beside: ...        # runs work(1, 2, parent) in a process of its own
found = paired(bookie, plan, lambda: Aside(work, 1, 2))
"""

import multiprocessing
import os
import shutil
import statistics
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import click

from perf.side_by_side.drive import bkload
from perf.side_by_side.servers import OurBookie

__all__ = ["adds", "Aside", "fresh", "paired", "Plan", "plan_options"]

Command = Callable[..., None]
HERE, ENOUGH = "here", "enough"
ORDER = ("alone", "beside", "beside", "alone")


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of pairs, the duration of a measurement in seconds, and the rate in adds per second."""

    pairs: int
    seconds: float
    rate: int


def plan_options(
    directory: Path, *, pairs: int, seconds: float
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the common options; the command receives `pairs`, `seconds`, `rate` and
    `directory`.
    """

    def add(function: Command) -> Command:
        for option in (
            click.option("--directory", default=directory, show_default=True, type=click.Path(path_type=Path)),
            click.option("--rate", default=20_000, show_default=True, help="Rate in adds of 1 KiB per second."),
            click.option("--seconds", default=seconds, show_default=True, help="Duration of each measurement."),
            click.option("--pairs", default=pairs, show_default=True, help="Number of measurements of each kind."),
        ):
            function = option(function)
        return function

    return add


@contextmanager
def fresh(directory: Path, settings: dict[str, str]) -> Iterator[OurBookie]:
    """Run a bookie with created journals on an empty directory, which is removed at the end."""
    shutil.rmtree(directory, ignore_errors=True)
    bookie = OurBookie(directory / "ours")
    try:
        bookie.start(settings)
        adds(bookie, 20_000, 2.0, 0)
        yield bookie
    finally:
        bookie.stop()
        shutil.rmtree(directory, ignore_errors=True)


def adds(bookie: OurBookie, rate: int, seconds: float, first_ledger: int) -> dict[str, float]:
    """Return the latencies of adds of 1 KiB at this rate, in us."""
    done = bkload(
        "add", port=bookie.port, size=1024, outstanding=1000, ledgers=10, warmup=1, rate=rate, seconds=seconds,
        first_ledger=first_ledger,
    )  # fmt: skip
    return {name: done["latency_us"][name] for name in ("p50", "p99", "p999")}


def paired(bookie: OurBookie, plan: Plan, beside: Callable[[], AbstractContextManager[object]]) -> dict[str, Any]:
    """Measure adds alone and inside `beside`, alternating the order; return medians and all results."""
    seen: dict[str, list[dict[str, float]]] = {"alone": [], "beside": []}
    for turn in range(2 * plan.pairs):
        name = ORDER[turn % len(ORDER)]
        first_ledger = 100 + 100 * turn
        if name == "alone":
            seen[name].append(adds(bookie, plan.rate, plan.seconds, first_ledger))
            continue
        with beside():
            seen[name].append(adds(bookie, plan.rate, plan.seconds, first_ledger))
    p99 = {name: statistics.median(one["p99"] for one in found) for name, found in seen.items()}
    return {"p99_ratio": round(p99["beside"] / p99["alone"], 2), "p99_us": p99, "add_latency_us": seen}


class Aside:
    """Runs `work(*arguments, parent)` in a process with the lowest priority, as a context manager.

    `work` sends HERE when it has begun, continues until `parent` receives a message, and then sends its result.
    """

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self._child, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=_run, args=(work, *arguments, theirs))
        self.result: Any = None

    def __enter__(self) -> Self:
        self._process.start()
        if self._child.recv() != HERE:
            raise RuntimeError("the process beside the measurement did not start")
        return self

    def __exit__(self, *_error: object) -> None:
        self._child.send(ENOUGH)
        self.result = self._child.recv()
        self._process.join()


def _run(work: Callable[..., None], *arguments: Any) -> None:
    os.nice(19)
    work(*arguments)
