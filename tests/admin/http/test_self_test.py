"""The periodic sanity test behind a metric: it repeats, and a read-only bookie is not a failure."""

import threading
import time
from pathlib import Path

import pytest

from bookie.server.configuration.errors import ConfigError
from bookie.server.configuration.loader import load
from bookie.server.lifecycle import Bookie
from bookie_admin.http import self_test as module
from bookie_admin.http.self_test import self_test
from tests.fixtures.whole_bookie import whole_bookie

SEEN_S = 60.0


def until(bookie: Bookie, wanted: int) -> None:
    """Wait until the metric has a value; AssertionError if it never does."""
    deadline = time.monotonic() + SEEN_S
    while (sane := bookie.stats()["sanity"]) != wanted:
        assert time.monotonic() < deadline, f"sanity stays {sane}"


def test_the_metric_follows(tmp_path: Path) -> None:
    """-1 before the first test, 1 after each that passes, and if the bookie is read-only on purpose."""
    with whole_bookie(tmp_path) as one:
        assert one.bookie.stats()["sanity"] == -1
        test = self_test(one.bookie, every_s=0.01)
        test.start()
        try:
            until(one.bookie, 1)
            one.bookie.note_sanity(passed=False)
            until(one.bookie, 1)
            one.bookie.set_read_only(read_only=True)
            one.bookie.note_sanity(passed=False)
            until(one.bookie, 1)
        finally:
            test.stop()
            test.stop()


def test_what_a_test_raises_is_not_the_bookies_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, does not reach the hook that ends the process, and the next test runs."""
    died: list[object] = []
    answers = iter([ValueError("odd")])

    def odd(control: Bookie, _timeout_s: float) -> str:
        for error in answers:
            raise error
        control.note_sanity(passed=True)
        return ""

    monkeypatch.setattr(threading, "excepthook", died.append)
    monkeypatch.setattr(module, "sanity", odd)
    with whole_bookie(tmp_path) as one:
        test = self_test(one.bookie, every_s=0.01)
        test.start()
        try:
            until(one.bookie, 1)
        finally:
            test.stop()
    assert not died
    assert "a repeated task failed" in caplog.text


def test_it_needs_the_port_that_shows_it(tmp_path: Path) -> None:
    """Without a port that serves metrics, the key is refused with its remedy."""
    conf = tmp_path / "bk.conf"
    conf.write_text(
        f"sanityCheckMetricsEnabled=true\nmetadataServiceUri=lmdb://{tmp_path}/m\njournalDirectories={tmp_path}/j\n"
        f"ledgerDirectories={tmp_path}/l\n"
    )
    with pytest.raises(ConfigError, match=r"sanityCheckMetricsEnabled.*set httpServerEnabled=true"):
        load(conf, {})
