"""Long work at start: log lines without a terminal, a progress bar on one, and a stop that interrupts it."""

import logging

import pytest

from bookie.server.process import progress
from bookie.server.process.progress import ProgressReport


def test_lines_now_and_then(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line appears when it is due, with the progress."""
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    with caplog.at_level(logging.INFO), ProgressReport("scanning entry logs", lambda: None, bar=False) as reported:
        reported(1 << 20, 4 << 20)
    (record,) = caplog.records
    facts = vars(record)
    assert (record.getMessage(), facts["bytes"], facts["total"]) == ("scanning entry logs", 1 << 20, 4 << 20)


def test_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal there is one bar for each piece of work, up to its end."""
    with ProgressReport("scanning entry logs", lambda: None, bar=True) as reported:
        for total in (4 << 20, 2 << 20):
            reported(1 << 20, total)
            reported(total, total)
    shown = capsys.readouterr().err
    assert shown.count("scanning entry logs") >= 2
    assert "4.2" in shown or "4.0" in shown


def test_a_stop_comes_through() -> None:
    """An exception of `go_on` ends the work."""

    def stop() -> None:
        raise KeyboardInterrupt

    with ProgressReport("scanning entry logs", stop) as reported, pytest.raises(KeyboardInterrupt):
        reported(0, 1)
