"""`bookie.metadata.bookies.states` tells which bookies there are, and in which state."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bookie.metadata import open_driver
from bookie.metadata.bookies.states import bookie_states, is_registered, states_of


def test_every_bookie_has_one_state() -> None:
    """Bookies are sorted by id; one that changes its mode is writable, and one without a cookie is included."""
    states = states_of(writable={"d", "b"}, read_only={"c", "b"}, known={"a", "b", "c"})
    assert list(states.items()) == [("a", "absent"), ("b", "writable"), ("c", "read-only"), ("d", "writable")]


def test_as_a_store_knows_them(tmp_path: Path) -> None:
    """The states of a store follow from cookies and registrations."""
    driver = open_driver(f"lmdb://{tmp_path}/meta")
    driver.start()
    try:
        driver.cluster.initialize()
        for bookie in ("a", "b", "c"):
            driver.cookies.write(bookie, b"cookie", None)
        for bookie, read_only in (("b", True), ("c", False)):
            driver.registrations.register(bookie, b"", read_only=read_only)
        assert bookie_states(driver.bookies) == {"a": "absent", "b": "read-only", "c": "writable"}
        assert [is_registered(driver.bookies, one) for one in "abcd"] == [False, True, True, False]
    finally:
        driver.stop()


@pytest.mark.parametrize("before", [False, True])
def test_who_changes_its_mode_while_we_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    """A bookie that changes its mode meanwhile never counts as absent, or its cookie would be deleted."""
    driver = open_driver(f"lmdb://{tmp_path}/meta")
    driver.start()
    try:
        driver.cluster.initialize()
        bookies: Any = driver.bookies
        present = bookies.present

        def then_changes(*, read_only: bool) -> Any:
            found = present(read_only=read_only)
            driver.registrations.register("a", b"", read_only=not before)
            return found

        seen: list[object] = []
        for look in (partial(is_registered, bookies, "a"), partial(bookie_states, bookies)):
            driver.registrations.register("a", b"", read_only=before)
            with monkeypatch.context() as during:
                during.setattr(bookies, "present", then_changes)
                seen.append(look())
        assert seen == [True, {"a": "writable"}]
    finally:
        driver.stop()
