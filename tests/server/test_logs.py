"""Log lines: fields beside a constant message, no forged lines, no secrets, and the same contents in both formats."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.server.logs.formats import JsonFormatter, KeyValueFormatter


def record(message: str = "happened", *arguments: object, **facts: object) -> logging.LogRecord:
    logger = logging.getLogger("bookie.test")
    return logger.makeRecord("bookie.test", logging.INFO, "f", 1, message, arguments, None, extra=facts)


def test_key_values() -> None:
    """Plain values are bare, others are JSON strings."""
    line = KeyValueFormatter().format(record("journal replayed", records=7, path="/a b"))
    assert line.startswith("time=")
    assert line.endswith('level=info logger=bookie.test msg="journal replayed" records=7 path="/a b"')


def test_json() -> None:
    """Each line is an object, and numbers stay numbers."""
    facts = json.loads(JsonFormatter().format(record("went", records=7)))
    assert facts["msg"] == "went"
    assert facts["records"] == 7
    assert facts["level"] == "info"


@given(st.text())
def test_nobody_forges_a_line(text: str) -> None:
    """Whatever a value contains, the line stays one line of printable ASCII, and the value can be read back."""
    for formatter in (KeyValueFormatter(), JsonFormatter()):
        line = formatter.format(record("m", value=text))
        assert line.isascii()
        assert line.isprintable()
    assert json.loads(JsonFormatter().format(record("m", value=text)))["value"] == text


@pytest.mark.parametrize("name", ["password", "zk_passwd", "master_key", "masterKey", "secret", "auth_token"])
def test_secrets_by_name(name: str) -> None:
    """S4: a field whose name suggests a secret is not written."""
    for formatter in (KeyValueFormatter(), JsonFormatter()):
        assert "marker" not in formatter.format(record("m", **{name: "marker"}))


def test_secrets_in_uris() -> None:
    """S4: user and password of a URI are removed, in fields and in messages."""
    for formatter in (KeyValueFormatter(), JsonFormatter()):
        line = formatter.format(record("open %s", "zk://me:marker@host/x", uri="zk://me:marker@host/x"))
        assert "marker" not in line
        assert "***@host" in line


def test_exceptions_stay_on_the_line() -> None:
    """A traceback is a field like others."""
    try:
        raise ValueError("a\nb")
    except ValueError as error:
        one = record("failed")
        one.exc_info = (type(error), error, error.__traceback__)
    line = KeyValueFormatter().format(one)
    assert "\n" not in line
    assert "ValueError" in line
