"""Test the client's side of V3 against the protobuf library, which parses its frames and writes the responses."""

import hashlib
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client import framing_v2, framing_v3
from bookie._fast.wire.digest import Digester
from bookie.client import Digest, DigestType
from bookie.pb import wire_pb2 as pb
from tests.reference import record as entries

LIMIT = 5 << 20
DIGEST = Digest.of(DigestType.CRC32C)
K0 = DIGEST.master_key
I64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.integers(0, 2**62)
ADD_E0 = bytes.fromhex(
    "000000500a06080310021801aa0645080710001a14850bf1071c5e3d8c24235676f8816ae0cbe2f14f2229000000000000000700000000000000"
    "00ffffffffffffffff00000000000000059e3e717b68656c6c6f"
)


def edges(payloads: list[bytes]) -> Any:
    """Return the int64 offsets of payloads that lie one after the other."""
    return np.cumsum([0, *map(len, payloads)], dtype=np.int64)


def framed(message: pb.Response) -> bytes:
    """Return a response with its length word, as a bookie sends it."""
    body = message.SerializeToString()
    return len(body).to_bytes(4, "big") + body


def response(op: int, txn: int, status: int = 0, **sub: Any) -> pb.Response:
    """Return a response with its required fields, and sub-messages by name."""
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=op, txnId=txn)  # type: ignore[arg-type]
    return pb.Response(header=header, status=status, **sub)  # type: ignore[arg-type]


def cut(stream: bytes, limit: int = LIMIT, rows: int = 8) -> tuple[list[tuple[int, int, int, bytes]], int]:
    """Return (op, status, transaction, body) of each response in a stream, and the number of bytes consumed."""
    table: Any = np.zeros(rows, dtype=framing_v2.RESPONSE)
    found, taken = [], 0
    while True:
        count, step, _ = framing_v3.cut(stream[taken:], limit, table)
        for op, code, _, _, txn, at, size in table[:count].tolist():
            found.append((op, code, txn, stream[taken:][at : at + size]))
        taken += step
        if count < rows:
            return found, taken


def test_the_worked_add() -> None:
    """The frame of entry 0, "hello", of ledger 7 as transaction 1 is identical to the worked frame."""
    framer = framing_v3.AddFramerV3(DIGEST.digester, K0, 7, LIMIT)
    assert framer.build(0, -1, 0, b"hello", edges([b"hello"]), 1).tobytes() == ADD_E0


@given(
    st.lists(st.tuples(IDS, st.binary(max_size=300)), min_size=1, max_size=10),
    st.tuples(IDS, st.integers(1, 2**60)),
    st.tuples(st.sampled_from([0, 100]), st.sampled_from([0, 1]), st.booleans()),
    st.binary(max_size=40),
)
def test_stored_adds_parse(
    stored: list[tuple[int, bytes]], ids: tuple[int, int], options: tuple[int, int, bool], key: bytes
) -> None:
    """The frames of entries that are already sealed are what the protobuf library would have written."""
    (ledger, transaction), (priority, write_flags, recovery) = ids, options
    sealed = [DIGEST.seal(ledger, entry, payload, lac=-1, length=0) for entry, payload in stored]
    packed = [entries.pack([one]) for one in sealed]
    numbers = np.array([entry for entry, _ in stored], dtype=np.int64)
    frames = framing_v3.stored_adds(
        ledger, key, b"".join(packed), edges(packed), numbers, transaction, LIMIT,
        priority=priority, write_flags=write_flags, recovery=recovery,
    ).tobytes()  # fmt: skip
    for k, one in enumerate(sealed):
        size = int.from_bytes(frames[:4], "big")
        request = pb.Request.FromString(frames[4 : 4 + size])
        assert request.SerializeToString() == frames[4 : 4 + size]
        assert (request.header.txnId, request.header.priority) == (transaction + k, priority)
        add = request.addRequest
        assert (add.ledgerId, add.entryId, add.masterKey, add.body) == (ledger, stored[k][0], key, one)
        assert (add.writeFlags, add.HasField("flag")) == (write_flags, recovery)
        frames = frames[4 + size :]
    assert not frames


def test_stored_adds_that_do_not_fit() -> None:
    """The error names the record that does not fit, and offsets must agree with entry ids in number."""
    record = entries.pack([bytes.fromhex("00" * 40)])
    one, two = np.array([5], dtype=np.int64), np.array([5, 6], dtype=np.int64)
    with pytest.raises(ValueError, match="record 0 needs a frame"):
        framing_v3.stored_adds(7, K0, record, edges([record]), one, 1, 80)
    with pytest.raises(ValueError, match="2 offsets for 2 entries"):
        framing_v3.stored_adds(7, K0, record, edges([record]), two, 1, LIMIT)
    with pytest.raises(ValueError, match="record 0 is bytes"):
        framing_v3.stored_adds(7, K0, record, np.array([0, 99], dtype=np.int64), one, 1, LIMIT)


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=20),
    st.tuples(IDS, st.integers(0, 2**61), I64, st.integers(0, 2**40), st.integers(-(2**60), 2**61)),
    st.tuples(st.integers(0, 2**31), st.sampled_from([0, 1, 2**31 - 1]), st.booleans()),
    st.binary(max_size=200),
    st.sampled_from(DigestType),
)
def test_adds_parse(
    payloads: list[bytes],
    ids: tuple[int, int, int, int, int],
    options: tuple[int, int, bool],
    key: bytes,
    kind: DigestType,
) -> None:
    """The protobuf library parses each frame, and would have written the same bytes."""
    (ledger, first, lac, length, base), (priority, write_flags, recovery) = ids, options
    base = max(base, -first)
    digest = Digest.of(kind, b"pw")
    framer = framing_v3.AddFramerV3(
        digest.digester, key, ledger, LIMIT, priority=priority, write_flags=write_flags, recovery=recovery
    )
    stream = framer.build(first, lac, length, b"".join(payloads), edges(payloads), base + first).tobytes()
    for k, payload in enumerate(payloads):
        length += len(payload)
        header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.ADD_ENTRY, txnId=base + first + k)
        add = pb.AddRequest(ledgerId=ledger, entryId=first + k, masterKey=key)
        add.body = digest.seal(ledger, first + k, payload, lac=lac, length=length)
        if priority:
            header.priority = priority
        if write_flags:
            add.writeFlags = write_flags
        if recovery:
            add.flag = pb.AddRequest.RECOVERY_ADD
        body = pb.Request(header=header, addRequest=add).SerializeToString()
        assert stream[:4] == len(body).to_bytes(4, "big")
        assert stream[4 : 4 + len(body)] == body
        stream = stream[4 + len(body) :]
    assert not stream


def test_the_frame_limit_is_exact() -> None:
    """A payload that fills the limit is framed. One more byte is refused, and the error gives the payload's number."""
    fixed = len(ADD_E0) - len(b"hello")
    framer = framing_v3.AddFramerV3(DIGEST.digester, K0, 7, fixed + 10)
    assert len(framer.build(0, -1, 0, bytes(10), edges([bytes(10)]), 1)) == fixed + 10
    with pytest.raises(ValueError, match=f"payload 1 needs a frame of {fixed + 11} bytes; the limit is {fixed + 10}"):
        framer.build(0, -1, 0, bytes(21), edges([bytes(10), bytes(11)]), 1)


@pytest.mark.parametrize("offsets", [[0, 6], [-1, 3], [3, 2]])
def test_payloads_lie_inside(offsets: list[int]) -> None:
    """Offsets that are outside the payloads or decrease are refused."""
    framer = framing_v3.AddFramerV3(DIGEST.digester, K0, 7, LIMIT)
    with pytest.raises(ValueError, match="payload 0 is bytes"):
        framer.build(0, -1, 0, b"hello", np.array(offsets), 1)


RESPONSES = st.builds(
    response,
    st.sampled_from([1, 2, 6, 7, 10, 12]),
    st.integers(0, 2**63 - 1),
    st.sampled_from([0, 402, 403, 404, 501, 507]),
    readResponse=st.none()
    | st.builds(pb.ReadResponse, status=st.just(0), ledgerId=I64, entryId=I64, body=st.binary(max_size=200)),
)


@given(st.lists(RESPONSES, max_size=20), st.integers(0, 100), st.integers(1, 8))
def test_answers_are_cut(messages: list[pb.Response], missing: int, rows: int) -> None:
    """Whole responses become rows in order, whatever else they contain, and a torn one is left."""
    stream = b"".join(map(framed, messages))
    stream = stream[: max(len(stream) - missing, 0)]
    found, taken = cut(stream, rows=rows)
    whole, at = [], 0
    for message in messages:
        size = len(framed(message))
        if at + size > len(stream):
            break
        at += size
        whole.append((message.header.operation, message.status, message.header.txnId, message.SerializeToString()))
    assert (found, taken) == (whole, at)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_as_an_answer(body: bytes) -> None:
    """If bytes pass as a response, its operation, status and transaction are those that the library reads."""
    stream = len(body).to_bytes(4, "big") + body
    try:
        found, _ = cut(stream)
    except ValueError:
        return
    assert len(found) == 1
    message = pb.Response()
    try:
        message.ParseFromString(body)
    except DecodeError:
        return
    if message.HasField("header") and message.HasField("status"):
        assert found[0][:3] == (message.header.operation, message.status, message.header.txnId)


@pytest.mark.parametrize("data", ["ffffffff", "00500000", "00000000", "0000000a0a060803100218010b0c", "000000020a06"])
def test_broken_answers(data: str) -> None:
    """Impossible lengths, empty frames, groups and frames without a status are refused."""
    with pytest.raises(ValueError, match="response 0 at byte 0 is not a V3 response"):
        cut(bytes.fromhex(data))


def batch(bodies: list[bytes], lac: int | None = None) -> bytes:
    """Return the body of a batch response as the library writes it, with the shortest encoding of each length."""
    sub = pb.BatchReadResponse(status=pb.EOK, ledgerId=7, startEntryId=0, body=bodies, maxLAC=lac)
    return response(pb.BATCH_READ_ENTRY, 5, batchReadResponse=sub).SerializeToString()


def padded(bodies: list[bytes], lac: int | None = None) -> bytes:
    """Return the same response with four bytes of tag and length before each entry, as our bookies write it."""
    sub = pb.BatchReadResponse(status=pb.EOK, ledgerId=7, startEntryId=0, maxLAC=lac).SerializeToString()
    for body in bodies:
        size = len(body)
        sub += bytes([0x22, size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + body
    message = response(pb.BATCH_READ_ENTRY, 5).SerializeToString() + b"\xea\x06"
    size = len(sub)
    return message + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + sub


BODIES = st.lists(st.binary(max_size=300), max_size=12)


@given(BODIES, st.none() | I64)
def test_batches_become_runs(bodies: list[bytes], lac: int | None) -> None:
    """Both layouts give the run of records and the LAC."""
    for message in (batch(bodies, lac), padded(bodies, lac)):
        assert pb.Response.FromString(message).batchReadResponse.body == bodies
        run, reported = framing_v3.batch_run(bytearray(message))
        assert (bytes(run), reported) == (entries.pack(bodies), lac)


def test_the_padded_layout_stays_where_it_is() -> None:
    """In the padded layout no entry is moved."""
    message = bytearray(padded([b"hello", b"", bytes(70_000)]))
    run, _ = framing_v3.batch_run(message)
    assert run.obj is not None
    message[message.index(b"hello")] = ord("H")
    assert bytes(run)[4:9] == b"Hello"


@given(BODIES, st.integers(1, 400))
def test_torn_batches(bodies: list[bytes], cut_off: int) -> None:
    """A truncated batch response is refused or gives fewer entries, but never other ones."""
    message = bytearray(padded(bodies))[:-cut_off]
    try:
        run, _ = framing_v3.batch_run(message)
    except ValueError:
        return
    assert bytes(run) == b""


def test_no_batch() -> None:
    """A response to another request is not taken for a batch."""
    for message in (b"", response(pb.READ_ENTRY, 1).SerializeToString()):
        with pytest.raises(ValueError, match="holds no BatchReadResponse"):
            framing_v3.batch_run(bytearray(message))


def test_digests_are_the_writers() -> None:
    """A framer seals entries with the digester that it was given."""
    digester = Digester(2, hashlib.sha1(b"macpw").digest())
    frame = framing_v3.AddFramerV3(digester, K0, 7, LIMIT).build(5, 4, 0, b"x", edges([b"x"]), 1).tobytes()
    stored = pb.Request.FromString(frame[4:]).addRequest.body
    assert stored == Digest.of(DigestType.HMAC, b"pw").seal(7, 5, b"x", lac=4, length=1)
