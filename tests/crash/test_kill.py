"""kill -9 at random moments under load: nothing acknowledged is lost, fences stay, and no torn entry is served.

B1, B7 to B11 and B21 through the journal, the checkpoint and replay. BOOKIE_CRASH_CYCLES sets the number of kills,
and BOOKIE_SEED repeats a run's choices (the moments themselves depend on the machine).
"""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bookie._fast.base import process
from tests.crash.scenarios import cut_power, kill_again_and_again

CYCLES = int(os.environ.get("BOOKIE_CRASH_CYCLES", "200"))
CYCLES_A_LIFE = 10
SEED = os.environ.get("BOOKIE_SEED") or str(random.SystemRandom().randrange(1 << 32))


def test_a_few_kills(tmp_path: Path) -> None:
    """Five kills, so that the quick suite notices what breaks the loop."""
    print(f"BOOKIE_SEED={SEED}")
    assert not kill_again_and_again(tmp_path, f"{SEED}/few", 5)


@pytest.mark.crash
@pytest.mark.parametrize("life", range(-(-CYCLES // CYCLES_A_LIFE)))
def test_kills(life: int, tmp_path: Path) -> None:
    """Ten kills of a bookie that is configured differently in each life."""
    print(f"BOOKIE_SEED={SEED}")
    assert not kill_again_and_again(tmp_path, f"{SEED}/{life}", min(CYCLES_A_LIFE, CYCLES - life * CYCLES_A_LIFE))


@pytest.mark.thorough
@pytest.mark.skipif(not process.faults(), reason="build with BOOKIE_FAULTS=1")
def test_power_cuts(tmp_path: Path) -> None:
    """B1, B3: five times, everything that was not synced is lost or torn, sector by sector."""
    print(f"BOOKIE_SEED={SEED}")
    assert not cut_power(tmp_path, f"{SEED}/power", 5)


@pytest.mark.crash
@pytest.mark.skipif(not process.faults(), reason="build with BOOKIE_FAULTS=1")
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.ext4"), reason="needs root and mkfs.ext4")
def test_power_cuts_of_a_real_file_system() -> None:
    """B1, B3: three times, only what the kernel has written to the device of an ext4 is left."""
    words = ["tests.crash", "ext4_cuts", str(random.SystemRandom().randrange(1 << 32)), "--times", "3"]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout[-5000:]}{done.stderr[-2000:]}"
