"""For tests of programs that use BookKeeper, in a `conftest.py`:

    pytest_plugins = ["bookie.local.fixtures"]

    def test_mine(bookie_cluster):
        with BookKeeper(bookie_cluster.uri) as bk: ...

pytest is not among this package's dependencies; nothing else imports this module.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bookie.local.cluster import LocalCluster

__all__ = ["bookie_cluster", "new_bookie_cluster"]


@pytest.fixture(scope="session")
def bookie_cluster() -> Iterator[LocalCluster]:
    """Three bookies for all tests of a run: for those that stop none of them and choose no ledger ids."""
    with LocalCluster(3) as cluster:
        yield cluster


@pytest.fixture
def new_bookie_cluster() -> Iterator[Callable[..., LocalCluster]]:
    """A factory: a cluster of the test's own, with the arguments of `LocalCluster`; stopped at the test's end."""
    with ExitStack() as ends:

        def start(count: int = 3, **settings: object) -> LocalCluster:
            return ends.enter_context(LocalCluster(count, **settings))  # type: ignore[arg-type] # its keywords pass through

        yield start
