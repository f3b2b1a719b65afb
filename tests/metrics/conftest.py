"""Fixtures that start a whole bookie inside the test process, to read its metrics."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.whole_bookie import Running, whole_bookie


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Start a bookie without an admin plane."""
    with whole_bookie(tmp_path) as one:
        yield one
