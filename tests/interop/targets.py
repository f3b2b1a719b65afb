"""The bookies that the Java client talks to: ours, and Apache BookKeeper's own as the check of the tests themselves.

Whatever a test asks of both must hold for both. Where we differ on purpose, the test says so.
"""

from pathlib import Path
from typing import Protocol


class Target(Protocol):
    """A running bookie."""

    @property
    def id(self) -> str:
        """The bookie's id, `host:port`."""

    @property
    def port(self) -> int:
        """The data port on loopback."""

    @property
    def journal(self) -> Path:
        """The journal directory as configured; its files lie in `current`."""

    @property
    def ledgers(self) -> Path:
        """The ledger directory as configured; its entry logs and lastMark lie in `current`."""

    @property
    def conf(self) -> Path:
        """The configuration file."""

    def start(self) -> object:
        """Start it, or start it again on its directories, and wait until it answers."""

    def stop(self) -> object:
        """Shut it down cleanly."""

    def kill(self) -> None:
        """Kill it with SIGKILL."""


class Start(Protocol):
    """Starts `count` bookies of the kind under test in the test's cluster, with extra settings by upstream's key."""

    def __call__(self, count: int = 1, **settings: str) -> list[Target]: ...
