"""A whole bookie inside the test process, for its metrics."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.whole_bookie import Running, whole_bookie


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Without an admin plane."""
    with whole_bookie(tmp_path) as one:
        yield one
