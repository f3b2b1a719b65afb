"""An output that takes no more: its reader has left, as `head` does, or the disk behind it is full."""

import os

__all__ = ["leave_output", "STDOUT"]

STDOUT = 1


def leave_output() -> None:
    """Let the rest of standard output go nowhere. What is buffered would fail again when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
