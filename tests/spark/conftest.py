"""Three bookies for all tests of bookie.spark that need some, and what is planted in them."""

from collections.abc import Iterator

import pytest

from tests.fixtures.bookies import BookieProcess


@pytest.fixture(scope="session")
def three_bookies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BookieProcess]]:
    """Running for the whole session; the first owns the metadata store."""
    directory = tmp_path_factory.mktemp("three")
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


@pytest.fixture(scope="session")
def three_uri(three_bookies: list[BookieProcess]) -> str:
    """The metadata service URI that others than the first bookie use."""
    return f"grpc://{three_bookies[0].admin}"
