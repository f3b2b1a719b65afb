"""Runs one function with many arguments: in local processes, or as Spark tasks if a master is named.

Work that reads no ledger does not need Spark on one machine: a process starts in a tenth of the time, and without
Java.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

from bookie.errors import ToolRefused
from bookie.spark.sessions import Sessions

__all__ = ["each"]

A = TypeVar("A")
R = TypeVar("R")


def each(
    work: Callable[[A], R], arguments: Sequence[A], *, name: str, workers: int | None, spark: Sessions | None
) -> Generator[R, None, None]:
    """Yield the result of each call, in the order in which they end.

    Args:
        work: a function at the top level of a module.
        arguments: an argument for each call.
        name: the name of the job, for Spark.
        workers: the number of local processes; None: one per core.
        spark: run on Spark instead.

    Raises:
        ToolRefused: a call failed.
    """
    if spark is None:
        count = min(workers or len(os.sched_getaffinity(0)), max(len(arguments), 1))
        with ThreadPoolExecutor(count) as threads:
            yield from _as_they_end([threads.submit(_in_a_process, work, one) for one in arguments])
        return
    with spark.open(name) as session, ThreadPoolExecutor(max(len(arguments), 1)) as threads:
        context = session.sparkContext

        # Each thread only waits for its task: Spark decides how many run at a time.
        def submit(argument: A) -> R:
            found: list[R] = context.parallelize([argument], 1).map(work).collect()
            return found[0]

        yield from _as_they_end([threads.submit(submit, one) for one in arguments])


def _as_they_end(futures: "Sequence[Future[R]]") -> Generator[R, None, None]:
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _in_a_process(work: Callable[[A], R], argument: A) -> R:
    command = [sys.executable, "-m", "bookie.spark.parallel"]
    task = pickle.dumps((work, argument))
    done = subprocess.run(command, input=task, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ToolRefused(f"{work.__name__}: {last[0] if last else f'exit code {done.returncode}'}")
    found: R = pickle.loads(done.stdout)  # noqa: S301  # from the process that was started here
    return found


if __name__ == "__main__":
    function, given = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the process that started this one
    sys.stdout.buffer.write(pickle.dumps(function(given)))
