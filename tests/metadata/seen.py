"""A listener that records its values, and waits for expected ones."""

import threading
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60.0


class Seen:
    """Call it with values from any thread; `wait_for` blocks until one fits."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._told = threading.Condition()

    def __call__(self, value: Any = None) -> None:
        with self._told:
            self.values.append(value)
            self._told.notify_all()

    def wait_for(self, fits: Callable[[Any], bool], what: str) -> Any:
        """Return the newest value once it fits. Fails with all values after PATIENCE_S."""
        with self._told:
            if not self._told.wait_for(lambda: bool(self.values) and fits(self.values[-1]), PATIENCE_S):
                raise AssertionError(f"never told {what}; told: {self.values}")
            return self.values[-1]

    def wait_equal(self, value: Any) -> None:
        """Block until the newest value is `value`."""
        self.wait_for(lambda seen: bool(seen == value), repr(value))
