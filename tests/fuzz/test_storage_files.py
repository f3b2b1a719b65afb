"""The fuzz targets of storage_files: each over mutated seeds; with `-m fuzz` also BOOKIE_FUZZ_SECONDS under atheris."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.storage_files import TARGETS

SECONDS = int(os.environ.get("BOOKIE_FUZZ_SECONDS", "60"))
ROOT = Path(__file__).resolve().parent.parent.parent
INTERESTING = [0, 1, 15, 16, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF00, 0x04000000, 0x04000001, 0xF0F0F0F0]


def mutate(dice: random.Random, data: bytes) -> bytes:
    """A few flips, interesting words, cuts, repeats and zeroed stretches."""
    out = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(out)) if out else 0
        match dice.randrange(5):
            case 0 if out:
                out[at] ^= 1 << dice.randrange(8)
            case 1:
                out[at : at + 4] = dice.choice(INTERESTING).to_bytes(4)
            case 2:
                del out[at:]
            case 3:
                out[at:at] = out[at : at + dice.randint(1, 600)]
            case _:
                out[at : at + 512] = bytes(len(out[at : at + 512]))
    return bytes(out)


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_seeds(name: str) -> None:
    """Seeds as they are, then 2,000 mutations of them: the answer of the model each time."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    target, seeds = TARGETS[name]
    for data in seeds():
        target(data)
    for _ in range(2000):
        target(mutate(dice, dice.choice(seeds())))


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(name: str, tmp_path: Path) -> None:
    """Atheris over the target from its seeds: no crash, no leak, no answer that differs from the model's."""
    pytest.importorskip("atheris", reason="pip install atheris")
    for number, data in enumerate(TARGETS[name][1]()):
        (tmp_path / f"{number}").write_bytes(data)
    command = [sys.executable, "-m", "tests.fuzz.storage_files", name, f"-max_total_time={SECONDS}"]
    options = ["-max_len=16384", "-rss_limit_mb=1024", "-verbosity=0", str(tmp_path)]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS + 120
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
