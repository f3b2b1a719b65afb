"""Threads without which a bookie cannot go on: if one of them dies, the process ends."""

import logging
import threading
from collections.abc import Callable, Iterator

from bookie._fast.base import fatal
from bookie._fast.base.process import show_name, wish_short_slice

__all__ = ["EssentialThreads"]

log = logging.getLogger(__name__)


class EssentialThreads:
    """Threads that are started one by one and joined together. Iterate over them to watch them."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def __iter__(self) -> Iterator[threading.Thread]:
        return iter(tuple(self._threads))

    def spawn(self, name: str, body: Callable[[], None], *, carries_data: bool = True) -> None:
        """Start a thread. One that carries data asks for short time slices."""

        def run() -> None:
            try:
                show_name(name)
                if carries_data:
                    wish_short_slice()
                body()
            except BaseException as error:
                log.exception("an essential thread died thread=%s", name)
                fatal.trip(f"thread {name} died: {error}")

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def join(self) -> None:
        """Wait for the end of all threads, which have been told to end."""
        for thread in self._threads:
            thread.join()
