"""How a running bookie is told to end: by SIGTERM or SIGINT, or by a part that cannot go on but can stop in order.

One thread, `signals`. The interpreter's C handler writes each signal's number into a socket whatever the main thread is
doing. The first signal asks for a stop, the second hurries it, the third ends the process at once.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable

__all__ = ["install", "Stop", "StopRequested"]

WATCHED = (signal.SIGTERM, signal.SIGINT)
EXIT_AT_ONCE = 2


class StopRequested(BaseException):
    """A start was told to stop before it had finished. Not an error: no `except Exception` may swallow it."""


class Stop:
    """The wish to end, and the exit code. Any thread; `on_request` runs once, on the thread that wished first."""

    def __init__(self, on_request: Callable[[], None]) -> None:
        self._on_request = on_request
        self._lock = threading.Lock()
        self._requested = threading.Event()
        self._code = 0  # guarded by _lock

    def request(self, code: int = 0) -> None:
        """End with `code`; the first wish counts."""
        with self._lock:
            if self._requested.is_set():
                return
            self._code = code
            self._on_request()
            self._requested.set()

    def check(self) -> None:
        """Raise StopRequested if a stop was asked for."""
        if self._requested.is_set():
            raise StopRequested

    def wait(self) -> int:
        """Wait for the wish; its code."""
        self._requested.wait()
        return self._code


def install(stop: Stop, hurry: Callable[[], None]) -> None:
    """From now on the signals are ours. Call from the main thread; for the rest of the process."""
    inbox, outbox = socket.socketpair()
    outbox.settimeout(0)
    for number in WATCHED:
        signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(outbox.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_steps, args=(inbox, stop, hurry), name="signals", daemon=True).start()


def _steps(inbox: socket.socket, stop: Stop, hurry: Callable[[], None]) -> None:
    for step in (stop.request, hurry, lambda: os._exit(EXIT_AT_ONCE)):
        while inbox.recv(1)[0] not in WATCHED:
            continue
        step()
