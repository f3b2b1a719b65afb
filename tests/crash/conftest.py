"""The soak goes first: it takes longest, and tests are dealt to processes in order."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that come later are given to whoever has none left."""
    items.sort(key=lambda item: item.path.stem != "test_soak")
