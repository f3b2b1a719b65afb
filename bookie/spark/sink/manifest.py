"""The ledgers of a commit as a file on the driver: `<manifestPath>/<query or job>-<batch>.json`."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bookie.durable import write_file
from bookie.spark.sink.results import Result

__all__ = ["write_manifest"]


def write_manifest(directory: str, job: str, batch: int, results: Iterable[Result]) -> Path:
    """Write the manifest of a batch atomically and return its path. A repeated batch replaces its own manifest.

    Raises:
        OSError: the file cannot be written.
    """
    results = list(results)
    writer = next((one.query for one in results if one.query), job)
    rows = [{"partition": result.partition, **asdict(one)} for result in results for one in result.written]
    path = Path(directory) / f"{writer}-{batch}.json"
    write_file(path, json.dumps({"writer": writer, "batch": batch, "ledgers": rows}, indent=1).encode())
    return path
