"""Run every fuzz target for a while, one after the other: `python -m tests.fuzz 1:2 --seconds 10`.

A seed is that of libFuzzer; each runs all targets from their own seeds. The totals are executions, target by target.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import auth_messages, direct_answers, start_tls, storage_files, wire_frames

ROOT = Path(__file__).resolve().parents[2]
EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
BYTES_MAX = 8192
PATIENCE_S = 300

Seeds = Callable[[], list[bytes]]


def targets() -> list[tuple[str, str, Seeds]]:
    """Return module, name and seeds of each target."""
    found: list[tuple[str, str, Seeds]] = []
    for module in (wire_frames, storage_files, auth_messages, direct_answers):
        found += [(module.__name__, name, seeds) for name, (_, seeds) in module.TARGETS.items()]
    found.append((start_tls.__name__, start_tls.NAME, start_tls.seeds))
    return found


def fuzz(module: str, name: str, seeds: Seeds, seed: int, seconds: float) -> tuple[int, str]:
    """Run one target. Return the number of executions, and what was found, or ""."""
    with tempfile.TemporaryDirectory(prefix="bookie-fuzz-") as corpus:
        for number, data in enumerate(seeds()):
            (Path(corpus) / f"{number}").write_bytes(data)
        options = [f"-seed={seed % (1 << 31) + 1}", f"-max_total_time={seconds:g}", f"-max_len={BYTES_MAX}"]
        words = [*options, "-rss_limit_mb=1024", "-print_final_stats=1", "-artifact_prefix=build/", corpus]
        done = subprocess.run(
            [sys.executable, "-m", module, name, *words],
            capture_output=True, text=True, errors="replace", check=False, timeout=seconds + PATIENCE_S, cwd=ROOT,
        )  # fmt: skip
    count = EXECUTIONS.search(done.stderr)
    finding = f"status {done.returncode}: {done.stderr.strip()[-400:]!r}" if done.returncode or not count else ""
    return int(count[1]) if count else 0, finding


def main() -> int:
    """Parse the arguments, run the targets, and print the findings and the totals."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("seeds", help="a seed, or first:last (the last one is not run)")
    parser.add_argument("--seconds", type=float, default=5, help="how long each target runs with each seed (5)")
    given = parser.parse_args()
    first, _, end = given.seeds.partition(":")
    begun, failed, executions = time.monotonic(), 0, Counter[str]()
    (ROOT / "build").mkdir(exist_ok=True)
    for seed in range(int(first), int(end) if end else int(first) + 1):
        for module, name, seeds in targets():
            title = f"{module.rpartition('.')[2]}.{name}"
            count, finding = fuzz(module, name, seeds, seed, given.seconds)
            executions[title] += count
            if finding:
                failed += 1
                print(f"seed {seed}: {title}: {finding}", flush=True)
    each = ", ".join(f"{count} {title}" for title, count in executions.items())
    took = time.monotonic() - begun
    print(f"{executions.total()} executions, {each}, {failed} failed, {took:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
