"""The thread `scrub` of a bookie: when a pass runs, what it found, its status, and an operator's commands.

A pass reads the entry logs of each ledger directory that exist when it comes to that directory, oldest first. Any
thread may give commands and call `status`, `stats` and `follow`; everything else happens on `scrub`.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookie._fast.base.pace import Pacer
from bookie._fast.base.process import show_name, wish_background
from bookie._fast.store.gc.scrub import Scrubber
from bookie._fast.wire.digest import Digester
from bookie.storage import descriptors
from bookie.storage.layout import HEX_NAME
from bookie.storage.scrub.counters import Counters
from bookie.storage.scrub.cursor import CursorFile
from bookie.storage.scrub.digests import Digests
from bookie.storage.scrub.findings import Finding, Kind
from bookie.storage.scrub.logs import LogScrub
from bookie.storage.scrub.settings import ScrubSettings

__all__ = ["Scrub", "Status"]

SETTLE_S = 600.0
"""The live bytes of each log are compared with the index at most this often, and at the end of a pass."""
RESUME_S = 60.0
"""How long after the start an interrupted pass continues."""
FINDINGS_KEPT = 100
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status for an operator. Times are milliseconds since the epoch; 0 means never."""

    enabled: bool
    running: bool
    paused: bool
    rate: int
    """Bytes per second; 0 means no limit."""
    number: int
    """The number of the present pass, or of the last one."""
    log: str
    """The log being read; empty between logs."""
    bytes_done: int
    bytes_in_all: int
    """Bytes of the present pass."""
    began_ms: int
    ended_ms: int
    took_ms: int
    """The duration of the last complete pass."""
    next_ms: int
    """When the next pass is due; 0 if only a command begins one, or one is running."""
    found: int
    """Findings of the present pass, or of the last one."""
    findings: tuple[Finding, ...]
    """The most recent findings since the start."""
    counters: dict[str, int | float]


class Scrub:
    """The scrub of a bookie. Call `start`, then `stop`, which is idempotent; after that the scrubbers may be closed.

    `ask_digest` returns the Digester of a ledger from its metadata, or None if it has none; it raises BookKeeperError
    if that is not known now.
    """

    def __init__(
        self,
        settings: ScrubSettings,
        scrubbers: Sequence[Scrubber],
        ask_digest: Callable[[int], Digester | None],
        *,
        keep_in: Path | None = None,
    ) -> None:
        """Create it without starting it. `keep_in` is the directory in which the position is kept."""
        self._settings = settings
        self._digests = Digests(ask_digest)
        self.pace = Pacer(settings.rate_bytes_per_s)
        self._logs = [LogScrub(scrubber, self._digests, self.pace, self._progress) for scrubber in scrubbers]
        self._file = CursorFile(keep_in)
        self._cursor = self._file.read()
        self._counters = Counters()
        self._thread = threading.Thread(target=self._run, name="scrub", daemon=True)
        self._changed = threading.Condition()
        # Guarded by _changed:
        self._stopping = False
        self._ordered = False
        self._ended = 0
        self._followers: list[Callable[[Finding], None]] = []
        # Of thread `scrub`, read by anybody:
        self._doing = ""
        self._in_all = 0
        self._findings: deque[Finding] = deque(maxlen=FINDINGS_KEPT)
        self._unsettled: dict[tuple[int, int], int] = {}
        self._settled_at = 0.0
        now_ms, due_ms = _wall_ms(), self._cursor.ended_ms + 1000 * settings.interval_s
        self._due = time.monotonic() + (RESUME_S if self._cursor.began_ms else max(0, due_ms - now_ms) / 1000)

    def start(self) -> None:
        """Start the thread. Its first pass runs when it is due; an interrupted one continues after a minute."""
        self._thread.start()

    def stop(self) -> None:
        """End a running pass where it stands, and the thread. Idempotent."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.pace.stop()
        if self._thread.is_alive():
            self._thread.join()

    def threads(self) -> tuple[threading.Thread, ...]:
        """Return the thread, which must not end before `stop`."""
        return (self._thread,)

    def follow(self, listener: Callable[[Finding], None]) -> None:
        """Call `listener` with every finding from now on, on the thread `scrub`, which waits for it."""
        with self._changed:
            self._followers.append(listener)

    # Commands of an operator. Any thread.

    def begin(self) -> int:
        """Begin a pass now, or continue an interrupted one. Return how many had ended before it, for `wait`."""
        with self._changed:
            self._ordered = True
            self._changed.notify_all()
            return self._ended

    def wait(self, before: int, timeout_s: float) -> bool:
        """Wait until one more pass than `before` has ended. Return False after a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended > before or self._stopping, timeout_s)

    def pause(self, *, paused: bool) -> None:
        """Pause or resume reading. A restart of the bookie resumes it."""
        self.pace.pause(paused)

    def set_rate(self, bytes_per_s: int) -> None:
        """Set the rate until the next start; 0 means no limit."""
        self.pace.set_rate(bytes_per_s)

    def status(self) -> Status:
        """Return what runs, what ran, and what was found."""
        with self._changed:
            running, ordered = bool(self._doing), self._ordered
        cursor = self._cursor
        waits = self._settings.enabled and not running and not ordered
        return Status(
            enabled=self._settings.enabled,
            running=running,
            paused=self.pace.paused,
            rate=self.pace.rate,
            number=cursor.number,
            log=self._doing if "/" in self._doing else "",
            bytes_done=cursor.bytes,
            bytes_in_all=self._in_all,
            began_ms=cursor.began_ms,
            ended_ms=cursor.ended_ms if self._has_ended() else 0,
            took_ms=cursor.took_ms,
            next_ms=_wall_ms() + int(1000 * max(0.0, self._due - time.monotonic())) if waits else 0,
            found=cursor.found,
            findings=tuple(self._findings),
            counters=self._counters.stats(),
        )

    def stats(self) -> dict[str, int | float]:
        """Return counters and gauges."""
        cursor = self._cursor
        return {
            **self._counters.stats(),
            "scrub_running_now": int(bool(self._doing)),
            "scrub_paused_now": int(self.pace.paused),
            "scrub_rate_now": self.pace.rate,
            "scrub_last_pass_ended_ms": cursor.ended_ms if self._has_ended() else 0,
            "scrub_last_pass_took_ms": cursor.took_ms,
        }

    def _has_ended(self) -> bool:
        return self._cursor.number - bool(self._cursor.began_ms) > 0

    # The body of the thread.

    def _run(self) -> None:
        show_name("scrub")
        wish_background()
        while self._await_order():
            try:
                self._pass()
            except OSError as error:
                if not descriptors.are_used_up(error):
                    raise
                self._due = time.monotonic() + RESUME_S
                log.warning("no file descriptor is left; the scrub continues later", extra={"again_in_s": RESUME_S})
            with self._changed:
                self._doing = ""
                self._changed.notify_all()

    def _await_order(self) -> bool:
        """Wait until a pass is due or ordered. Return False when the bookie stops."""
        with self._changed:
            while not self._stopping and not self._ordered:
                left = self._due - time.monotonic()
                if self._settings.enabled and left <= 0:
                    break
                self._changed.wait(min(left, threading.TIMEOUT_MAX) if self._settings.enabled else None)
            self._ordered = False
            self._doing = "beginning"
            return not self._stopping

    def _pass(self) -> None:
        cursor, began = self._cursor, time.monotonic()
        goes_on = cursor.began_ms > 0
        if not goes_on:
            cursor.number += 1
            cursor.began_ms = _wall_ms()
            cursor.directory = cursor.log_id = cursor.bytes = cursor.found = 0
        self._digests.forget()
        self._unsettled = {}
        self._settled_at = began
        log.info("a scrub pass begins" if not goes_on else "a scrub pass continues", extra={"pass": cursor.number})
        self._in_all = cursor.bytes + sum(self._bytes_left(at) for at in range(cursor.directory, len(self._logs)))
        while cursor.directory < len(self._logs):
            if not self._directory(cursor.directory):
                return
            self._settle(cursor.directory)
            cursor.directory, cursor.log_id = cursor.directory + 1, 0
            self._file.write(cursor)
        cursor.ended_ms = _wall_ms()
        cursor.took_ms = max(cursor.ended_ms - cursor.began_ms, 0)
        cursor.began_ms = 0
        self._file.write(cursor)
        self._counters.passes += 1
        self._due = max(time.monotonic(), began + self._settings.interval_s)
        facts = {"pass": cursor.number, "bytes": cursor.bytes, "seconds": cursor.took_ms // 1000}
        log.info("a scrub pass ended", extra={**facts, "found": cursor.found})
        with self._changed:
            self._ended += 1

    def _directory(self, at: int) -> bool:
        """Read the logs of a directory from the cursor on. Return False when the bookie stops."""
        logs, cursor = self._logs[at], self._cursor
        self._file.write(cursor)
        for log_id in self._ids(at):
            if log_id < cursor.log_id:
                continue
            self._doing = str(logs.path(log_id))
            cpu = time.thread_time()
            done = logs.scrub(log_id)
            self._counters.thread_ms += int(1000 * (time.thread_time() - cpu))
            if done.stopped or self._stopping:
                return False
            self._counters.logs += 1
            self._counters.records += done.records
            self._counters.verified += done.verified
            for finding in done.findings:
                self._tell(finding)
            if not done.settled:
                self._unsettled[at, log_id] = done.live
            cursor.log_id = log_id + 1
            self._file.write(cursor)
            if time.monotonic() - self._settled_at >= SETTLE_S:
                self._settle(at)
        return True

    def _settle(self, at: int) -> None:
        """Compare the live bytes that scans saw with those in the index now. If the index has more, a record is
        missing from a log. Fewer bytes are normal, because entries were deleted or moved since.
        """
        self._doing = "comparing with the index"
        self._settled_at = time.monotonic()
        logs = self._logs[at]
        try:
            logs.scrubber.check_tables()
            live = logs.scrubber.live_bytes()
            for (_, log_id), seen in self._unsettled.items():
                if live.get(log_id, 0) > seen:
                    for finding in logs.by_index(log_id):
                        self._tell(finding)
        except OSError as error:
            descriptors.pass_on_used_up(error)
            self._tell(Finding(kind=Kind.INDEX, directory=logs.scrubber.directory, why=str(error)))
        self._unsettled = {}

    def _tell(self, finding: Finding) -> None:
        self._counters.found[finding.kind] += 1
        self._cursor.found += 1
        self._findings.append(finding)
        log.error("the scrub found damage", extra=finding.facts())
        with self._changed:
            followers = list(self._followers)
        for listener in followers:
            listener(finding)

    def _progress(self, count: int) -> None:
        self._counters.bytes += count
        self._cursor.bytes += count

    def _ids(self, at: int) -> list[int]:
        names = (HEX_NAME.match(path.name) for path in Path(self._logs[at].scrubber.directory).iterdir())
        return sorted(int(name[1], 16) for name in names if name and name[2] == "log")

    def _bytes_left(self, at: int) -> int:
        total = 0
        for log_id in self._ids(at):
            if at > self._cursor.directory or log_id >= self._cursor.log_id:
                try:
                    total += self._logs[at].path(log_id).stat().st_size
                except FileNotFoundError:
                    continue
        return total


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
