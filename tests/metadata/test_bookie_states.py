"""`bookie.metadata.bookie_states`: one answer to which bookies there are, and in which state."""

from pathlib import Path

from bookie.metadata.bookie_states import bookie_states, is_registered, states_of
from bookie.metadata.driver import open_driver


def test_every_bookie_has_one_state() -> None:
    """In the order of their ids; who changes its mode is writable, who has no cookie yet is there all the same."""
    states = states_of(writable={"d", "b"}, read_only={"c", "b"}, known={"a", "b", "c"})
    assert list(states.items()) == [("a", "absent"), ("b", "writable"), ("c", "read-only"), ("d", "writable")]


def test_as_a_store_knows_them(tmp_path: Path) -> None:
    """By cookies and registrations."""
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
