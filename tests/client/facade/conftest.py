"""Three bookies that stand for all tests of a module, and their metadata service."""

from collections.abc import Iterator

import pytest

from tests.fixtures.bookies import BookieProcess


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BookieProcess]]:
    """Three running bookies; the first owns the metadata store."""
    directory = tmp_path_factory.mktemp("cluster")
    made: list[BookieProcess] = []
    try:
        for number in range(3):
            uri = f"grpc://{made[0].admin}" if made else f"lmdb://{directory}/metadata"
            made.append(BookieProcess(directory / f"bookie-{number}", uri, {}))
            made[-1].start()
        yield made
    finally:
        for bookie in reversed(made):
            bookie.kill()


@pytest.fixture(scope="module")
def uri(cluster: list[BookieProcess]) -> str:
    """The metadata service URI that others than the first bookie use."""
    return f"grpc://{cluster[0].admin}"
