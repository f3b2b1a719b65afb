"""Log lines that peers can cause are limited to one per second of each kind."""

import logging

from bookie.log_throttle import LogThrottle


def record(text: str, ledger: int) -> logging.LogRecord:
    """Return the record that `log.error(text, extra={"ledger": ledger})` creates."""
    return logging.makeLogRecord({"msg": text, "levelno": logging.ERROR, "ledger": ledger})


def test_one_a_second_of_each_kind_and_the_rest_counted() -> None:
    """Records that differ only in their fields are of one kind; the next line has the number of those left out."""
    now = [100.0]
    throttle = LogThrottle(clock=lambda: now[0])
    assert throttle.filter(record("a", 1))
    assert [throttle.filter(record("a", ledger)) for ledger in (2, 3, 4)] == [False] * 3
    assert throttle.filter(record("b", 1))
    now[0] += 1.0
    following = record("a", 5)
    assert throttle.filter(following)
    assert following.__dict__["left_out"] == 3
    assert not throttle.filter(record("a", 6))
    now[0] += 60.0
    assert throttle.filter(record("b", 7))


def test_nothing_is_said_of_none_left_out() -> None:
    """Without records left out, that field is missing."""
    first = record("a", 1)
    assert LogThrottle(clock=lambda: 0.0).filter(first)
    assert "left_out" not in first.__dict__
