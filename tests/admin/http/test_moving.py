"""Bookies that are emptied: what goes wrong in one is told there, and none begins once the plane has ended."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from admin.http.moving import Movers
from bookie.errors import IllegalOperation
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver

SEEN_S = 20.0
GONE = "bk9:3181"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[MetadataDriver]:
    """A store that knows one bookie, which is not there."""
    one = open_driver(f"lmdb://{tmp_path}/meta")
    one.start()
    one.cluster.initialize()
    one.cookies.write(GONE, b"cookie", None)
    yield one
    one.stop()


def ended(movers: Movers) -> dict[str, Any]:
    """The one move, once it is over."""
    pause = threading.Event()
    for _ in range(int(SEEN_S / 0.01)):
        (move,) = movers.seen()
        if move["ended_ms"]:
            return move
        pause.wait(0.01)
    raise AssertionError("it never ends")


def test_an_error_nobody_expected_is_the_moves_own(
    driver: MetadataDriver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told and logged; it must not reach the hook that ends the process, and another try may begin."""

    async def fail(_self: Movers, _move: object) -> NoReturn:
        raise ValueError("odd")

    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    monkeypatch.setattr(Movers, "_follow", fail)
    movers = Movers(driver)
    with caplog.at_level(logging.ERROR):
        movers.start(GONE, delete_cookie=False)
        assert ended(movers)["error"] == "ValueError: odd"
        movers.stop()
    assert not died
    assert any(said.exc_info for said in caplog.records)


def test_none_begins_after_the_end(driver: MetadataDriver) -> None:
    """Nobody would wait for its thread."""
    movers = Movers(driver)
    movers.stop()
    with pytest.raises(IllegalOperation, match="this bookie is stopping"):
        movers.start(GONE, delete_cookie=False)
    assert movers.seen() == []


def test_the_one_that_was_begun_last_is_told_last(driver: MetadataDriver) -> None:
    """Also when it was moved before: oldest first, each bookie once."""
    other = "bk8:3181"
    driver.cookies.write(other, b"cookie", None)
    movers = Movers(driver)
    pause = threading.Event()
    for bookie in (GONE, other, GONE):
        movers.start(bookie, delete_cookie=False)
        for _ in range(int(SEEN_S / 0.01)):
            if all(move["ended_ms"] for move in movers.seen()):
                break
            pause.wait(0.01)
    movers.stop()
    assert [(move["bookie"], move["error"]) for move in movers.seen()] == [(other, ""), (GONE, "")]
