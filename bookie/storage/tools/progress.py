"""How a long-running tool reports its progress, and the named steps at which tests end the process."""

from collections.abc import Callable

__all__ = ["no_progress", "no_step", "Progress", "Step"]

Progress = Callable[[int, int], None]
"""Called with (bytes done, total bytes) on the caller's thread; an exception from it ends the tool."""

Step = Callable[[str], None]
"""Called with the name of a step when it is complete and the next one has not begun."""


def no_progress(_done: int, _total: int) -> None:
    """Ignore the progress."""


def no_step(_name: str) -> None:
    """Ignore the step."""
