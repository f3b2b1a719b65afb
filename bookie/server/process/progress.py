"""Progress of long work at start: a bar on a terminal, otherwise a log line now and then. A stop interrupts the
work.

Main thread.
"""

import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress  # imported only to draw a bar, because it would slow every start

__all__ = ["ProgressReport"]

log = logging.getLogger(__name__)

EVERY_S = 2.0


class ProgressReport:
    """A progress function `report(bytes done, total bytes)` for one kind of work, as a context manager.

    `go_on` is called each time; an exception of it ends the work.
    """

    def __init__(self, what: str, go_on: Callable[[], None], *, bar: bool | None = None) -> None:
        self._what = what
        self._go_on = go_on
        self._begun = time.monotonic()
        self._next = self._begun + EVERY_S
        wanted = sys.stderr.isatty() if bar is None else bar
        self._bar = _new_bar() if wanted else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self._go_on()
        if self._bar is not None:
            self._show(self._bar, done, total)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_S
            seconds = time.monotonic() - self._begun
            log.info(self._what, extra={"bytes": done, "total": total, "mib_per_s": round(done / seconds / (1 << 20))})

    def _show(self, bar: "Progress", done: int, total: int) -> None:
        if not bar.tasks or bar.tasks[-1].finished:
            bar.add_task(self._what, total=total)
            bar.start()
        bar.update(bar.tasks[-1].id, completed=done, total=total)


def _new_bar() -> "Progress":
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
