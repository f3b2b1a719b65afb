"""Ends the process when it must not continue: after a failed write or sync, a dead essential thread, or a stop that
takes too long.

It also tells systemd that all is well, if that is configured (`WatchdogSec=`). It has one thread, `supervisor`,
which waits for the fatal latch of `bookie._fast.base.fatal` without the GIL. It exits with `os._exit`: after a
failed sync nothing more may be flushed, and the next start recovers from the journal.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType

from bookie._fast.base import fatal
from bookie.server.process.notify import notify, watchdog_s

__all__ = ["EXIT_BOOKIE_FAILED", "EXIT_STUCK", "Supervisor"]

log = logging.getLogger(__name__)

EXIT_STUCK = 2
EXIT_BOOKIE_FAILED = 5
POLL_S = 0.25
LAST_WORDS_S = 1.0


class Supervisor:
    """Ends the process. `leave` is `os._exit`; only tests pass another."""

    def __init__(self, leave: Callable[[int], object] = os._exit) -> None:
        self._leave = leave
        self._deadline: float | None = None
        self._finish: tuple[float, int] | None = None  # when, and the exit code
        self._watched: dict[str, Callable[[], bool]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Watch the latch, and let every uncaught exception in a thread set it."""
        threading.excepthook = _trip_on_death
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. Idempotent."""
        self._done.set()

    def watch(self, name: str, is_alive: Callable[[], bool]) -> None:
        """End the process once `is_alive()` is false. Call `forget` before the thread ends as requested."""
        self._watched[name] = is_alive

    def forget(self, name: str) -> None:
        """Stop watching `name`, which is about to end as requested."""
        self._watched.pop(name, None)

    def limit(self, seconds: float) -> None:
        """Give the process this long to end by itself, from now on. A later call can only shorten it."""
        deadline = time.monotonic() + seconds
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def finish(self, code: int, within_s: float) -> None:
        """Let the process exit with `code` by itself, within this long: everything is stopped, and a thread that still
        waits, as for another bookie on behalf of a request, is not waited for.
        """
        self._finish = time.monotonic() + within_s, code

    def _run(self) -> None:
        every_s = watchdog_s()
        notified = float("-inf")
        while not self._done.is_set():
            if every_s is not None and time.monotonic() - notified >= every_s:
                notify("WATCHDOG=1")
                notified = time.monotonic()
            failure = fatal.wait(POLL_S)
            if failure:
                what, error = failure
                reason = os.strerror(error) if error else "see above"
                self._end(EXIT_BOOKIE_FAILED, "a fatal failure occurred; nothing more is acknowledged", what, reason)
                return
            # Asked again, because a thread may be forgotten and end while the others are looked at.
            dead = [name for name, is_alive in tuple(self._watched.items()) if not is_alive() and name in self._watched]
            if dead:
                self._end(EXIT_BOOKIE_FAILED, "an essential thread died", ",".join(dead), "see above")
                return
            if self._finish is not None and time.monotonic() > self._finish[0]:
                ending = (threading.main_thread(), self._thread)
                left = ",".join(one.name for one in threading.enumerate() if one not in ending)
                self._end(self._finish[1], "the process ends before some of its threads", left, "", logging.INFO)
                return
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._end(EXIT_STUCK, "the stop took too long", "shutdownTimeoutMs", "raise it if disks are slow")
                return

    def _end(self, code: int, message: str, what: str, reason: str, level: int = logging.CRITICAL) -> None:
        """Log, without waiting long for a log that is blocked, and exit."""
        facts = {"what": what, "reason": reason, "exit_code": code}
        words = threading.Thread(target=log.log, args=(level, message), kwargs={"extra": facts}, daemon=True)
        words.start()
        words.join(LAST_WORDS_S)
        self._leave(code)


def _trip_on_death(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "unknown"
    trace: tuple[type[BaseException], BaseException, TracebackType | None] | None = None
    if args.exc_value is not None:
        trace = (args.exc_type, args.exc_value, args.exc_traceback)
    log.critical("a thread died", extra={"thread_name": name}, exc_info=trace)
    fatal.trip(f"thread {name}: {args.exc_type.__name__}: {args.exc_value}")
