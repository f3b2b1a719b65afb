"""Work in all ledger directories at the same time, so that it takes as long as the slowest disk, not as all of them.

The threads live as long as one piece of work: there are minutes between two, and an error of one of them reaches the
thread `garbage`, which is watched.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bookie._fast.base.process import show_name

__all__ = ["everywhere"]

T = TypeVar("T")


def everywhere(count: int, work: Callable[[int], T]) -> list[T]:
    """Call `work` with the number of each directory, 0 on the calling thread and each other on one of its own.

    Returns the results in order, when all calls have ended. Raises the error of the first directory that has one.
    """
    if count <= 1:
        return [work(number) for number in range(count)]
    with ThreadPoolExecutor(count - 1, "garbage", show_name, ("garbage",)) as pool:
        others = [pool.submit(work, number) for number in range(1, count)]
        return [work(0), *(other.result() for other in others)]
