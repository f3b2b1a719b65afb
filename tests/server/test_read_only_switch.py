"""The operator's read-only switch, as other machines see it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bookie.errors import MetadataStoreError
from bookie.metadata.opening import open_driver
from bookie.server import lifecycle
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.whole_bookie import whole_bookie

SESSION_MS = 30_000


def test_the_switch_returns_when_the_registration_has_moved(
    new_bookies: Callable[..., list[BookieProcess]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that looks right after the call sees the new mode. A store that hangs is an error that says so, and the
    registration follows when it answers again.
    """
    (store,) = new_bookies(1)
    store.start()
    uri = f"grpc://{store.admin}"
    with whole_bookie(tmp_path, metadataServiceUri=uri) as running:
        driver = open_driver(uri, session_timeout_ms=SESSION_MS)
        driver.start()
        try:
            for read_only in (True, False) * 5:
                running.bookie.set_read_only(read_only=read_only)
                assert running.bookie.bookie_id in driver.bookies.present(read_only=read_only)
            store.freeze()
            monkeypatch.setattr(lifecycle, "MODE_WAIT_S", 0.2)
            with pytest.raises(MetadataStoreError, match="the bookie is read-only now, but the metadata store"):
                running.bookie.set_read_only(read_only=True)
            store.thaw()
            monkeypatch.setattr(lifecycle, "MODE_WAIT_S", 60)
            running.bookie.set_read_only(read_only=True)
            assert running.bookie.bookie_id in driver.bookies.present(read_only=True)
        finally:
            store.thaw()
            driver.stop()
