"""Test V3 responses: worked frames, and every writer against the protobuf library, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.wire import v3, v3_answers
from bookie.pb import wire_pb2 as pb
from tests.golden.wire_v2 import E0, E1
from tests.golden.wire_v3 import FRAMES, LAC_1
from tests.reference import wire_v3_answers as model
from tests.reference.record import pack

I64 = st.integers(-(2**63), 2**63 - 1)
U64 = st.integers(0, 2**64 - 1)
STATUS = st.integers(0, 19)
BODY = st.binary(max_size=300)
TAIL = {"lac": st.none() | I64, "time_ms": st.none() | I64}
WORKED = {
    "add_ok": v3_answers.answer(2, 1, 0, 7, 0),
    "fence_ok": v3_answers.read_answer(2, 7, -1, E1),
    "read_no_entry": v3_answers.answer(1, 3, 3, 7, 9),
    "long_poll_ok": v3_answers.read_answer(4, 7, 1, E1, lac=1, time_ms=1700000000000),
    "long_poll_timeout": v3_answers.read_answer(4, 7, -1, lac=0),
    "read_lac_ok": v3_answers.read_lac_answer(7, 0, 7, LAC_1, E1),
    "start_tls_ok": v3_answers.answer(9, 10, 0),
    "start_tls_refused": v3_answers.refusal(3, 9, 10, 0, 4),
    "batch_read_refused": v3_answers.refusal(3, 12, 12, 0, 4),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_answer(name: str) -> None:
    """The server writes the worked frame."""
    assert WORKED[name] == FRAMES[name]


@given(st.integers(1, 3), st.integers(1, 13), U64, st.integers(0, 2**32 - 1), STATUS)
def test_refusal_like_the_library(version: int, op: int, txn: int, priority: int, status: int) -> None:
    """The header has version, operation, transaction id and priority of the request."""
    ours = v3_answers.refusal(version, op, txn, priority, status)
    assert ours == model.refusal(version, op, txn, priority, v3.code(status))


@given(st.sampled_from(sorted(model.PARTS)), U64, STATUS, I64, I64)
def test_answer_like_the_library(op: int, txn: int, status: int, ledger: int, entry: int) -> None:
    """Responses to every operation with every status fit the space that the contract demands."""
    ours = v3_answers.answer(op, txn, status, ledger, entry)
    fields = {"ledgerId": ledger, "entryId": entry, "startEntryId": entry}
    assert ours == model.answer(op, txn, v3.code(status), **fields)
    assert len(ours) <= 64


@pytest.mark.parametrize("op", [-1, 0, 3, 4, 5, 14, 256])
def test_operations_without_an_answer(op: int) -> None:
    """No response is written for operations that do not exist, or that Python answers."""
    with pytest.raises(ValueError, match="operation"):
        v3_answers.answer(op, 1, 0)


@given(U64, I64, I64, st.none() | BODY, TAIL["lac"], TAIL["time_ms"])
def test_read_like_the_library(
    txn: int, ledger: int, entry: int, body: bytes | None, lac: int | None, time_ms: int | None
) -> None:
    """Reads with and without a body, LAC and time have the library's bytes."""
    ours = v3_answers.read_answer(txn, ledger, entry, body, lac, time_ms)
    fields = {"ledgerId": ledger, "entryId": entry, "body": body, "maxLAC": lac, "lacUpdateTimestamp": time_ms}
    assert ours == model.answer(pb.READ_ENTRY, txn, 0, **fields)
    assert len(ours) - len(body or b"") <= 72 + 24


@given(U64, STATUS, I64, st.none() | BODY, st.none() | BODY)
def test_read_lac_like_the_library(txn: int, status: int, ledger: int, lac: bytes | None, entry: bytes | None) -> None:
    """Either body may be absent, and may be present together with an error."""
    ours = v3_answers.read_lac_answer(txn, status, ledger, lac, entry)
    fields = {"ledgerId": ledger, "lacBody": lac, "lastEntryBody": entry}
    assert ours == model.answer(pb.READ_LAC, txn, v3.code(status), **fields)
    assert len(ours) - len(lac or b"") - len(entry or b"") <= 72


@given(U64, I64, I64, st.lists(BODY, max_size=4), TAIL["lac"], TAIL["time_ms"])
def test_batch_like_the_model(
    txn: int, ledger: int, start: int, entries: list[bytes], lac: int | None, time_ms: int | None
) -> None:
    """A batch has the model's bytes, and the library parses it."""
    ours = v3_answers.batch_answer(txn, ledger, start, entries, lac, time_ms)
    assert ours == model.batch(txn, ledger, start, entries, maxLAC=lac, lacUpdateTimestamp=time_ms)
    part = pb.Response.FromString(ours[4:]).batchReadResponse
    assert (part.ledgerId, part.startEntryId, list(part.body)) == (ledger, start, entries)
    assert (part.maxLAC if part.HasField("maxLAC") else None) == lac
    assert (part.lacUpdateTimestamp if part.HasField("lacUpdateTimestamp") else None) == time_ms


@given(st.lists(BODY, max_size=8))
def test_records_become_entries_in_place(entries: list[bytes]) -> None:
    """A copied run of records becomes the entries of a batch in one pass."""
    run = bytearray(pack(entries))
    v3_answers.batch_entries(run)
    assert bytes(run) == b"".join(model.entry_prefix(len(entry)) + entry for entry in entries)


@pytest.mark.parametrize(("size", "prefix"), [(0, 4), (2**21 - 1, 4), (2**21, 5), (2**28 - 1, 5), (2**28, 6)])
def test_prefixes_of_large_entries(size: int, prefix: int) -> None:
    """The prefix has four bytes below 2 MiB, and above that as many as the length needs."""
    assert v3_answers.prefix(size) == model.entry_prefix(size)
    assert len(v3_answers.prefix(size)) == prefix


def test_a_large_batch() -> None:
    """A batch may have entries above and below 2 MiB."""
    entries = [bytes(2**21 + 5), E0, E1]
    answer = v3_answers.batch_answer(1, 7, 0, entries)
    assert list(pb.Response.FromString(answer[4:]).batchReadResponse.body) == entries
