"""Pytest fixtures for programs that use BookKeeper. Put this into a `conftest.py`:

    pytest_plugins = ["bookie.local.fixtures"]

and use them in tests:

    def test_mine(bookie_cluster):
        with BookKeeper(bookie_cluster.uri) as bk: ...

pytest is not a dependency of this package; no other module imports this one.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from bookie.local.cluster import LocalCluster

__all__ = ["bookie_cluster", "new_bookie_cluster"]


@pytest.fixture(scope="session")
def bookie_cluster() -> Iterator[LocalCluster]:
    """A cluster of three bookies for all tests of a run. A test must not stop its bookies or choose ledger ids."""
    with LocalCluster(3) as cluster:
        yield cluster


@pytest.fixture
def new_bookie_cluster() -> Iterator[Callable[..., LocalCluster]]:
    """A function that starts a cluster for one test. It takes the arguments of `LocalCluster`; the cluster stops
    with the test.
    """
    with ExitStack() as ends:

        def start(count: int = 3, **settings: object) -> LocalCluster:
            return ends.enter_context(LocalCluster(count, **settings))  # type: ignore[arg-type] # its keywords pass through

        yield start
