"""Tables in Markdown, as lines."""

from collections.abc import Sequence

__all__ = ["head", "line"]


def head(cells: Sequence[str]) -> list[str]:
    """Return the first two lines of a table."""
    return [line(cells), "|---" * len(cells) + "|"]


def line(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(cells) + " |"
