"""Three bookies for all tests of the reading of ledgers, which keep out of each other's ledgers."""

from collections.abc import Iterator

import pytest

from tests.client.ledgers.shelf import Shelf
from tests.fixtures.bookies import three_bookies_in


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Bookies that stand until the last test."""
    with three_bookies_in(tmp_path_factory.mktemp("shelf")) as bookies:
        yield Shelf(bookies)


@pytest.fixture(params=[True, False], ids=["v2", "v3"])
def v2(request: pytest.FixtureRequest) -> bool:
    """Which protocol the client speaks."""
    chosen: bool = request.param
    return chosen
