"""Disks of a set latency and rate, one for each journal and each ledger directory of a bookie."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.side_by_side.servers import OurBookie

__all__ = ["Disks", "VARIABLE"]

VARIABLE = "PERF_SCALE_DISKS"
"""The environment variable that says which disks the bookie has."""


@dataclass(frozen=True, slots=True)
class Disks:
    """What each disk is like: the latency of a write or a sync in milliseconds, and MB/s, where 0 means no limit."""

    latency_ms: float
    mb_s: int

    def row(self) -> dict[str, Any]:
        """Return it as columns of a result."""
        return {"latency_ms": self.latency_ms, "disk_mb_s": self.mb_s}

    def attach(self, server: OurBookie, settings: Mapping[str, str]) -> None:
        """Give a bookie that is not running a disk for each journal, then one for each ledger directory and its
        index.
        """
        journals, ledgers, indexes = (
            settings[f"{kind}Directories"].split(",") for kind in ("journal", "ledger", "index")
        )
        plan = {
            "groups": [[path] for path in journals] + [list(pair) for pair in zip(ledgers, indexes, strict=True)],
            "latency_us": round(1000 * self.latency_ms),
            "bytes_s": 1_000_000 * self.mb_s,
            "socket": str(_socket(server)),
        }
        server.program = ("-m", "perf.scale.slow_bookie")
        server.environment[VARIABLE] = json.dumps(plan)

    def written(self, server: OurBookie) -> list[int]:
        """Return the bytes written to each disk so far."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.connect(str(_socket(server)))
            with channel.makefile() as answer:
                return list(json.load(answer))


def _socket(server: OurBookie) -> Path:
    return server.directory / "disks"
