"""Decommissions over HTTP: an error of one is reported there, and none starts after the plane has stopped."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bookie.errors import IllegalOperation
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie_admin.http.moving import Movers

SEEN_S = 20.0
GONE = "bk9:3181"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[MetadataDriver]:
    """A metadata store with one bookie, which is down."""
    one = open_driver(f"lmdb://{tmp_path}/meta")
    one.start()
    one.cluster.initialize()
    one.cookies.write(GONE, b"cookie", None)
    yield one
    one.stop()


def ended(movers: Movers) -> dict[str, Any]:
    """Return the only decommission once it has ended."""
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
    """It is reported and logged, does not reach the hook that ends the process, and the decommission can be retried."""

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
    """Otherwise nothing would wait for its thread."""
    movers = Movers(driver)
    movers.stop()
    with pytest.raises(IllegalOperation, match="this bookie is stopping"):
        movers.start(GONE, delete_cookie=False)
    assert movers.seen() == []


def test_all_are_stopped_at_once(driver: MetadataDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may have to wait for the metadata store before it ends, so that one after the other would take too long."""
    other = "bk8:3181"
    driver.cookies.write(other, b"cookie", None)
    cancelled, followed = threading.Barrier(2), threading.Barrier(3)

    async def follow(_self: Movers, _move: object) -> None:
        followed.wait(SEEN_S)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.wait(SEEN_S)

    monkeypatch.setattr(Movers, "_follow", follow)
    movers = Movers(driver)
    movers.start(GONE, delete_cookie=False)
    movers.start(other, delete_cookie=False)
    followed.wait(SEEN_S)
    movers.stop()
    assert [move["error"] for move in movers.seen()] == ["interrupted: this bookie is stopping"] * 2


def test_the_one_that_was_begun_last_is_told_last(driver: MetadataDriver) -> None:
    """This also holds for a bookie that was decommissioned before: oldest first, each bookie once."""
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
