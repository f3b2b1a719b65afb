"""Runs of a job that read no cluster: where they go, each done once, and how far they are. Driver."""

import functools
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from bookie.spark.job import Job
from bookie.spark.job_options import conf_option
from bookie.spark.parallel import each
from bookie.spark.sessions import Sessions
from bookie.spark.state import State

__all__ = ["Runs", "with_runs"]

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Runs:
    """In `workers` processes here, or on Spark. `None` processes: one a core."""

    workers: int | None
    spark: Sessions | None

    def outcomes(
        self, job: Job, state: State, unit: str, work: Callable[[A], dict[str, Any]], asked: Mapping[str, A]
    ) -> list[dict[str, Any]]:
        """What came of each, in their order; what `state` has already is not done again.

        `work` is a function of a module of ours; what it returns has, under `unit`, the name it is `asked` by.
        ToolRefused: it failed.
        """
        left = [one for name, one in asked.items() if name not in state.done]
        runs = each(work, left, name=job.name, workers=self.workers, spark=self.spark)
        with closing(runs), job.progress(f"{unit}s") as tell:
            tell(len(state.done), len(asked))
            for found in runs:
                state.note(found[unit], **found)
                tell(len(state.done), len(asked))
        return [dict(state.done[name]) for name in asked]


def with_runs(function: Callable[..., int]) -> Callable[..., int]:
    """Options that say where they go; the command gets them as `runs`."""

    @click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one a core]")
    @click.option("--master", metavar="URL", help="Run on Spark there instead; files have the same paths there.")
    @conf_option
    @functools.wraps(function)
    def with_it(*args: Any, workers: int | None, master: str | None, conf: Mapping[str, str], **options: Any) -> int:
        return function(*args, runs=Runs(workers, Sessions(master, conf) if master else None), **options)

    return with_it
