"""The Java client under test, as an object whose calls go over a pipe to one `peer.Driver` process.

`call` blocks for the answer, and `submit` returns a Future. One reader thread per driver hands the answers out; any
thread may call. A failure on the Java side is a `JavaError` with the BKException code.
"""

import itertools
import json
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tests.fixtures.java_peer import LASTING, JavaPeer

# BKException codes that the tests name.
NO_SUCH_LEDGER = -7
NO_SUCH_ENTRY = -13
NO_SUCH_LEDGER_METADATA = -25
NOT_ENOUGH_BOOKIES = -6
FENCED = -101
UNAUTHORIZED = -102
LEDGER_CLOSED = -11
READ_FAILED = -1
NO_BOOKIE_HANDLE = -8
WRITE_FAILED = -12

# What the Java client answers a writer whose ledger was recovered, if its ack quorum is smaller than its write quorum
# and there is no other bookie. The fence can overtake adds at a bookie that was not needed to acknowledge them. It
# refuses them as fenced, and like after any error of an acknowledged add, the client replaces that bookie before its
# next add (LedgerHandle.notifyWriteFailed), or fails to.
FENCED_TOO_LATE = {FENCED, NOT_ENOUGH_BOOKIES}

# Flags of raw requests.
FLAG_FENCE = 0x0001
FLAG_RECOVERY_ADD = 0x0002
FLAG_HIGH_PRIORITY = 0x0004

LOG_END = 8000
"""How many characters of the log a failed assertion shows."""

Answer = dict[str, Any]


class JavaError(Exception):
    """What the Java client threw: its BKException code (0 if it is not a BKException), class name and message."""

    def __init__(self, code: int, name: str, message: str) -> None:
        super().__init__(f"{name} ({code}): {message}")
        self.code = code


class Driver:
    """One `peer.Driver` process, which `start` starts and `stop` stops."""

    def __init__(
        self,
        peer: JavaPeer,
        log: Path,
        *,
        heap_mb: int = 512,
        direct_mb: int = 512,
        options: Sequence[str] = (),
        on: Sequence[str] = (),
    ) -> None:
        options = (*LASTING, *options)
        self._command = [*on, *peer.command("peer.Driver", heap_mb=heap_mb, direct_mb=direct_mb, options=options)]
        self._log = log
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Answer]] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def log_end(self) -> str:
        """Return the end of what the process has written to its log."""
        return self._log.read_text(errors="replace")[-LOG_END:]

    def start(self) -> None:
        """Start the process. The first call waits for it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
            )
        self._reader = threading.Thread(target=self._read, name="java-driver", daemon=True)
        self._reader.start()

    def submit(self, op: str, **arguments: Any) -> Future[Answer]:
        """Send one request, whose answer arrives in the returned future."""
        assert self._process is not None
        assert self._process.stdin is not None
        number = next(self._numbers)
        future: Future[Answer] = Future()
        with self._lock:
            self._waiting[number] = future
            self._process.stdin.write(json.dumps({"id": number, "op": op, **arguments}) + "\n")
        return future

    def call(self, op: str, *, seconds: float = 120, **arguments: Any) -> Answer:
        """Send one request and wait for its answer. Raises JavaError, or TimeoutError."""
        return self.submit(op, **arguments).result(timeout=seconds)

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer["id"])
            if "error" in answer:
                error = answer["error"]
                future.set_exception(JavaError(error["code"], error["name"], error["message"]))
            else:
                future.set_result(answer["ok"])
        with self._lock:
            lost = list(self._waiting.values())
            self._waiting.clear()
        for future in lost:
            future.set_exception(JavaError(0, "ProcessEnded", f"the Java client ended; see {self._log}"))

    def stop(self) -> None:
        """Close the process's input, which ends it, and kill it if it lingers."""
        if self._process is None or self._reader is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
