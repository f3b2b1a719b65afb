"""Test that a start meets any flipped bit of the pages that tell where an index has its tables and its free pages:
it serves, or mends the index first, but denies no entry, and does not die later, when free pages are used again.
"""

import collections
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bookie.storage.layout import INDEX_NAME
from tests.fast.index_flips import DENIED, PAGE, REFUSED, bits_in_use
from tests.reference.storage import entry
from tests.storage.opened import Opened

LEDGERS, ENTRIES, CHECKPOINTS = 40, 20, 3
STRIDE, STRIDE_THOROUGH = 211, 5
"""One bit in this many is tried; neither is a multiple of the bits of a byte."""


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Store ledgers in several checkpoints, so that there are free pages, and return the directory of their logs."""
    one = Opened(tmp_path_factory.mktemp("store"))
    for first in range(0, CHECKPOINTS * ENTRIES, ENTRIES):
        for ledger in range(LEDGERS):
            for number in range(first, first + ENTRIES):
                one.direct.add(entry(ledger, number, payload=bytes(30 + (ledger + number) % 40)), b"k" * 20)
        assert one.direct.commit()
        one.checkpoint()
    one.stop()
    return one.ledger_dirs[0] / "current"


def outcomes(current: Path, bits: list[int]) -> dict[int, str]:
    """Try each of these bits in processes of their own; a process that dies leaves its last bit without an outcome."""
    command = [sys.executable, "-m", "tests.fast.index_flips", str(current), *map(str, bits)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = dict(line.split(" ") for line in done.stdout.splitlines() if line.count(" ") == 1)
    assert done.returncode == 0, f"it died at {done.stdout.rpartition(chr(10))[2]!r}: {done.stderr}"
    return {int(bit): outcome for bit, outcome in found.items()}


@pytest.mark.parametrize("stride", [STRIDE, pytest.param(STRIDE_THOROUGH, marks=pytest.mark.thorough)])
def test_b7_all_flips_are_met(current: Path, tmp_path: Path, stride: int) -> None:
    """B7: no flip leads to a denial or ends the process, and only flips of meta pages may refuse the start."""
    work = tmp_path / "current"
    shutil.copytree(current, work)
    raw = (work / INDEX_NAME / "data.mdb").read_bytes()
    bits = bits_in_use(raw)[::stride]
    found = outcomes(work, bits)
    assert list(found) == bits
    bad = {bit: what for bit, what in found.items() if what == DENIED or (what == REFUSED and bit // 8 >= 2 * PAGE)}
    assert not bad, f"page, byte and bit: {[(bit // 8 // PAGE, bit // 8 % PAGE, bit % 8, bad[bit]) for bit in bad]}"
    tally = collections.Counter(found.values())
    assert tally[REFUSED] * 4 < len(bits), tally
