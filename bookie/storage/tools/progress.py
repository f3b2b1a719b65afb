"""How a long-running tool tells how far it is, and the named steps at which tests end the process."""

from collections.abc import Callable

__all__ = ["no_progress", "no_step", "Progress", "Step"]

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all), on the caller's thread; an exception of it ends the tool."""

Step = Callable[[str], None]
"""Called with a step's name when everything of it is done and nothing of the next one is."""


def no_progress(_done: int, _total: int) -> None:
    """Nobody looks."""


def no_step(_name: str) -> None:
    """Nobody waits for a step."""
