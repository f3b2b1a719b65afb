"""Our V2 codec against frames that Apache BookKeeper's client and bookie exchanged (tests/golden/java)."""

import json
from pathlib import Path

import pytest

from bookie._fast.wire import v2
from tests.interop.payload import payload

FRAMES = json.loads((Path(__file__).parent / "java" / "frames.json").read_text())
OP_ADD, OP_READ, OP_AUTH, OP_BATCH = 1, 2, 3, 7
KEY_OF_PW = bytes.fromhex("2aa226ba095b6969a64871977693b14671710d76")
KEY_OF_OTHER = bytes.fromhex("1773c02dbd4bbc2be47e2f59dafba542ef6e4fea")

# The content of each request: operation, flags, ledger, and the entry (for a batch, its first one).
REQUESTS = {
    "add_0": (OP_ADD, 0, 7, 0),
    "add_1": (OP_ADD, 0, 7, 1),
    "add_2": (OP_ADD, 0, 7, 2),
    "add_crc32": (OP_ADD, 0, 7, 3),
    "add_hmac": (OP_ADD, 0, 7, 4),
    "add_dummy": (OP_ADD, 0, 7, 5),
    "add_empty": (OP_ADD, 0, 7, 8),
    "add_large": (OP_ADD, 0, 7, 9),
    "add_other_key": (OP_ADD, 0, 7, 10),
    "read": (OP_READ, 0, 7, 1),
    "read_last": (OP_READ, 0, 7, -1),
    "read_high_priority": (OP_READ, 4, 7, 2),
    "read_no_entry": (OP_READ, 0, 7, 7),
    "read_no_ledger": (OP_READ, 0, 12345, 0),
    "batch": (OP_BATCH, 0, 7, 0),
    "batch_to_gap": (OP_BATCH, 0, 7, 2),
    "batch_by_size": (OP_BATCH, 0, 7, 0),
    "batch_one": (OP_BATCH, 0, 7, 9),
    "batch_no_entry": (OP_BATCH, 0, 7, 6),
    "batch_no_ledger": (OP_BATCH, 0, 12345, 0),
    "fence_other_key": (OP_READ, 1, 7, -1),
    "fence": (OP_READ, 1, 7, -1),
    "add_fenced": (OP_ADD, 0, 7, 10),
    "add_recovery": (OP_ADD, 6, 7, 10),
    "read_recovery": (OP_READ, 5, 7, 10),
    "batch_fence_empty": (OP_BATCH, 1, 8, 0),
    "read_version_3_answers_ebadversion": (OP_READ, 0, 7, 0),
    "read_version_1": (OP_READ, 0, 7, 0),
    "read_version_0": (OP_READ, 0, 7, 0),
    "add_of_16_bytes_answers_ebadreq": (OP_ADD, 0, 9, 0),
}
BATCHES = {
    # count, size, entries in the answer
    "batch": (3, 1 << 20, [0, 1, 2]),
    "batch_to_gap": (0, 1 << 20, [2, 3, 4, 5]),
    "batch_by_size": (10, 130, [0, 1]),
    "batch_one": (10, 0, [9]),
}
CODES = {
    "add_other_key": 102,
    "read_no_entry": 2,
    "read_no_ledger": 1,
    "batch_no_entry": 2,
    "batch_no_ledger": 1,
    "fence_other_key": 102,
    "add_fenced": 104,
    "batch_fence_empty": 2,
    "read_version_3_answers_ebadversion": 103,
    "add_of_16_bytes_answers_ebadreq": 100,
}


def frame(name: str, side: str) -> bytes:
    """Return a recorded frame."""
    return bytes.fromhex(FRAMES[name][side])


def stored(entry: int) -> bytes:
    """Return the entry of ledger 7 that the Java client sent."""
    names = {0: "add_0", 1: "add_1", 2: "add_2", 3: "add_crc32", 4: "add_hmac", 5: "add_dummy", 9: "add_large"}
    return frame(names.get(entry, "add_recovery"), "request")[28:]


def test_everything_recorded_is_tested() -> None:
    """Every captured frame is in a table here."""
    assert FRAMES.keys() == {*REQUESTS, "auth"}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_are_understood(name: str) -> None:
    """Our parser finds in each request of the Java client what that client was told to send."""
    op, flags, ledger, entry = REQUESTS[name]
    request = frame(name, "request")
    assert int.from_bytes(request[:4], "big") == len(request) - 4
    _, parsed = v2.parse(request[4:])
    assert (parsed["op"], parsed["flags"], parsed["ledger"], parsed["entry"]) == (op, flags, ledger, entry)


@pytest.mark.parametrize("name", [name for name, (op, flags, *_) in REQUESTS.items() if op == OP_ADD or flags & 1])
def test_keys_are_found(name: str) -> None:
    """Adds and fencing reads have the master key."""
    _, parsed = v2.parse(frame(name, "request")[4:])
    expected = KEY_OF_OTHER if "other" in name else bytes(20) if "16_bytes" in name else KEY_OF_PW
    assert parsed["key"] == expected


@pytest.mark.parametrize("name", BATCHES)
def test_batch_limits_are_found(name: str) -> None:
    """Count and size of a batch read are those that the Java client was told to send."""
    count, size, _ = BATCHES[name]
    _, parsed = v2.parse(frame(name, "request")[4:])
    assert (parsed["count_max"], parsed["size_max"]) == (count, size)


@pytest.mark.parametrize("name", [name for name, (op, *_) in REQUESTS.items() if op in {OP_ADD, OP_READ}])
def test_single_answers_are_the_same(name: str) -> None:
    """Our responses to ADD and READ equal those of the Java bookie, byte for byte."""
    op, _, ledger, entry = REQUESTS[name]
    version = frame(name, "request")[4]
    code = CODES.get(name, 0)
    entries = {"read_last": 9, "fence": 9, "read_recovery": 10}
    data = stored(entries.get(name, entry)) if op == OP_READ and code == 0 else b""
    assert v2.answer(version, op, code, ledger, entry, data) == frame(name, "answer")


@pytest.mark.parametrize("name", [name for name, (op, *_) in REQUESTS.items() if op == OP_BATCH])
def test_batch_answers_are_the_same(name: str) -> None:
    """Our responses to BATCH_READ equal those of the Java bookie, byte for byte."""
    _, _, ledger, start = REQUESTS[name]
    _, parsed = v2.parse(frame(name, "request")[4:])
    entries = [stored(entry) for entry in BATCHES.get(name, (0, 0, []))[2]]
    run = b"".join(len(entry).to_bytes(4, "big") + entry for entry in entries)
    ours = v2.batch_answer(2, CODES.get(name, 0), ledger, start, parsed["request_id"], run)
    assert ours == frame(name, "answer")


@pytest.mark.parametrize(
    ("name", "entry", "header", "size"),
    [
        ("add_0", 0, 36, 5),
        ("add_crc32", 3, 40, 9),
        ("add_hmac", 4, 52, 9),
        ("add_dummy", 5, 32, 9),
        ("add_large", 9, 36, 700),
    ],
)
def test_both_languages_compute_the_same_content(name: str, entry: int, header: int, size: int) -> None:
    """Entry content is computed alike in Python and in Java, on which every verification across languages relies."""
    assert frame(name, "request")[28 + header :] == payload(7, entry, size)
