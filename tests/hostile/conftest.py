"""What tests of hostile peers share."""

import resource
from collections.abc import Iterator

import pytest


@pytest.fixture
def many_descriptors() -> Iterator[int]:
    """Allow this process as many as it may have; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
