"""The two servers under comparison, as the sessions see them; here the contract and our own bookie.

Apache BookKeeper's is in java_bookie.py. Each lives in a directory of its own, which the session removes.
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
"""Write cache, and as much again for the read cache: the same for both servers."""
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0
# A read of entry 0 of ledger 2^62: every bookie that serves says that it has no such ledger.
PROBE = bytes.fromhex("00000014 02020000 4000000000000000 0000000000000000".replace(" ", ""))


class Server(Protocol):
    """A bookie that can be started again and again on its directory, always on the same port: its cookie names it."""

    @property
    def port(self) -> int:
        """Where it listens on loopback."""

    @property
    def pid(self) -> int:
        """Of the running process."""

    def start(self, settings: Mapping[str, str] = MappingProxyType({})) -> float:
        """Start it; seconds from launch to its first answer. Raises RuntimeError with the log's end.

        `settings` are keys that only our bookie knows.
        """

    def stop(self) -> None:
        """A clean stop: everything is in the entry logs. Idempotent."""

    def entry_logs(self) -> list[Path]:
        """The files that hold entries."""

    def index_directories(self) -> list[Path]:
        """The directories that hold the location index."""


def free_port() -> int:
    """A loopback port that nobody listened on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether a bookie answers a V2 read there; one that is still starting refuses or closes the connection."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as channel:
            channel.sendall(PROBE)
            return len(channel.recv(28)) > 0
    except OSError:
        return False


def seconds_to_answer(process: subprocess.Popen[bytes], port: int, since: float, log: Path) -> float:
    """Wait for the first answer; seconds since `since` (monotonic). Raises RuntimeError with the log's end."""
    while not answers(port):
        waited = time.monotonic() - since
        if process.poll() is not None or waited > START_SECONDS_MAX:
            why = f"ended with {process.returncode}" if process.returncode is not None else f"silent for {waited:.0f} s"
            raise RuntimeError(f"server on port {port}: {why}\n" + log.read_text(errors="replace")[-4000:])
        time.sleep(0.002)
    return time.monotonic() - since


@dataclass(slots=True)
class OurBookie:
    """Our bookie with embedded metadata. `environment` is added to the usual one."""

    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the running process. Raises RuntimeError if it was not started."""
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
        """Start it with these keys besides; seconds to its first answer. Raises RuntimeError with the log's end."""
        for name in ("", "metadata", "journal", "ledgers", "index"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        conf = str(self._write_conf(settings))
        command = [sys.executable, "-c", "from bookie.server.main import main; main()", "--conf", conf]
        log = self.directory / "bookie.log"
        since = time.monotonic()
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **self.environment}, stdout=output,
                                            stderr=subprocess.STDOUT)  # fmt: skip
        return seconds_to_answer(self.process, self.port, since, log)

    def stop(self) -> None:
        """A clean stop; killed if that takes longer than a minute. Idempotent."""
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
        """The files that hold entries."""
        return sorted((self.directory / "ledgers").rglob("*.log"))

    def index_directories(self) -> list[Path]:
        """The directories that hold the location index."""
        return [self.directory / "index"]
