"""The steps of a collection by name, so that tests can end the process behind any of them. Without a watcher: nothing.

Thread `garbage`.
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
"""In the order of a cycle; those of one compaction are the compiled module's."""

_watcher: list[Callable[[str], None]] = []


def step(name: str) -> None:
    """This step is done."""
    for watch in _watcher:
        watch(name)


def watch_steps(watch: Callable[[str], None] | None) -> None:
    """Call `watch` after each step from now on; None: nobody."""
    _watcher[:] = [watch] if watch else []
