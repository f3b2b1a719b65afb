"""The two servers under comparison: their common interface, and our own bookie.

Apache BookKeeper's is in java_bookie.py. Each runs in a directory of its own, which the session removes.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

ROOT = Path(__file__).resolve().parents[2]
CACHE_MIB = 512
"""The size of the write cache, and of the read cache: the same for both servers."""
START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 60.0
# A read of entry 0 of ledger 2^62: every bookie that serves says that it has no such ledger.
PROBE = bytes.fromhex("00000014 02020000 4000000000000000 0000000000000000".replace(" ", ""))


class Server(Protocol):
    """A bookie that can be restarted on its directory, always on the same port, because its cookie names it."""

    @property
    def port(self) -> int:
        """The port on which it listens on loopback."""

    @property
    def pid(self) -> int:
        """The id of the running process."""

    def start(self, settings: Mapping[str, str] = MappingProxyType({})) -> float:
        """Start it; return the seconds from launch to its first response. `settings` are keys that only our bookie
        has.

        Raises:
            RuntimeError: it does not respond; the text has the end of its log.
        """

    def stop(self) -> None:
        """Stop it cleanly, so that everything is in the entry logs. Idempotent."""

    def entry_logs(self) -> list[Path]:
        """Return the files that hold entries."""

    def index_directories(self) -> list[Path]:
        """Return the directories that hold the location index."""


def free_port() -> int:
    """Return a loopback port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Return whether a bookie answers a V2 read there; one that is still starting refuses or closes the connection."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as channel:
            channel.sendall(PROBE)
            return len(channel.recv(28)) > 0
    except OSError:
        return False


def seconds_to_answer(process: subprocess.Popen[bytes], port: int, since: float, log: Path) -> float:
    """Wait for the first response; return the seconds since `since` (monotonic).

    Raises:
        RuntimeError: it does not respond; the text has the end of its log.
    """
    while not answers(port):
        waited = time.monotonic() - since
        if process.poll() is not None or waited > START_SECONDS_MAX:
            why = f"ended with {process.returncode}" if process.returncode is not None else f"silent for {waited:.0f} s"
            raise RuntimeError(f"server on port {port}: {why}\n" + log.read_text(errors="replace")[-4000:])
        time.sleep(0.002)
    return time.monotonic() - since


@dataclass(slots=True)
class OurBookie:
    """Our bookie with embedded metadata. `environment` is added to the usual environment; `program` are the arguments
    of Python that run it.
    """

    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ("-c", "from bookie.server.main import main; main()")
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of the running process.

        Raises:
            RuntimeError: it was not started.
        """
        if self.process is None:
            raise RuntimeError("the bookie is not running")
        return self.process.pid

    def _write_conf(self, settings: Mapping[str, str]) -> Path:
        keys = {
            "bookiePort": str(self.port),
            "advertisedAddress": "127.0.0.1",
            "allowLoopback": "true",
            "adminPort": "0",
            "metadataServiceUri": f"lmdb://{self.directory}/metadata",
            "journalDirectories": f"{self.directory}/journal",
            "ledgerDirectories": f"{self.directory}/ledgers",
            "indexDirectories": f"{self.directory}/index",
            "dbStorage_writeCacheMaxSizeMb": str(CACHE_MIB),
            "dbStorage_readAheadCacheMaxSizeMb": str(CACHE_MIB),
            "diskUsageThreshold": "0.99",
            "diskUsageWarnThreshold": "0.98",
            **settings,
        }
        path = self.directory / "bookie.conf"
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        return path

    def start(self, settings: Mapping[str, str] = MappingProxyType({})) -> float:
        """Start it with additional keys; return the seconds to its first response.

        Raises:
            RuntimeError: it does not respond; the text has the end of its log.
        """
        for name in ("", "metadata", "journal", "ledgers", "index"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        conf = str(self._write_conf(settings))
        command = [sys.executable, *self.program, "--conf", conf]
        log = self.directory / "bookie.log"
        since = time.monotonic()
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **self.environment}, stdout=output,
                                            stderr=subprocess.STDOUT)  # fmt: skip
        return seconds_to_answer(self.process, self.port, since, log)

    def stop(self) -> None:
        """Stop it cleanly, or kill it after a minute. Idempotent."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def entry_logs(self) -> list[Path]:
        """Return the files that hold entries."""
        return sorted((self.directory / "ledgers").rglob("*.log"))

    def index_directories(self) -> list[Path]:
        """Return the directories that hold the location index."""
        return [self.directory / "index"]
