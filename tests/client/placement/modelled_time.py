"""An event loop whose time passes when it is idle: hours of polling take a moment, and nothing depends on chance."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Patient(selectors.SelectSelector):
    """A selector that does not wait, but records for how long it would have."""

    waited = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return no events. Waiting without a timeout means that the test hangs."""
        if timeout is None:
            raise RuntimeError("everybody waits for nothing")
        self.waited += max(timeout, 0)
        return []


class ModelledLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is the sum of its waits."""

    def __init__(self) -> None:
        self.patient = Patient()
        super().__init__(self.patient)

    def time(self) -> float:
        """Return the seconds since the loop was created."""
        return self.patient.waited


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, under modelled time."""
    with asyncio.Runner(loop_factory=ModelledLoop) as runner:
        return runner.run(main)
