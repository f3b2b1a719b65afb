"""The bytes of a log: every valid log is restored, and other bytes are refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.base import crc
from bookie.errors import IncorrectParameter, LogTooLarge, MetadataSerializationError
from bookie.metadata.records.logs import CONTROL, Commit, Log, parse_log, serialize_log
from tests.fixtures.draws import examples

EXAMPLE = "01 01 01 71 07 e8 07 05 03 d8 04 02 03 ad 46 f1 8d"
NUMBERS = st.integers(0, (1 << 63) - 1)
COMMITS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=10).filter(lambda text: not CONTROL.search(text)),
    st.builds(Commit, NUMBERS, NUMBERS),
    max_size=3,
)
LOGS = st.builds(
    Log, st.lists(NUMBERS | st.integers(0, 300), unique=True, max_size=20).map(tuple), COMMITS, settled=NUMBERS
)


@settings(max_examples=examples(50))
@given(LOGS)
def test_a_log_comes_back(log: Log) -> None:
    """Any ids in any order are restored, with nine bytes per id at most."""
    data = serialize_log("log", log)
    assert parse_log("log", data) == log
    marks = sum(len(writer.encode()) + 20 for writer in log.commits)
    assert len(data) <= 9 * len(log.ledgers) + marks + 20


def test_the_bytes_of_an_example() -> None:
    """The bytes are those in docs/formats/metadata.md."""
    log = Log((300, 301, 299), {"q": Commit(7, 1000)}, settled=5)
    assert serialize_log("log", log).hex(" ") == EXAMPLE


@settings(max_examples=examples(50))
@given(LOGS, st.data())
def test_damage_is_found(log: Log, data: st.DataObject) -> None:
    """A changed byte or a missing end is found."""
    good = serialize_log("log", log)
    at = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(bad), good[:at]):
        with pytest.raises(MetadataSerializationError, match="log 'log'"):
            parse_log("log", damaged)


def test_what_no_log_can_be_is_refused() -> None:
    """Negative numbers and a format of the future are refused."""
    for log in (Log((-1,)), Log((), {"q": Commit(-1, 0)}), Log((1 << 63,))):
        with pytest.raises(IncorrectParameter, match=r"is not in \[0"):
            serialize_log("log", log)
    with pytest.raises(LogTooLarge, match="remove old ledgers"):
        serialize_log("log", Log(tuple(one ^ (one & 1) << 62 for one in range(130_000))))
    future = b"\x02\x00\x00\x00"
    with pytest.raises(MetadataSerializationError, match="upgrade"):
        parse_log("log", future + crc.crc32c(future).to_bytes(4, "big"))
