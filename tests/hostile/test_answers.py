"""Every operation in every state of a ledger and a bookie, over a socket: the code and the echoed fields.

Modules: server.dispatch, store.storage.
"""

import random
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bookie.storage.settings import MIB
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import KEY, Peer, add, batch, entry_of, read, records
from tests.reference.wire_v2 import ADD, AUTH, BATCH_READ, READ, Request, encode_request

OK, NO_LEDGER, NO_ENTRY, BAD, UNAUTHORIZED, BAD_VERSION, FENCED, READ_ONLY, TOO_MANY = (
    0,
    1,
    2,
    100,
    102,
    103,
    104,
    105,
    106,
)
FENCE, RECOVERY, HIGH = 1, 2, 4
REASONS = 18
OTHER_KEY = bytes(reversed(KEY))
pytestmark = pytest.mark.leaks("one bookie serves the whole file, and opens logs as it goes")
fresh = count(1000)


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """Ledger 1 has entries 0 to 9; ledger 2 has entry 0 and a fence; ledger 3 only a fence; others are unknown."""
    with local_bookie(tmp_path_factory.mktemp("bookie")) as bookie:
        with bookie.peer() as peer:
            for entry in range(10):
                assert peer.ask(add(1, entry, b"payload")).code == OK
            assert peer.ask(add(2, 0, b"payload")).code == OK
            assert peer.ask(read(2, -1, flags=FENCE, key=KEY)).code == OK
            assert peer.ask(read(3, -1, flags=FENCE, key=KEY)).code == NO_ENTRY
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """A connection."""
    with bookie.peer() as peer:
        yield peer


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (read(1, 0), OK),
        (read(1, 9), OK),
        (read(1, -1), OK),
        (read(1, 10), NO_ENTRY),
        (read(1, -2), NO_ENTRY),
        (read(1, 2**63 - 1), NO_ENTRY),
        (read(1, -(2**63)), NO_ENTRY),
        (read(77, 0), NO_LEDGER),
        (read(77, -1), NO_LEDGER),
        (read(-1, 0), NO_LEDGER),
        (read(-(2**63), -1), NO_LEDGER),
        (read(3, 0), NO_ENTRY),
        (read(3, -1), NO_ENTRY),
        (read(2, 0), OK),
        (read(1, 0, version=0), OK),
        (read(1, 0, version=1), OK),
        (read(1, 0, version=3), BAD_VERSION),
        (read(1, 0, version=127), BAD_VERSION),
        (read(1, 0, version=0xFF), BAD_VERSION),
        (read(1, 0, version=0x80), BAD_VERSION),
        (read(1, 0, flags=FENCE, version=1), UNAUTHORIZED),
        (read(1, 0, flags=HIGH | 0x8000), OK),
        (read(1, 0, flags=FENCE, key=OTHER_KEY), UNAUTHORIZED),
        (read(-5, 0, flags=FENCE, key=KEY), BAD),
        (batch(1, 0), OK),
        (batch(1, 0, count=3), OK),
        (batch(1, -1), OK),
        (batch(1, 10), NO_ENTRY),
        (batch(77, 0), NO_LEDGER),
        (batch(3, -1), NO_ENTRY),
        (batch(1, 0, version=0), OK),
        (batch(1, 0, version=1), OK),
        (batch(1, 0, version=3), BAD_VERSION),
        (batch(1, 0, version=0xFF), BAD_VERSION),
        (batch(1, 0, flags=FENCE, version=1), UNAUTHORIZED),
        (batch(1, 0, flags=FENCE, key=OTHER_KEY), UNAUTHORIZED),
        (add(1, 0, b"payload", key=OTHER_KEY), UNAUTHORIZED),
        (add(1, 0, b"payload", key=OTHER_KEY, flags=RECOVERY | HIGH), UNAUTHORIZED),
        (add(2, 1, b"x"), FENCED),
        (add(2, 1, b"x", flags=HIGH), FENCED),
        (add(3, 0, b"x"), FENCED),
        (add(1, -1), BAD),
        (add(1, -0x1000), BAD),
        (add(1, -(2**63)), BAD),
        (add(-1, 0), BAD),
        (add(1, 0, b"payload", version=3), BAD_VERSION),
        (add(1, 0, b"payload", version=0xFF), BAD_VERSION),
        (add(1, -1, version=3), BAD_VERSION),
        (add(1, 0, b"payload", version=0), OK),
        (add(1, 0, b"payload", version=1), OK),
    ],
)
def test_codes(bookie: LocalBookie, peer: Peer, request_: Request, code: int, *, flushed: bool) -> None:
    """The response is the same from memory and from disk, with the request's version, operation and ids."""
    if flushed:
        assert bookie.storage.checkpoint()
    answer = peer.ask(request_)
    ledger, entry = request_.ledger, request_.entry
    if request_.op == ADD:
        ledger, entry = struct.unpack(">qq", (request_.body or b"")[:16])
    assert (answer.code, answer.op, answer.version) == (code, request_.op, request_.version)
    assert (answer.ledger, answer.entry) == (ledger, entry)
    assert answer.request_id == request_.request_id
    if code != OK or request_.op == ADD:
        assert answer.body == b""
    elif request_.op == READ:
        stored = 9 if entry == -1 else entry
        assert answer.body == entry_of(ledger, stored, b"payload")
    else:
        assert answer.op == BATCH_READ
        ids = [9] if entry == -1 else range(entry, min(10, entry + (request_.count_max or 10)))
        assert records(answer.body) == [entry_of(1, k, b"payload") for k in ids]


@pytest.mark.parametrize("size", [16, 17, 23])
def test_an_entry_without_a_lac_is_refused(peer: Peer, size: int) -> None:
    """From 16 bytes on the ledger is known, so there is a response."""
    answer = peer.ask(Request(ADD, key=KEY, body=entry_of(next(fresh), 0)[:size]))
    assert answer.code == BAD


def test_an_entry_of_a_header_alone(peer: Peer) -> None:
    """24 bytes, without digest and payload, are accepted: a bookie does not examine what follows."""
    ledger = next(fresh)
    assert peer.ask(Request(ADD, key=KEY, body=entry_of(ledger, 0)[:24])).code == OK
    assert peer.ask(read(ledger, 0)).body == entry_of(ledger, 0)[:24]


@pytest.mark.parametrize("version", [0, 2, 3, 0xFF])
@pytest.mark.parametrize("body", [b"", b"\x0a\x04sasl\x12\x00", bytes(1000)])
def test_auth_is_answered_as_without_auth(peer: Peer, version: int, body: bytes) -> None:
    """Any AUTH, of any version, gets the same response in version 2, and the connection continues."""
    answer = peer.ask(Request(AUTH, version, body=body))
    assert (answer.op, answer.version, answer.body) == (AUTH, 2, b"\x0a\x12AuthDisabledPlugin\x12\x00")
    assert peer.ask(read(1, 0)).code == OK


def test_a_fencing_read_is_a_read(peer: Peer) -> None:
    """B8: it returns the entry or the reason why there is none, repeatedly; then only recovery adds are accepted."""
    ledger = next(fresh)
    assert peer.ask(add(ledger, 0, b"x")).code == OK
    for _ in range(2):
        answer = peer.ask(read(ledger, -1, flags=FENCE, key=KEY))
        assert (answer.code, answer.entry, answer.body) == (OK, -1, entry_of(ledger, 0, b"x"))
        assert peer.ask(read(ledger, 5, flags=FENCE, key=KEY)).code == NO_ENTRY
        assert records(peer.ask(batch(ledger, 0, flags=FENCE | HIGH, key=KEY)).body) == [entry_of(ledger, 0, b"x")]
        assert peer.ask(add(ledger, 1, b"y")).code == FENCED
    assert peer.ask(add(ledger, 1, b"y", flags=RECOVERY | HIGH)).code == OK
    assert peer.ask(add(ledger, 2, b"y")).code == FENCED
    assert peer.ask(read(ledger, -1)).body == entry_of(ledger, 1, b"y")


@pytest.mark.parametrize("request_", [read(0, -1), batch(0, 0)])
def test_fencing_an_unknown_ledger_creates_it(peer: Peer, request_: Request) -> None:
    """B8, B11: the ledger is fenced, empty and has this key."""
    ledger = next(fresh)
    fence = Request(request_.op, 2, FENCE, ledger, request_.entry, key=KEY)
    assert peer.ask(fence).code == NO_ENTRY
    assert peer.ask(add(ledger, 0)).code == FENCED
    assert peer.ask(add(ledger, 0, key=OTHER_KEY, flags=RECOVERY)).code == UNAUTHORIZED
    assert peer.ask(read(ledger, 0)).code == NO_ENTRY


def test_adds_and_fences_are_ordered(bookie: LocalBookie) -> None:
    """B9, ST4: every later read sees what was acknowledged before the response to the fence, and nothing follows."""
    with bookie.peer() as writer, bookie.peer() as fencer, ThreadPoolExecutor(1) as threads:
        for _ in range(100):
            ledger, first = next(fresh), random.randrange(40)
            assert writer.ask(add(ledger, 0)).code == OK
            writer.send(*(add(ledger, entry) for entry in range(1, 80)))
            codes = threads.submit(lambda: {a.entry: a.code for a in (writer.answer() for _ in range(79))})
            for entry in range(first):
                fencer.ask(read(ledger, entry))
            last = fencer.ask(read(ledger, -1, flags=FENCE, key=KEY))
            assert last.code == OK
            seen = len(records(fencer.ask(batch(ledger, 0)).body))
            assert struct.unpack_from(">q", last.body, 8)[0] == seen - 1
            answered = {0: OK, **codes.result()}
            assert set(answered.values()) <= {OK, FENCED}
            assert [entry for entry, code in answered.items() if code == OK] == list(range(seen))
            assert len(records(fencer.ask(batch(ledger, 0)).body)) == seen


def test_read_only(bookie: LocalBookie, peer: Peer) -> None:
    """Adds are refused except those of high priority while there is room; fences and reads continue."""
    ledger = next(fresh)
    assert peer.ask(add(ledger, 0)).code == OK
    bookie.storage.set_read_only(True)
    try:
        assert peer.ask(add(ledger, 1)).code == READ_ONLY
        assert peer.ask(add(ledger, 1, flags=RECOVERY)).code == READ_ONLY
        assert peer.ask(add(ledger, 1, version=3)).code == BAD_VERSION
        assert peer.ask(add(ledger, 1, flags=HIGH)).code == OK
        assert peer.ask(read(ledger, -1, flags=FENCE, key=KEY)).code == OK
        assert peer.ask(add(ledger, 2, flags=RECOVERY)).code == READ_ONLY
        assert peer.ask(add(ledger, 2, flags=RECOVERY | HIGH)).code == OK
        bookie.storage.allow(high_priority=False)
        assert peer.ask(add(ledger, 3, flags=RECOVERY | HIGH)).code == READ_ONLY
        assert len(records(peer.ask(batch(ledger, 0)).body)) == 3
    finally:
        bookie.storage.set_read_only(False)
        bookie.storage.allow(high_priority=True)
    assert peer.ask(add(ledger, 3, flags=RECOVERY)).code == OK


def test_an_answer_of_many_pieces(bookie: LocalBookie, peer: Peer) -> None:
    """Entries added in descending order are in a run each: the batch has their bytes, or a growing prefix."""
    ledger = next(fresh)
    for entry in reversed(range(300)):
        assert peer.ask(add(ledger, entry, bytes([entry % 256]) * 20)).code == OK
    for _ in ("in the write cache", "on disk"):
        at = 0
        while at < 300:
            found = records(peer.ask(batch(ledger, at)).body)
            assert len(found) >= 100 or at + len(found) == 300
            assert found == [entry_of(ledger, at + k, bytes([(at + k) % 256]) * 20) for k in range(len(found))]
            at += len(found)
        assert bookie.storage.checkpoint()


def test_who_hangs_up_is_not_told_of(bookie: LocalBookie, peer: Peer) -> None:
    """Responses to a closed connection count neither as broken frames nor as a slow reader."""
    ledger = next(fresh)
    assert peer.ask(add(ledger, 0, b"x" * 10_000)).code == OK
    for _ in range(20):
        with bookie.peer() as gone:
            gone.send(*[read(ledger, 0)] * 500)
    assert peer.ask(read(ledger, 0)).code == OK
    while bookie.stat("connections") > 1:
        assert peer.ask(read(ledger, 0)).code == OK
    assert [bookie.stat(f"turned_away_{reason}") for reason in range(REASONS)] == [0] * REASONS


def test_entries_larger_than_a_segment_of_the_read_ring(bookie: LocalBookie, peer: Peer) -> None:
    """B21: they are read outside the ring, singly and in batches."""
    ledger = next(fresh)
    seeded_random = random.Random(5)
    payloads = [seeded_random.randbytes(size) for size in (300_000, 10, 131_000, 131_072, 65_000, 1 << 20)]
    for entry, payload in enumerate(payloads):
        assert peer.ask(add(ledger, entry, payload)).code == OK
    assert bookie.storage.checkpoint()
    for _ in range(2):
        for entry, payload in enumerate(payloads):
            assert peer.ask(read(ledger, entry)).body == entry_of(ledger, entry, payload)
        found = records(peer.ask(batch(ledger, 0, size=5 * MIB)).body)
        assert found == [entry_of(ledger, entry, payload) for entry, payload in enumerate(payloads)]


def test_a_full_queue_of_cold_reads(tmp_path: Path) -> None:
    """Reads beyond the queue are refused with ETOOMANYREQUESTS and the others answered; later all are served."""
    narrow: dict[str, Any] = {"read_queue_max": 2, "read_threads": 1, "readahead_entries": 1, "readahead_bytes": 1}
    with local_bookie(tmp_path, **narrow) as bookie, bookie.peer() as peer:
        peer.send(*(add(1, entry, bytes(900)) for entry in range(400)))
        assert {peer.answer().code for _ in range(400)} == {OK}
        assert bookie.storage.checkpoint()
        peer.sock.sendall(b"".join(encode_request(read(1, entry)) for entry in range(400)))
        answers = [peer.answer() for _ in range(400)]
        assert {answer.code for answer in answers} == {OK, TOO_MANY}
        assert all(a.body == (entry_of(1, a.entry, bytes(900)) if a.code == OK else b"") for a in answers)
        assert sorted(answer.entry for answer in answers) == list(range(400))
        assert peer.ask(read(1, 399)).code == OK
