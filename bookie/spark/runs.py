"""Runs of a job that need no cluster: where they execute, each done once, with progress. Used on the driver."""

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
    """Where runs execute: in `workers` local processes (None: one per core), or on Spark."""

    workers: int | None
    spark: Sessions | None

    def outcomes(
        self, job: Job, state: State, unit: str, work: Callable[[A], dict[str, Any]], arguments: Mapping[str, A]
    ) -> list[dict[str, Any]]:
        """Execute the runs that are not done yet and return all results, in the order of `arguments`.

        Args:
            job: the job, for its name and progress bar.
            state: the finished runs.
            unit: the key under which a result has the name of its run.
            work: a function at the top level of a module; it returns a result with `unit` as one of its keys.
            arguments: the argument of each run, by its name.

        Raises:
            ToolRefused: a run failed.
        """
        left = [one for name, one in arguments.items() if name not in state.done]
        runs = each(work, left, name=job.name, workers=self.workers, spark=self.spark)
        with closing(runs), job.progress(f"{unit}s") as tell:
            tell(len(state.done), len(arguments))
            for found in runs:
                state.note(found[unit], **found)
                tell(len(state.done), len(arguments))
        return [dict(state.done[name]) for name in arguments]


def with_runs(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say where runs execute; the command receives them as `runs`."""

    @click.option("--workers", type=click.IntRange(1), help="Number of local processes.  [default: one per core]")
    @click.option(
        "--master", metavar="URL", help="Run on this Spark master instead; files must have the same paths there."
    )
    @conf_option
    @functools.wraps(function)
    def with_it(*args: Any, workers: int | None, master: str | None, conf: Mapping[str, str], **options: Any) -> int:
        return function(*args, runs=Runs(workers, Sessions(master, conf) if master else None), **options)

    return with_it
