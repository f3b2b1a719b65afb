"""Three bookies for all tests of reading ledgers; each test uses ledgers of its own."""

from collections.abc import Iterator

import pytest

from tests.client.ledgers.shelf import Shelf
from tests.fixtures.bookies import three_bookies_in


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Bookies that run until the last test."""
    with three_bookies_in(tmp_path_factory.mktemp("shelf")) as bookies:
        yield Shelf(bookies)


@pytest.fixture(params=[True, False], ids=["v2", "v3"])
def v2(request: pytest.FixtureRequest) -> bool:
    """The protocol that the client speaks."""
    chosen: bool = request.param
    return chosen
