"""Runs the load generator as its users do."""

import json
import subprocess
from pathlib import Path
from typing import Any


def run_load(bkload: Path, mode: str, code: int = 0, **options: object) -> dict[str, Any]:
    """Run bkload with options as keywords, `True` for a flag; `code` is the expected exit code. Return its output, or
    its error message if there is none.
    """
    words = [str(bkload), mode]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return dict(json.loads(done.stdout)) if done.stdout else {"stderr": done.stderr}
