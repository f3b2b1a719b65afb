"""The programs under perf/, compiled once."""

from pathlib import Path

import pytest

from perf.load.build import build_all


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """The compiled programs, by name."""
    return build_all()


@pytest.fixture(scope="session")
def bkload(programs: dict[str, Path]) -> Path:
    """The load generator."""
    return programs["bkload"]
