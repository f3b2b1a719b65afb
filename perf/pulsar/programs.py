"""`pulsar-perf`, the load generator that comes with the broker: what it is called with, and what it prints."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.fixtures.pulsar import PulsarBroker

__all__ = ["Load", "Measured", "start"]

MAIN = "org.apache.pulsar.testclient.PulsarPerfTestTool"
HEAP_MB = 1024
WAIT_S = 300
RATE = re.compile(r"Aggregated throughput stats --- *(\d+) records \w+ --- +([\d.]+) *msg/s")
LATENCY = re.compile(r"Aggregated latency stats --- Latency: .*? 99pct: +([\d.]+)")


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one program: messages, their rate a second, and the p99 of their latency in ms."""

    messages: int
    rate: float
    p99_ms: float


class Load:
    """A program that runs."""

    def __init__(self, process: "subprocess.Popen[str]", wait_s: float = WAIT_S) -> None:
        self._process, self._wait_s = process, wait_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it if it still runs."""
        self._process.kill()
        self._process.communicate()

    def result(self) -> Measured:
        """Wait for its end.

        Raises:
            RuntimeError: it printed no result, or did not end within minutes; the text has the end of its output.
        """
        try:
            text, _ = self._process.communicate(timeout=self._wait_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            text, _ = self._process.communicate()
            raise RuntimeError(f"pulsar-perf did not end in {self._wait_s:g} s:\n{text[-4000:]}") from None
        rate, latency = RATE.search(text), LATENCY.search(text)
        if rate is None or latency is None:
            raise RuntimeError(f"pulsar-perf printed no result:\n{text[-4000:]}")
        return Measured(int(rate[1]), float(rate[2]), float(latency[1]))


def start(broker: PulsarBroker, directory: Path, words: Sequence[str]) -> Load:
    """Start `pulsar-perf` with these words, such as `produce` and its options."""
    conf = directory / "client.conf"
    conf.write_text(f"brokerServiceUrl={broker.url}\nwebServiceUrl={broker.web}\n")
    command = broker.command(MAIN, str(conf), *words, heap_mb=HEAP_MB)
    return Load(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
