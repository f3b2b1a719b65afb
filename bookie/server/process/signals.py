"""Requests to end a running bookie: SIGTERM or SIGINT, or a part that cannot continue but can stop cleanly.

One thread, `signals`. The interpreter's C handler writes each signal's number to a socket, whatever the main thread
is doing. The first signal requests a stop, the second hurries it, the third ends the process at once.
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
    """A start was asked to stop before it was complete. It is not an error, so no `except Exception` may swallow it."""


class Stop:
    """A request to end, and the exit code. Any thread; `on_request` runs once, on the thread of the first request."""

    def __init__(self, on_request: Callable[[], None]) -> None:
        self._on_request = on_request
        self._lock = threading.Lock()
        self._requested = threading.Event()
        self._code = 0  # guarded by _lock

    def request(self, code: int = 0) -> None:
        """Request to end with `code`. The first request counts."""
        with self._lock:
            if self._requested.is_set():
                return
            self._code = code
            self._on_request()
            self._requested.set()

    def check(self) -> None:
        """Raise StopRequested if a stop was requested."""
        if self._requested.is_set():
            raise StopRequested

    def wait(self) -> int:
        """Wait for a request, and return its code."""
        self._requested.wait()
        return self._code


def install(stop: Stop, hurry: Callable[[], None]) -> None:
    """Handle the signals from now on, for the rest of the process. Call it from the main thread."""
    inbox, outbox = socket.socketpair()
    outbox.settimeout(0)
    signal.set_wakeup_fd(outbox.detach(), warn_on_full_buffer=False)  # first, or a signal between the lines were lost
    for number in WATCHED:
        signal.signal(number, lambda _number, _frame: None)
    threading.Thread(target=_steps, args=(inbox, stop, hurry), name="signals", daemon=True).start()


def _steps(inbox: socket.socket, stop: Stop, hurry: Callable[[], None]) -> None:
    for step in (stop.request, hurry, lambda: os._exit(EXIT_AT_ONCE)):
        while inbox.recv(1)[0] not in WATCHED:
            continue
        step()
