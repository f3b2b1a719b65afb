"""The same work on many arguments: in processes of this machine, or as tasks of Spark where a master is named.

Work that reads no ledger needs no Spark on one machine: a process is up in a tenth of the time and without Java.
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
    """What comes of each, as they end. `work` is a function of a module of ours. ToolRefused: one failed."""
    if spark is None:
        count = min(workers or len(os.sched_getaffinity(0)), max(len(arguments), 1))
        with ThreadPoolExecutor(count) as threads:
            yield from _as_they_end([threads.submit(_in_a_process, work, one) for one in arguments])
        return
    with spark.open(name) as session, ThreadPoolExecutor(max(len(arguments), 1)) as threads:
        context = session.sparkContext

        # A thread a task only waits for it: how many go at a time is Spark's choice.
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
