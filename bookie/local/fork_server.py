"""The child process that starts bookies (`__main__`), and the bookies' processes. Any thread."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from bookie.errors import StartRefused

__all__ = ["Child", "ForkServer", "MESSAGE_BYTES"]

MESSAGE_BYTES = 64 << 10
NOT_FOR_BOOKIES = ("BK_", "BOOKIE_CONF", "NOTIFY_SOCKET", "WATCHDOG_")
STOP_S = 60.0


class Child:
    """A bookie's process, held by a pidfd, so that its id cannot be mistaken for that of another process."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.descriptor = descriptor

    def signal(self, number: int) -> None:
        """Send a signal; do nothing if the process has exited."""
        try:
            signal.pidfd_send_signal(self.descriptor, number)
        except ProcessLookupError:
            return

    def ended(self, timeout_s: float) -> bool:
        """Wait for the process to exit. Returns whether it has."""
        waiter = select.poll()
        waiter.register(self.descriptor, select.POLLIN)
        return bool(waiter.poll(timeout_s * 1000))


class ForkServer:
    """The process that forks bookies. Its calls wait for each other."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._codes: dict[int, int] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process, without waiting for it to be ready."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Settings must come from files only, and numpy's threads would prevent a safe fork.
        environment = {key: value for key, value in os.environ.items() if not key.startswith(NOT_FOR_BOOKIES)}
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this very interpreter
                [sys.executable, "-m", "bookie.local", str(theirs.fileno())],
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C at a terminal is for the owner of the cluster
            )
        self._socket = ours

    def launch(self, conf: Path, log: Path, ready: int) -> Child:
        """Start a bookie with a configuration file. It appends to `log`, and reports on `ready` that it serves
        requests.
        """
        request = json.dumps({"conf": str(conf), "log": str(log)}).encode()
        with self._lock:
            assert self._socket is not None
            try:
                socket.send_fds(self._socket, [request], [ready])
                while True:
                    text, descriptors, _flags, _address = socket.recv_fds(self._socket, MESSAGE_BYTES, 1)
                    if descriptors:
                        return Child(int(json.loads(text)["pid"]), descriptors[0])
                    self._note(text)
            except OSError as error:
                raise StartRefused(
                    f"the process that starts bookies is gone ({error}); start the cluster again"
                ) from error

    def code(self, child: Child) -> int:
        """Return the exit code of a child that has exited (negative: the signal that killed it), and close its
        descriptor.
        """
        with self._lock:
            assert self._socket is not None
            while child.pid not in self._codes:
                self._note(self._socket.recv(MESSAGE_BYTES))
            os.close(child.descriptor)
            return self._codes.pop(child.pid)

    def stop(self) -> None:
        """End the process and all bookies that still run. Further calls do nothing."""
        if self._process is None or self._socket is None:
            return
        self._socket.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = self._socket = None

    def _note(self, text: bytes) -> None:
        if not text:
            raise StartRefused("the process that starts bookies has exited; standard error has its output")
        exited = json.loads(text)
        self._codes[int(exited["pid"])] = int(exited["code"])
