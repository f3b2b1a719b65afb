"""Test V3 requests: worked frames, and the compiled parser against the protobuf library on messages of every kind."""

from dataclasses import asdict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bookie._fast.wire import v3
from bookie.errors import CODES
from tests.fixtures.draws import examples
from tests.golden.wire_v2 import E0, E3, K0, KP
from tests.golden.wire_v3 import FRAMES, LAC_1
from tests.reference import wire_v3 as model
from tests.reference.proto_wire import GROUP, GROUP_END, field, tag
from tests.reference.v3_messages import requests
from tests.reference.wire_v3 import FENCE, HIGH_PRIORITY, LONG_POLL, PIGGYBACK, RECOVERY_ADD, TIMED, Request

REQUESTS = {
    "add": Request(3, 2, request_id=1, ledger=7, entry=0, key=K0, body=E0),
    "recovery_add": Request(3, 2, RECOVERY_ADD | HIGH_PRIORITY, 100, 7, 3, 5, key=KP, body=E3),
    "fence": Request(3, 1, FENCE, ledger=7, entry=-1, request_id=2, key=KP),
    "long_poll": Request(
        3, 1, LONG_POLL | TIMED | PIGGYBACK, ledger=7, entry=-1, request_id=4, previous_lac=0, timeout_ms=1000
    ),
    "write_lac": Request(3, 6, ledger=7, request_id=6, argument=1, key=K0, body=LAC_1),
    "bookie_info": Request(3, 8, request_id=9, argument=3),
    "start_tls": Request(3, 9, request_id=10),
    "batch_read": Request(3, 12, ledger=7, request_id=13, count_max=10, size_max=1 << 20),
    "write_close": Request(3, 13, ledger=7, request_id=14, key=K0),
}


def agrees(body: bytes) -> bool:
    """Return whether the compiled parser and the protobuf library agree on `body`."""
    return model.agrees(body, *v3.parse(body))


@pytest.mark.parametrize("name", REQUESTS)
def test_worked_request(name: str) -> None:
    """The server and the protobuf library parse the frame."""
    assert v3.parse(FRAMES[name][4:]) == (model.OK, asdict(REQUESTS[name]))
    assert agrees(FRAMES[name][4:])


@pytest.mark.parametrize("name", FRAMES)
def test_cut_anywhere(name: str) -> None:
    """Truncated frames, of requests and responses, are accepted or refused as by the library."""
    for end in range(len(FRAMES[name]) - 3):
        assert agrees(FRAMES[name][4:][:end])


HEADER = field(1, field(1, 3) + field(2, 9) + field(3, 1))


@settings(max_examples=examples(500))
@given(requests())
@example(HEADER + field(106, b"\0\0"))
@example(HEADER + b"\0\0")
def test_request_like_the_library(body: bytes) -> None:
    """Fields of any order, repetition, padding, type and number are parsed as by the library."""
    assert agrees(body)


@settings(max_examples=examples(500))
@given(requests(), st.integers(0, 200), st.integers(0, 255), st.integers(0, 3))
def test_damaged_request_like_the_library(body: bytes, at: int, byte: int, cut: int) -> None:
    """Requests with a changed byte and a truncated end are parsed as by the library."""
    damaged = bytearray(body)
    if damaged:
        damaged[at % len(damaged)] = byte
    assert agrees(bytes(damaged[: len(damaged) - cut]))


PLAIN_READ = field(1, field(1, 3) + field(2, 1) + field(3, 300)) + field(100, field(1, 1 << 40) + field(2, 200))


def test_plain_read_with_any_byte_changed() -> None:
    """The most frequent request has a parser of its own. With each of its bytes changed, inserted or as the end, the
    result is that of the library.
    """
    assert v3.parse(PLAIN_READ) == (
        model.OK,
        asdict(Request(3, 1, ledger=1 << 40, entry=200, request_id=300)),
    )
    for at in range(len(PLAIN_READ)):
        assert agrees(PLAIN_READ[:at])
        for byte in range(256):
            assert agrees(PLAIN_READ[:at] + bytes([byte]) + PLAIN_READ[at + 1 :])
            assert agrees(PLAIN_READ[:at] + bytes([byte]) + PLAIN_READ[at:])


@given(st.binary(max_size=60))
def test_any_bytes_like_the_library(body: bytes) -> None:
    """Any bytes are accepted or refused as by the library."""
    assert agrees(body)
    assert agrees(HEADER + body)


@pytest.mark.parametrize("depth", [98, 99, 100, 101])
@pytest.mark.parametrize("part", [0, 1, 100, 106, 200])
def test_nesting_ends_where_the_library_ends_it(part: int, depth: int) -> None:
    """Groups are limited at the top level and in a message, which is a level itself."""
    groups = tag(9, GROUP) * depth + tag(9, GROUP_END) * depth
    inner = {1: b"", 100: field(1, 7) + field(2, 0), 106: b"", 200: field(1, b"k") + field(2, b"v")}
    body = HEADER + (field(part, inner[part] + groups) if part else groups)
    assert agrees(body)
    assert (v3.parse(body)[0] == model.CORRUPT) == (depth > (100 if part == 0 else 99))


@given(depth=st.integers(0, 100), nesting=st.integers(1, 100), inside=st.booleans())
def test_nesting_may_end_sooner(depth: int, nesting: int, inside: bool) -> None:
    """With a limit below the library's, a message counts as a level, too."""
    groups = tag(9, GROUP) * depth + tag(9, GROUP_END) * depth
    body = HEADER + (field(106, groups) if inside else groups)
    assert (v3.parse(body, nesting)[0] == model.CORRUPT) == (depth > nesting - inside)


def test_parsing_often_is_parsing() -> None:
    """The function that the benchmark times returns the status of the parser."""
    assert v3.parse_often(FRAMES["add"][4:], 3) == model.OK
    assert v3.parse_often(b"", 3) == model.CORRUPT


def test_auth_in_one_piece_and_in_two() -> None:
    """The message of AUTH is returned if it came in one piece; otherwise the protobuf library must join its parts."""
    header = field(1, field(1, 3) + field(2, 5) + field(3, 1))
    name, payload = field(1, b"token"), field(2, b"secret")
    assert v3.parse(header + field(102, name + payload))[1]["body"] == name + payload
    status, fields = v3.parse(field(102, name) + header + field(102, payload))
    assert (status, fields["body"]) == (model.OK, None)
    assert v3.parse(header + field(102, name))[0] == model.CORRUPT


def test_codes_are_of_the_table() -> None:
    """Every Status has a code that clients know, and limbo has its own."""
    known = {code.v3 for code in CODES}
    codes = [v3.code(status) for status in range(20)]
    assert set(codes) == known
    assert codes[0] == 0
    assert 0 not in codes[1:]
    assert v3.code(11) == 507
