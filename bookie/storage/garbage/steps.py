"""The steps of a collection by name, so that tests can end the process after any of them. Without a watcher they do
nothing.

Threads of the collection, several at a time.
"""

from collections.abc import Callable

__all__ = ["step", "STEPS", "watch_steps"]

STEPS = (
    "local ledgers listed",
    "ledgers verified",
    "checkpointed",
    "ledgers deleted",
    "dead log unlinked",
    "log compacted",
)
"""In the order of a cycle; the compiled module has those of a single compaction."""

_watcher: list[Callable[[str], None]] = []


def step(name: str) -> None:
    """Report that a step is done."""
    for watch in _watcher:
        watch(name)


def watch_steps(watch: Callable[[str], None] | None) -> None:
    """Call `watch` after each step from now on; None removes the watcher."""
    _watcher[:] = [watch] if watch else []
