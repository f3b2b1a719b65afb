"""Three bookies for all tests of bookie.spark that need them, and prepared ledgers in them."""

from collections.abc import Iterator

import pytest

from tests.fixtures.bookies import BookieProcess, metadata_of, three_bookies_in


@pytest.fixture(scope="session")
def three_bookies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BookieProcess]]:
    """Three bookies that run for the entire session."""
    with three_bookies_in(tmp_path_factory.mktemp("three")) as bookies:
        yield bookies


@pytest.fixture(scope="session")
def three_uri(three_bookies: list[BookieProcess]) -> str:
    """Return the metadata service URI of the three bookies."""
    return metadata_of(three_bookies)
