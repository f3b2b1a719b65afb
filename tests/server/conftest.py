"""Tests of the server start the command itself."""

from collections.abc import Iterator

import pytest

from tests.fixtures.bookies import BookieProcess


@pytest.fixture(scope="module", autouse=True)
def _new_programs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BookieProcess, "new_programs", True)
        yield
