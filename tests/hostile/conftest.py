"""Fixtures for tests with hostile peers."""

import resource
from collections.abc import Iterator

import pytest


@pytest.fixture
def many_descriptors() -> Iterator[int]:
    """Raise this process's limit of descriptors as far as possible, and yield the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(autouse=True)
def reasons(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Show, when a test fails, why peers were turned away: the captured log shows only texts.

    Requested before any bookie, so that its last lines, of the bookie's own end, are seen as well.
    """
    yield
    for phase in ("setup", "call", "teardown"):
        for record in caplog.get_records(phase):
            if hasattr(record, "reason"):
                print(f"{phase}: {record.getMessage()}: {record.__dict__['reason']}")
