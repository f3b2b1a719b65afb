"""The finished units of a job on disk, so that the same call can continue it.

`job.json` has the job and its options. `done.jsonl` has a line for each finished unit, appended and synced; a line
that a crash left incomplete does not count. The directory is locked while it is open, so that one process uses it at a
time.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from bookie.durable import write_file
from bookie.errors import IllegalOperation

__all__ = ["State"]

Facts = dict[str, Any]


class State:
    """The finished units of one job, by name, each with its results. Used by one thread.

    Args:
        directory: where the state is kept; None: only in memory.
        job: the name of the job.
        options: the options that must be the same for a later call to continue.
    """

    def __init__(self, directory: Path | None, job: str, options: Mapping[str, Any]) -> None:
        self.done: dict[str, Facts] = {}
        self.found = 0
        """How many of the units an earlier call finished."""
        self._directory = directory
        self._description = {"job": job, "options": json.loads(json.dumps(dict(options), default=str))}
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Lock the directory and load the finished units.

        Raises:
            IllegalOperation: the directory belongs to another job or other options, or is in use.
        """
        if self._directory is None:
            return self
        self._directory.mkdir(parents=True, exist_ok=True)
        self._file = (self._directory / "done.jsonl").open("a+b")
        try:
            self._load(self._directory, self._file)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()

    def _load(self, directory: Path, file: BinaryIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IllegalOperation(
                f"{directory} is in use by another process: wait until that ends, or name another directory"
            ) from None
        description = directory / "job.json"
        if description.exists():
            before = json.loads(description.read_bytes())
            if before != self._description:
                raise IllegalOperation(
                    f"{directory} holds the state of {_describe_difference(before, self._description)}: name another"
                    " directory, or remove this one to start over"
                )
        else:
            write_file(description, json.dumps(self._description, indent=2).encode())
        file.seek(0)
        whole, _, _ = file.read().rpartition(b"\n")
        file.truncate(len(whole) + bool(whole))
        for line in whole.splitlines():
            unit = json.loads(line)
            self.done[unit["unit"]] = unit["facts"]
        self.found = len(self.done)

    def note(self, unit: str, **facts: Any) -> Facts:
        """Record a finished unit durably and return its results."""
        self.done[unit] = facts
        if self._file:
            self._file.write(json.dumps({"unit": unit, "facts": facts}).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        return facts


def _describe_difference(before: Any, now: Facts) -> str:
    if before.get("job") != now["job"]:
        return f"{before.get('job')}, not of {now['job']}"
    old, new = before.get("options", {}), now["options"]
    changed = next(key for key in sorted({*old, *new}) if old.get(key) != new.get(key))
    return f"{now['job']} with {changed} {old.get(changed)!r}, not {new.get(changed)!r}"
