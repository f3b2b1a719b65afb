"""Runs the soak first, because it takes longest, and tests are distributed to processes in order."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests; later ones go to processes that have finished theirs."""
    items.sort(key=lambda item: item.path.stem != "test_soak")
