"""Test the client's side of V2 against the model: building frames, and splitting any receive buffer into responses."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client import framing_v2
from bookie._fast.wire.digest import Digester
from tests.golden.wire_v2 import E0, E1, E3, FRAMES, K0, KP
from tests.reference import record as entries
from tests.reference import wire_v2 as model
from tests.reference.wire_v2 import ADD, AUTH, BATCH_READ, READ, Request, Response

LIMIT = 5 << 20
I64 = st.integers(-(2**63), 2**63 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
IDS = st.integers(0, 2**62)
KINDS = st.sampled_from([1, 2, 3, 4])


def framer(kind: int = 3, ledger: int = 7, key: bytes = K0, limit: int = LIMIT, flags: int = 0) -> framing_v2.AddFramer:
    """Return a framer with the MAC key of the password "pw"."""
    mac_key = hashlib.sha1(b"macpw").digest()
    return framing_v2.AddFramer(Digester(kind, mac_key), key, ledger, limit, flags=flags)


def edges(payloads: list[bytes]) -> Any:
    """Return the int64 offsets of payloads that lie one after the other."""
    return np.cumsum([0, *map(len, payloads)], dtype=np.int64)


def table(rows: int = 16) -> Any:
    """Return an empty table of responses."""
    return np.zeros(rows, dtype=framing_v2.RESPONSE)


def cut(stream: bytes, limit: int = LIMIT, rows: int = 16) -> tuple[list[Response], int]:
    """Return the responses in a stream, as values of the model, and the number of bytes that were consumed."""
    cutter = table(rows)
    found, taken = [], 0
    while True:
        count, step, _ = framing_v2.cut(stream[taken:], limit, cutter)
        for op, code, ledger, entry, request_id, at, size in cutter[:count].tolist():
            body = stream[taken:][at : at + size]
            found.append(Response(op, code, ledger, entry, request_id, body))
        taken += step
        if count < rows:
            return found, taken


def test_worked_add_frames() -> None:
    """The frames of entry 0 and of the recovery add are identical to the worked ones."""
    assert framer().build(0, -1, 0, b"hello", edges([b"hello"])).tobytes() == FRAMES["add"]
    recovery = framer(kind=1, key=KP, flags=6)
    assert recovery.build(3, 2, 17, b"abc", edges([b"abc"])).tobytes() == FRAMES["recovery_add"]
    assert framing_v2.add_frame(KP, E3, 6) == FRAMES["recovery_add"]


def test_worked_read_frames() -> None:
    """The frames of READ, fencing READ, BATCH_READ and AUTH are identical to the worked ones."""
    assert framing_v2.read_frame(7, 0) == FRAMES["read"]
    assert framing_v2.read_frame(7, -1, 1, KP) == FRAMES["fence"]
    assert framing_v2.batch_read_frame(7, 0, 42, 10, 1 << 20) == FRAMES["batch_read"]
    assert framing_v2.auth_frame(FRAMES["auth"][8:]) == FRAMES["auth"]


def test_worked_answers_in_one_buffer() -> None:
    """All worked responses are found in one buffer, with their entries where the table says."""
    names = ["add_ok", "add_read_only", "fence_ok", "read_no_entry", "batch_ok", "batch_no_entry", "auth_disabled"]
    found, taken = cut(b"".join(FRAMES[name] for name in names))
    assert taken == sum(len(FRAMES[name]) for name in names)
    assert found == [
        Response(ADD, 0, 7, 0),
        Response(ADD, 105, 7, 3),
        Response(READ, 0, 7, -1, body=E1),
        Response(READ, 2, 7, 9),
        Response(BATCH_READ, 0, 7, 0, 42, entries.pack([E0, E1])),
        Response(BATCH_READ, 2, 7, 0, 42),
        Response(AUTH, body=FRAMES["auth_disabled"][8:]),
    ]


def test_an_answer_to_start_tls_among_them() -> None:
    """The response to START_TLS is in V3, and Java's bookie sends it twice: it becomes a row that no request waits
    for. Other V3 responses are errors.
    """
    late = bytes.fromhex("0000000b0a0608031009180a10f503")
    found, taken = cut(FRAMES["add_ok"] + late + FRAMES["auth_disabled"])
    assert taken == len(FRAMES["add_ok"]) + len(late) + len(FRAMES["auth_disabled"])
    assert [row.op for row in found] == [ADD, model.START_TLS, AUTH]
    with pytest.raises(ValueError, match="V2"):
        cut(late.replace(b"\x10\x09", b"\x10\x08"))


def test_answer_with_another_version() -> None:
    """The operation is read even if the version byte, which repeats that of the request, is another one."""
    assert cut(FRAMES["read_bad_version"])[0] == [Response(READ, 103, 7, 0)]
    assert cut(model.encode_response(Response(READ, 0, 7, 0, body=E0, version=0)))[0] == [
        Response(READ, 0, 7, 0, body=E0)
    ]


@given(KINDS, IDS, IDS, I64, st.integers(0, 2**40), st.lists(st.binary(max_size=100), max_size=6), st.integers(0, 7))
def test_add_frames_like_the_model(
    kind: int, ledger: int, first: int, lac: int, length: int, payloads: list[bytes], flags: int
) -> None:
    """The frames of a batch are those of the model one after the other, and lengths add up from payload to payload."""
    frames = framer(kind, ledger, KP, flags=flags).build(first, lac, length, b"".join(payloads), edges(payloads))
    expected = b""
    for k, payload in enumerate(payloads):
        length += len(payload)
        stored = entries.seal(kind, b"pw", (ledger, first + k, lac, length), payload)
        expected += model.encode_request(Request(ADD, flags=flags, key=KP, body=stored))
    assert frames.tobytes() == expected


@given(IDS, st.lists(st.tuples(IDS, st.binary(max_size=100)), min_size=1, max_size=6), st.integers(0, 7))
def test_stored_adds_like_the_model(ledger: int, stored: list[tuple[int, bytes]], flags: int) -> None:
    """Entries that are already sealed get the same frames, whatever their ids are."""
    sealed = [entries.seal(3, b"pw", (ledger, entry, -1, 0), payload) for entry, payload in stored]
    packed = [entries.pack([one]) for one in sealed]
    frames = framing_v2.stored_adds(KP, b"".join(packed), edges(packed), LIMIT, flags)
    assert frames.tobytes() == b"".join(framing_v2.add_frame(KP, one, flags) for one in sealed)
    tail = framing_v2.stored_adds(KP, b"".join(packed), edges(packed)[1:], LIMIT, flags)
    assert tail.tobytes() == b"".join(framing_v2.add_frame(KP, one, flags) for one in sealed[1:])


def test_stored_adds_that_do_not_fit() -> None:
    """The error names a record that is outside the buffer, shorter than its length word, or too long for a frame."""
    record = entries.pack([E0])
    for offsets, limit in (([0, 2], LIMIT), ([0, len(record) + 1], LIMIT), ([-1, 9], LIMIT), ([0, len(record)], 60)):
        with pytest.raises(ValueError, match="record 0"):
            framing_v2.stored_adds(K0, record, np.array(offsets, dtype=np.int64), limit)
    assert framing_v2.stored_adds(K0, b"", np.array([0], dtype=np.int64), LIMIT).size == 0


def test_batch_out_of_the_middle_of_a_buffer() -> None:
    """Offsets need not start at 0: a slice of them frames a part of the payloads."""
    payloads = [b"one", b"two", b"three"]
    whole = framer().build(5, 4, 100, b"".join(payloads), edges(payloads)).tobytes()
    head = framer().build(5, 4, 100, b"onetwothree", edges(payloads)[:2]).tobytes()
    tail = framer().build(6, 4, 103, b"onetwothree", edges(payloads)[1:]).tobytes()
    assert head + tail == whole


@pytest.mark.parametrize(
    ("offsets", "k"), [([0, 5, 12], 1), ([-1, 3], 0), ([0, 5, 4], 1), ([0, 2**62], 0), ([0, 1, 2, 11], 2)]
)
def test_payload_that_does_not_fit(offsets: list[int], k: int) -> None:
    """The error names a payload that is outside the buffer, of negative size or too long, and nothing is written."""
    with pytest.raises(ValueError, match=f"payload {k} is bytes"):
        framer(limit=72).build(0, -1, 0, b"hello world", np.array(offsets, dtype=np.int64))


def test_largest_payload_fills_the_frame_limit() -> None:
    """A payload of `payload_max` bytes fills the frame limit exactly."""
    one = framer(limit=1000)
    assert len(one.build(0, -1, 0, bytes(one.payload_max), np.array([0, one.payload_max]))) == 1000


@pytest.mark.parametrize("key", [b"", bytes(19), bytes(21)])
def test_key_of_the_wrong_size(key: bytes) -> None:
    """A master key must have 20 bytes in every frame that carries one."""
    builders: list[Callable[[], object]] = [
        lambda: framer(key=key),
        lambda: framing_v2.read_frame(7, -1, 1, key),
        lambda: framing_v2.add_frame(key, E0),
        lambda: framing_v2.batch_read_frame(7, 0, 1, 1, 1, 1, key),
    ]
    for build in builders:
        with pytest.raises(ValueError, match=f"master key has {len(key)} bytes"):
            build()


RESPONSES = st.one_of(
    st.builds(Response, st.sampled_from([ADD, READ]), I32, I64, I64, body=st.binary(max_size=60)),
    st.builds(Response, st.just(BATCH_READ), st.integers(0, 107), I64, I64, I64, st.binary(max_size=60)),
    st.builds(Response, st.just(AUTH), body=st.binary(max_size=20)),
)


@given(st.lists(RESPONSES, max_size=12), st.binary(max_size=3), st.integers(1, 5))
def test_any_answers_are_cut_like_the_model(answers: list[Response], tail: bytes, rows: int) -> None:
    """Whatever the responses and the size of the table, all whole responses are found and the torn tail is left."""
    stream = b"".join(model.encode_response(answer) for answer in answers)
    assert cut(stream + tail, rows=rows) == (answers, len(stream))


@given(st.lists(RESPONSES, min_size=1, max_size=4), st.data())
def test_torn_frame_waits(answers: list[Response], data: st.DataObject) -> None:
    """A stream that is cut anywhere gives the whole responses before the cut, and the length of the torn one."""
    stream = b"".join(model.encode_response(answer) for answer in answers)
    part = stream[: data.draw(st.integers(0, len(stream)))]
    whole, taken = model.cut(part, LIMIT) or ([], 0)
    count, got, need = framing_v2.cut(part, LIMIT, table())
    assert (count, got) == (len(whole), taken)
    torn = part[taken:]
    assert need == (4 + int.from_bytes(torn[:4], "big") if len(torn) >= 4 else 0)


@given(st.binary(max_size=80), st.integers(8, 64))
def test_hostile_answers(stream: bytes, limit: int) -> None:
    """Any bytes are split as in the model, or refused with ValueError if the model refuses them."""
    whole = model.cut(stream, limit)
    decoded = [model.decode_response(body) for body in whole[0]] if whole else [None]
    if None in decoded:
        with pytest.raises(ValueError, match="not a V2 response"):
            framing_v2.cut(stream, limit, table(64))
        return
    assert framing_v2.cut(stream, limit, table(64))[0] == len(decoded)


@pytest.mark.parametrize("length", [LIMIT - 3, 2**31 - 1, 2**31, 2**32 - 1])
def test_length_beyond_the_limit(length: int) -> None:
    """The length word alone is enough to refuse a frame that is too large or has a negative length."""
    with pytest.raises(ValueError, match="response 0 at byte 0"):
        framing_v2.cut(length.to_bytes(4, "big"), LIMIT, table())


def test_largest_frame_is_awaited() -> None:
    """The limit includes the length word: a body of limit - 4 bytes is accepted."""
    assert framing_v2.cut((LIMIT - 4).to_bytes(4, "big"), LIMIT, table()) == (0, 0, LIMIT)
