"""The table that `make bench-batches` prints when its benchmarks are done."""

import pytest

LINES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def lines(pytestconfig: pytest.Config) -> list[str]:
    """Lines to print after the run."""
    return pytestconfig.stash.setdefault(LINES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the lines."""
    for line in config.stash.get(LINES, []):
        terminalreporter.write_line(line)
