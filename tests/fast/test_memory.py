"""Test memory that regions of the write cache pass on to each other (cache.memory)."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.cache.memory import Memory

MIB = 1 << 20
SMALL = 1 << 16
HUGE = 2 * MIB


def pieces(first: int, count: int, piece: int) -> bytes:
    """Return memory whose every piece is filled with a number of its own."""
    return b"".join(bytes([first + i]) * piece for i in range(count))


@pytest.mark.parametrize(("size", "piece"), [(40 * MIB, HUGE), (20 * SMALL, SMALL)])
def test_memory_is_moved_behind_what_the_other_one_has(size: int, piece: int) -> None:
    """Whole pieces are moved, in their order; what stays is unchanged, and what is gone reads as zeros."""
    memory = Memory(size, size)
    memory.write(0, 0, pieces(1, 5, piece))
    memory.write(1, 0, pieces(101, 1, piece) + b"x")
    memory.pass_on(0, 2 * piece - 10)
    assert (memory.touched(0), memory.touched(1)) == (2 * piece, 5 * piece)
    assert memory.read(0, 0, 5 * piece) == pieces(1, 2, piece) + bytes(3 * piece)
    assert memory.read(1, 0, piece + 1) == pieces(101, 1, piece) + b"x"
    assert memory.read(1, 2 * piece, 3 * piece) == pieces(3, 3, piece)


def test_only_what_fits_is_moved() -> None:
    """A full region gets nothing more, and the rest stays where it is."""
    memory = Memory(20 * SMALL, 3 * SMALL + 5)
    memory.write(0, 0, pieces(1, 5, SMALL))
    memory.pass_on(0, 0)
    assert (memory.touched(0), memory.touched(1)) == (2 * SMALL, 3 * SMALL)
    assert memory.read(0, 0, 2 * SMALL) == pieces(1, 2, SMALL)
    assert memory.read(1, 0, 3 * SMALL) == pieces(3, 3, SMALL)
    memory.cut(0, SMALL + 1)
    assert memory.touched(0) == SMALL + 4096
    assert memory.read(0, 0, 2 * SMALL) == pieces(1, 1, SMALL) + pieces(2, 1, 4096) + bytes(SMALL - 4096)


def test_to_and_fro_takes_few_mappings() -> None:
    """The operating system limits the mappings of a process, and neighbours become one again."""
    memory = Memory(600 * MIB, 600 * MIB)
    before = len(Path("/proc/self/maps").read_text().splitlines())
    memory.write(0, 600 * MIB - 1, b"x")
    for _ in range(20):
        assert memory.pass_on(0, 64 * MIB)
        assert memory.pass_on(1, 0)
    assert len(Path("/proc/self/maps").read_text().splitlines()) - before < 10


WITHOUT_ADDRESS_SPACE = f"""
import resource
from pathlib import Path
from bookie._fast.cache.memory import Memory

memory = Memory(20 * {SMALL}, 20 * {SMALL})
for at in range(10):
    memory.write(0, at * {SMALL}, bytes([at + 1]))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used // 2, resource.RLIM_INFINITY))
whole = memory.pass_on(0, 0)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert memory.touched(1) == 0 and memory.touched(0) == 9 * {SMALL} + 1
assert [memory.read(0, at * {SMALL}, 1)[0] for at in range(10)] == list(range(1, 11))
assert memory.size(1) == (20 * {SMALL} if whole else 0)
memory.write(1, 0, bytes(memory.size(1)))
"""


def test_a_process_without_address_space() -> None:
    """Where the system refuses to move memory, nothing is lost, and what remains of the other region can be used."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_ADDRESS_SPACE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_to_and_fro(steps: list[tuple[int, int, int]]) -> None:
    """However often memory is passed on, what a region keeps is what was written there last."""
    memory = Memory(10 * SMALL, 10 * SMALL)
    kept = [dict[int, int](), dict[int, int]()]
    for number, (which, place, keep) in enumerate(steps, 1):
        memory.write(which, place * SMALL, bytes([number]))
        kept[which][place] = number
        before = memory.touched(which), memory.touched(1 - which)
        memory.pass_on(which, keep * SMALL)
        moved = memory.touched(1 - which) - before[1]
        assert moved >= 0
        for at in range(memory.touched(which) // SMALL, 10):
            kept[which].pop(at, None)
        for at in range(-(-before[1] // SMALL), 10):
            kept[1 - which].pop(at, None)
        for region in (0, 1):
            assert {at: memory.read(region, at * SMALL, 1)[0] for at in kept[region]} == kept[region]
