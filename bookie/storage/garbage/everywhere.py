"""Work in all ledger directories at the same time, so that it takes as long as the slowest disk, not as all of them.

The threads live as long as one piece of work: there are minutes between two, and an error of one of them reaches the
thread `garbage`, which is watched. Like that one, they are daemons: a process that ends does not wait for a disk.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from bookie._fast.base.process import show_name

__all__ = ["everywhere"]

T = TypeVar("T")


def everywhere(count: int, work: Callable[[int], T]) -> list[T]:
    """Call `work` with the number of each directory, on the calling thread and others, one for each if there can be.

    Returns the results in order, when all calls have ended. Raises the error of the first directory that has one.
    """
    waiting = deque(range(count))
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def run() -> None:
        while waiting:
            try:
                number = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[number] = work(number)
            except BaseException as error:  # noqa: BLE001  # raised below
                errors[number] = error

    def run_named() -> None:
        show_name("garbage")
        run()

    threads = []
    for _ in range(count - 1):
        thread = threading.Thread(target=run_named, name="garbage", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads: those there are do the work
            break
        threads.append(thread)
    run()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(count)]
