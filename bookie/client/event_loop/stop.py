"""Cancel a coroutine from any thread."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

__all__ = ["Stop"]


class Stop:
    """Cancels the one coroutine that is run with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until it ends, or raise CancelledError once `set` is called. Event loop."""
        task = asyncio.ensure_future(work)
        with self._lock:
            self._running = asyncio.get_running_loop(), task
            if self._set:
                task.cancel()
        try:
            await task
        finally:
            with self._lock:
                self._running = None

    def set(self) -> None:
        """Cancel the coroutine now, or as soon as it is run. Idempotent; any thread."""
        with self._lock:
            self._set = True
            if self._running is not None:
                loop, task = self._running
                loop.call_soon_threadsafe(task.cancel)
