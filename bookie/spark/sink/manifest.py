"""The ledgers of a commit as a file on the driver's machine: `<manifestPath>/<query or job>-<batch>.json`."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile

from bookie.durable import sync_directory
from bookie.spark.sink.results import Result

__all__ = ["write_manifest"]


def write_manifest(directory: str, job: str, batch: int, results: Iterable[Result]) -> Path:
    """Whole or not there; a batch that is repeated replaces its own. OSError."""
    results = list(results)
    writer = next((one.query for one in results if one.query), job)
    rows = [{"partition": result.partition, **asdict(one)} for result in results for one in result.written]
    path = Path(directory) / f"{writer}-{batch}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False) as file:
        json.dump({"writer": writer, "batch": batch, "ledgers": rows}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)
    sync_directory(path.parent)
    return path
