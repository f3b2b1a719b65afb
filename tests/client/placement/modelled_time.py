"""An event loop whose time passes when there is nothing else to do: hours of polling in a moment, nothing by chance."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Patient(selectors.SelectSelector):
    """Does not wait: it tells for how long it would have."""

    waited = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing comes from outside; to wait for it forever is a test that hangs."""
        if timeout is None:
            raise RuntimeError("everybody waits for nothing")
        self.waited += max(timeout, 0)
        return []


class ModelledLoop(asyncio.SelectorEventLoop):
    """Its clock is what it waited."""

    def __init__(self) -> None:
        self.patient = Patient()
        super().__init__(self.patient)

    def time(self) -> float:
        """Seconds since it was made."""
        return self.patient.waited


def run(main: Coroutine[Any, Any, T]) -> T:
    """To its end, under modelled time."""
    with asyncio.Runner(loop_factory=ModelledLoop) as runner:
        return runner.run(main)
