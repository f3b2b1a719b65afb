"""Memory budgets: the sum, the refusal, and the limits of control groups of both versions."""

import os
from pathlib import Path

import pytest

from bookie.errors import StartRefused
from bookie.server.configuration.settings import NetworkSettings
from bookie.server.process import budget
from bookie.storage.settings import MIB

PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_sum_counts_storage_and_network() -> None:
    """Every part is in the sum."""
    network = NetworkSettings(input_bytes_max=MIB, output_bytes_max=2 * MIB, long_polls_max=2048, policy_bytes_max=MIB)
    parts = budget.parts({"write_cache": 3 * MIB}, network)
    assert budget.check(parts, 136 * MIB) == 136 * MIB


def test_more_than_allowed_is_refused_with_the_parts() -> None:
    """The error names the sum, each part, the limit and the keys to change."""
    with pytest.raises(StartRefused, match=r"6 MiB \(a 2, b 4\), but only 5 MiB .*memoryLimitMb"):
        budget.check({"a": 2 * MIB, "b": 4 * MIB}, 5 * MIB)


def cgroup(root: Path, own: str, files: dict[str, str]) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    for name, text in files.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/a/b\n", {"memory.max": "max\n", "a/memory.max": "5000\n", "a/b/memory.max": "9000\n"}, 5000),
        ("0::/not/seen/here\n", {"memory.max": "7000\n"}, 7000),
        ("0::/\n", {}, PHYSICAL),
        ("3:cpu:/\n2:memory:/x\n", {"memory/x/memory.limit_in_bytes": "800\n"}, 800),
        ("2:memory:/x\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, PHYSICAL),
    ],
    ids=["v2 parent", "v2 in a container", "v2 root", "v1", "v1 unlimited"],
)
def test_control_groups(tmp_path: Path, own: str, files: dict[str, str], expected: object) -> None:
    """The tightest limit from the process's own group upwards counts; "max" and version 1's huge number are none."""
    cgroup(tmp_path, own, files)
    assert budget.allowed_bytes(tmp_path) == expected


def test_no_control_groups(tmp_path: Path) -> None:
    """Without /proc/self/cgroup the physical memory is the limit."""
    assert budget.allowed_bytes(tmp_path) == PHYSICAL
