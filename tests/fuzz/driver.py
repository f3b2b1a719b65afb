"""Runs one fuzz target under atheris in a process of its own, from its seeds, for BOOKIE_FUZZ_SECONDS."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = int(os.environ.get("BOOKIE_FUZZ_SECONDS", "60"))
ROOT = Path(__file__).resolve().parent.parent.parent


def fuzz(module: str, name: str, seeds: list[bytes], corpus: Path, bytes_max: int) -> None:
    """Run the target, and fail on a crash, a leak, or an answer that differs from the model's.

    Skips the test where atheris is not installed.
    """
    pytest.importorskip("atheris", reason="pip install atheris")
    for number, seed in enumerate(seeds):
        (corpus / f"{number}").write_bytes(seed)
    same = ["-seed=1"] if "BOOKIE_SAME_DRAWS" in os.environ else []
    options = [*same, f"-max_total_time={SECONDS}", f"-max_len={bytes_max}", "-rss_limit_mb=1024", "-verbosity=0"]
    done = subprocess.run(
        [sys.executable, "-m", module, name, *options, str(corpus)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS + 120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
