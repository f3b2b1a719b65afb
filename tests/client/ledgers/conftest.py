"""Three bookies for all tests of the reading of ledgers, which keep out of each other's ledgers."""

from collections.abc import Iterator

import pytest

from tests.client.ledgers.shelf import Shelf
from tests.fixtures.bookies import BookieProcess


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Bookies that stand until the last test."""
    directory = tmp_path_factory.mktemp("shelf")
    made: list[BookieProcess] = []
    try:
        uri = f"lmdb://{directory}/metadata"
        for number in range(3):
            made.append(BookieProcess(directory / str(number), uri, {}))
            uri = f"grpc://127.0.0.1:{made[0].settings['adminPort']}"
            made[-1].start()
        yield Shelf(made)
    finally:
        for bookie in reversed(made):
            bookie.kill()


@pytest.fixture(params=[True, False], ids=["v2", "v3"])
def v2(request: pytest.FixtureRequest) -> bool:
    """Which protocol the client speaks."""
    chosen: bool = request.param
    return chosen
