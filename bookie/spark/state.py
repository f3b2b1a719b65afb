"""What a job has done, in a directory: written as units of work end, read when the same job is called again.

`job.json` says which job with which options; `done.jsonl` has a line a finished unit, appended and synced. A line that
a crash cut short is no unit. One process at a time: the directory is locked while it is open.
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
    """The finished units of one job, by name, each with what was found. One thread.

    `directory`: None keeps them in memory alone. `asked`: what makes it the same job when it is called again.
    """

    def __init__(self, directory: Path | None, job: str, asked: Mapping[str, Any]) -> None:
        self.done: dict[str, Facts] = {}
        self.found = 0
        """How many of them an earlier call did."""
        self._directory = directory
        self._description = {"job": job, "options": json.loads(json.dumps(dict(asked), default=str))}
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """IllegalOperation: the directory is another job's, or in use."""
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
            raise IllegalOperation(f"{directory} is in use by another process: wait for it to end") from None
        description = directory / "job.json"
        if description.exists():
            before = json.loads(description.read_bytes())
            if before != self._description:
                raise IllegalOperation(
                    f"{directory} holds the state of {_told(before, self._description)}: name another directory, or"
                    " remove this one to begin anew"
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
        """It is done, for good."""
        self.done[unit] = facts
        if self._file:
            self._file.write(json.dumps({"unit": unit, "facts": facts}).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        return facts


def _told(before: Any, now: Facts) -> str:
    if before.get("job") != now["job"]:
        return f"{before.get('job')}, not of {now['job']}"
    old, new = before.get("options", {}), now["options"]
    changed = next(key for key in sorted({*old, *new}) if old.get(key) != new.get(key))
    return f"{now['job']} with {changed} {old.get(changed)!r}, not {new.get(changed)!r}"
