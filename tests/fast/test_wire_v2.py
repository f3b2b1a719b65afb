"""Test V2 requests and responses: worked frames both ways, and the compiled codec against the plain-Python one."""

from dataclasses import asdict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bookie._fast.wire import v2
from bookie.errors import CODES
from tests.golden.wire_v2 import E0, E1, E3, FRAMES, K0, KP
from tests.reference import wire_v2 as model
from tests.reference.record import pack
from tests.reference.wire_v2 import ADD, AUTH, BATCH_READ, READ, Request, Response

I64 = st.integers(-(2**63), 2**63 - 1)
U16 = st.integers(0, 2**16 - 1)

REQUESTS = {
    "add": Request(ADD, ledger=7, entry=0, key=K0, body=E0),
    "recovery_add": Request(ADD, flags=6, ledger=7, entry=3, key=KP, body=E3),
    "read": Request(READ, ledger=7, entry=0),
    "read_version_0": Request(READ, version=0, ledger=7, entry=0),
    "fence": Request(READ, flags=1, ledger=7, entry=-1, key=KP),
    "batch_read": Request(BATCH_READ, ledger=7, entry=0, request_id=42, count_max=10, size_max=1 << 20),
    "auth": Request(AUTH, body=FRAMES["auth"][8:]),
}
ANSWERS = {
    "add_ok": Response(ADD, 0, 7, 0),
    "add_read_only": Response(ADD, 105, 7, 3),
    "fence_ok": Response(READ, 0, 7, -1, body=E1),
    "read_no_entry": Response(READ, 2, 7, 9),
    "read_bad_version": Response(READ, 103, 7, 0, version=3),
    "batch_ok": Response(BATCH_READ, 0, 7, 0, 42, pack([E0, E1])),
    "batch_no_entry": Response(BATCH_READ, 2, 7, 0, 42),
    "auth_disabled": Response(AUTH, body=FRAMES["auth_disabled"][8:]),
}


def encoded(answer: Response) -> bytes:
    """Return the frame of an ADD, READ or BATCH_READ response from the compiled codec."""
    fields = (answer.code, answer.ledger, answer.entry)
    if answer.op == BATCH_READ:
        return v2.batch_answer(answer.version, *fields, answer.request_id, answer.body)
    return v2.answer(answer.version, answer.op, *fields, answer.body)


def test_every_worked_frame_is_used() -> None:
    """Every worked frame is in one of the tables."""
    assert set(REQUESTS) | set(ANSWERS) == set(FRAMES)


@pytest.mark.parametrize("name", REQUESTS)
def test_worked_request(name: str) -> None:
    """The server parses the frame, and the model writes the same bytes."""
    assert v2.parse(FRAMES[name][4:]) == (model.OK, asdict(REQUESTS[name]))
    assert model.encode_request(REQUESTS[name]) == FRAMES[name]


@pytest.mark.parametrize("name", [name for name, answer in ANSWERS.items() if answer.op != AUTH])
def test_worked_answer(name: str) -> None:
    """The server writes the frame, and the model parses it."""
    assert encoded(ANSWERS[name]) == FRAMES[name]
    assert model.decode_response(FRAMES[name][4:]) == ANSWERS[name]


@given(st.sampled_from(list(REQUESTS)), st.integers(0, 255), U16, st.integers(0, 255), st.integers(0, 80), st.binary())
@example("add", 2, 0, 1, 64, b"")
@example("fence", 2, 1, 2, 39, b"")
@example("fence", 1, 1, 2, 20, b"")
@example("fence", 0x82, 1, 2, 20, b"")
def test_request_like_the_model(name: str, version: int, flags: int, op: int, size: int, tail: bytes) -> None:
    """Any header on a frame that is truncated or extended anywhere is parsed as by the model."""
    body = (model.header(version, op, flags) + FRAMES[name][8:])[:size] + tail
    expected, request = model.decode_request(body)
    status, fields = v2.parse(body)
    assert status == expected
    if request is not None:
        assert fields == asdict(request)


@given(st.binary(max_size=100))
def test_any_bytes_like_the_model(body: bytes) -> None:
    """Any bytes are accepted or refused as by the model."""
    assert v2.parse(body)[0] == model.decode_request(body)[0]


@given(st.integers(0, 2), st.sampled_from([ADD, READ, BATCH_READ]), st.integers(0, 107), I64, I64, I64, st.binary())
def test_answer_like_the_model(
    version: int, op: int, code: int, ledger: int, entry: int, request_id: int, body: bytes
) -> None:
    """Every response has the model's bytes."""
    answer = Response(op, code, ledger, entry, request_id if op == BATCH_READ else 0, body, version)
    assert encoded(answer) == model.encode_response(answer)


@pytest.mark.parametrize(("size", "status"), [(15, model.CLOSED), (16, model.BAD_REQUEST), (23, model.BAD_REQUEST)])
def test_short_add(size: int, status: int) -> None:
    """An entry without ledger and entry id closes the connection; one without a LAC is refused."""
    body = FRAMES["add"][4 : 4 + 24 + size]
    assert v2.parse(body)[0] == status


@pytest.mark.parametrize("entry", [-1, -0x1000, -0x2000, -(2**63)])
def test_negative_entry_id_is_refused(entry: int) -> None:
    """Entry ids that the journal uses for its own records are refused."""
    stored = E0[:8] + entry.to_bytes(8, "big", signed=True) + E0[16:]
    frame = model.encode_request(Request(ADD, key=K0, body=stored))
    status, fields = v2.parse(frame[4:])
    assert status == model.BAD_REQUEST
    assert (fields["ledger"], fields["entry"]) == (7, entry)


@pytest.mark.parametrize("op", [0, 4, 5, 6, 8, 255])
def test_unknown_operation_ends_the_connection(op: int) -> None:
    """Operations that exist only as a constant, or not at all, close the connection."""
    assert v2.parse(model.header(2, op) + bytes(60))[0] == model.CLOSED


def test_codes_are_of_the_table() -> None:
    """Every Status has a code that clients know. Limbo is EIO, since Java's V2 clients do not know 107."""
    known = {code.v2 for code in CODES} - {107}
    codes = [v2.code(status) for status in range(20)]
    assert set(codes) <= known
    assert codes[:1] == [0]
    assert 0 not in codes[1:]
    assert v2.code(11) == 101
