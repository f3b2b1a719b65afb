"""Five bookies for all tests of writing, the first with the metadata store. The fixture starts killed ones again."""

from collections.abc import Iterator

import pytest

from tests.fixtures.bookies import BookieProcess


@pytest.fixture(scope="module")
def _all_five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BookieProcess]]:
    directory = tmp_path_factory.mktemp("five")
    made: list[BookieProcess] = []
    try:
        uri = f"lmdb://{directory}/metadata"
        for number in range(5):
            made.append(BookieProcess(directory / str(number), uri, {}))
            uri = f"grpc://127.0.0.1:{made[0].settings['adminPort']}"
        made[0].start()
        readies = [one.launch() for one in made[1:]]
        for one, ready in zip(made[1:], readies, strict=True):
            one.ready(ready)
        yield made
    finally:
        for bookie in reversed(made):
            bookie.kill()


@pytest.fixture
def five(_all_five: list[BookieProcess]) -> list[BookieProcess]:
    """Five bookies, all running."""
    for bookie in _all_five:
        if bookie.process is None:
            bookie.start()
    return _all_five
