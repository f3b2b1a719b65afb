"""What the commands that play seeds share."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

FOUND = Path(__file__).with_name("found.txt")


def seeds_of(text: str) -> Iterator[int]:
    """Yield the seeds that `text` names: single ones and ranges `first:last` without the last, between commas."""
    for part in text.split(","):
        first, _, last = part.partition(":")
        yield from range(int(first), int(last) if last else int(first) + 1)


def fixed_environment(module: str, **more: str) -> None:
    """Start `module` again unless its environment is the same in every process. Call it before numpy is loaded.

    The order of sets, and the threads of numpy's libraries, must not differ between processes. `more` has
    variables that compiled modules read when they are loaded.
    """
    wanted = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", **more}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        fixed = {**os.environ, **wanted}
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], fixed)  # noqa: S606


def found_seeds() -> dict[str, int]:
    """Return the seed at which each planted bug was found, from the table that tests/engine/hunt.py writes."""
    return {bug: int(seed) for bug, seed, *_ in map(str.split, FOUND.read_text().splitlines())}
