"""The soak goes first: it takes longest, and files of tests are dealt to processes in order."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`--no-loadscope-reorder` keeps this order."""
    items.sort(key=lambda item: item.path.stem != "test_soak")
