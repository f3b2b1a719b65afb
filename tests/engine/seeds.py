"""What the commands that play seeds share."""

import os
import sys
from collections.abc import Iterator


def seeds_of(text: str) -> Iterator[int]:
    """Yield the seeds that `text` names: single ones and ranges `first:last` without the last, between commas."""
    for part in text.split(","):
        first, _, last = part.partition(":")
        yield from range(int(first), int(last) if last else int(first) + 1)


def fixed_environment(module: str) -> None:
    """Start `module` again unless its environment is the same in every process. Call it before numpy is loaded.

    The order of sets of strings, and the threads of numpy's libraries, must not differ between processes.
    """
    if os.environ.get("PYTHONHASHSEED") != "0":
        fixed = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], fixed)  # noqa: S606
