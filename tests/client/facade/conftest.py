"""Three bookies that run for all tests of a module, and their metadata service."""

from collections.abc import Iterator

import pytest

from tests.fixtures.bookies import BookieProcess, metadata_of, three_bookies_in


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BookieProcess]]:
    """Three running bookies; the first owns the metadata store."""
    with three_bookies_in(tmp_path_factory.mktemp("cluster")) as bookies:
        yield bookies


@pytest.fixture(scope="module")
def uri(cluster: list[BookieProcess]) -> str:
    """The metadata service URI for all but the first bookie."""
    return metadata_of(cluster)
