"""The requests of a connection without a response: which ones a new request must wait for, in both protocols."""

import numpy as np
import pytest

from bookie._fast.client.adds_in_flight import AddsInFlight
from bookie.client.channel.streams import Streams
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.client.wire.receive import ReceiveBuffer
from bookie.client.wire.request import Request
from bookie.client.wire.unanswered import ADD, READ, Unanswered
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import BookKeeperError, IllegalOperation, NoSuchEntry, ProtocolVersionMismatch

V2, V3 = WireV2(1 << 20), WireV3(1 << 20)
NEVER = 10**15


def ids(*entries: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Entry ids as an array."""
    return np.array(entries, dtype=np.int64)


class Waiting:
    """A request that waits for its response, and what it got."""

    done = False

    def __init__(self, request: Request, deadline: float = 10.0) -> None:
        self.request = request
        self.deadline = deadline
        self.got: object = None

    def succeed(self, value: object) -> None:
        """Keep the value."""
        self.done, self.got = True, value

    def fail(self, error: BookKeeperError) -> None:
        """Keep the error."""
        self.done, self.got = True, error


def read(entry: int) -> Waiting:
    """A V2 read of ledger 7."""
    return Waiting(V2.read(7, entry, 0, None, 1.0))


def add(entry: int) -> Waiting:
    """A V2 add to ledger 7."""
    return Waiting(V2.add(7, entry, bytes(40), bytes(20), 0, 1.0))


def complete(unanswered: Unanswered[Waiting], *row: int) -> BookKeeperError | None:
    """Pass a response that consists of 40 zero bytes."""
    body = memoryview(bytes(40))
    return unanswered.complete((*row, 0, 0, 40), body, ReceiveBuffer(V2.frame_bytes_max, V2.cut))  # type: ignore[arg-type]


def test_v2_keys_are_in_use_until_the_response() -> None:
    """In V2 the key of a request stays in use when its caller has given up, and is free after the response."""
    unanswered: Unanswered[Waiting] = Unanswered(V2, "bookie:1", adds=AddsInFlight(by_transaction=False))
    first = read(3)
    key = (READ, 7, 3)
    assert first.request.key == key
    assert not unanswered.must_wait(key)
    unanswered.sent(first)
    assert unanswered.late(9.0) == []
    assert unanswered.late(10.0) == [first]
    assert unanswered.late(11.0) == []
    assert unanswered.must_wait(key)
    assert not unanswered.must_wait((ADD, 7, 3))
    assert complete(unanswered, READ, 0, 7, 3) is None
    assert first.done
    assert not unanswered.must_wait(key)
    assert complete(unanswered, READ, 0, 7, 3) is None


def test_v3_requests_never_wait() -> None:
    """In V3 a late request is forgotten, and a group waits for nothing."""
    adds = AddsInFlight(by_transaction=True)
    unanswered: Unanswered[Waiting] = Unanswered(V3, "bookie:1", adds=adds)
    single = Waiting(V3.read(7, 0, 0, None, 1.0))
    unanswered.sent(single)
    adds.sent(1, 7, ids(0, 1), 6, NEVER)
    assert not unanswered.group_must_wait(ADD, 7, ids(0, 1))
    assert not unanswered.stream_must_wait(7, 0)
    assert not unanswered.must_wait((9, 1))
    assert unanswered.late(10.0) == [single]
    assert len(unanswered) == 0


def test_groups_and_single_requests_wait_for_each_other() -> None:
    """A group waits for single requests of its operation and entries, and a single request for groups."""
    adds, reads = AddsInFlight(by_transaction=False), AddsInFlight(by_transaction=False)
    unanswered: Unanswered[Waiting] = Unanswered(V2, "bookie:1", adds=adds, reads=reads)
    single = add(3)
    unanswered.sent(single)
    assert unanswered.group_must_wait(ADD, 7, ids(1, 3))
    assert not unanswered.group_must_wait(ADD, 7, ids(1, 4))
    assert not unanswered.group_must_wait(ADD, 8, ids(3))
    assert not unanswered.group_must_wait(READ, 7, ids(3))
    assert unanswered.stream_must_wait(7, 3)
    assert not unanswered.stream_must_wait(7, 4)
    assert not unanswered.stream_must_wait(8, 0)
    adds.sent(1, 7, ids(5, 6), 0, NEVER)
    assert unanswered.must_wait((ADD, 7, 6))
    assert not unanswered.must_wait((READ, 7, 6))
    adds.leave(1)
    assert unanswered.must_wait((ADD, 7, 6))
    assert unanswered.group_must_wait(ADD, 7, ids(6, 9))
    assert unanswered.stream_must_wait(7, 6)
    assert not unanswered.stream_must_wait(7, 7)
    assert unanswered.lost() == [single]
    assert not unanswered.group_must_wait(ADD, 7, ids(3))


def test_responses_complete_their_requests() -> None:
    """A request gets the value of its response, the error with which it was refused, or what was wrong with it; a
    response that belongs to none, or to one that nobody waits for, is ignored.
    """
    unanswered: Unanswered[Waiting] = Unanswered(V2, "bookie:1", adds=AddsInFlight(by_transaction=False))
    good, refused, unknown, long, given_up = (read(entry) for entry in range(5))
    for waiting in (good, refused, unknown, long, given_up):
        unanswered.sent(waiting)
    assert complete(unanswered, READ, 0, 7, 0) is None
    assert good.got == ReadAnswer(0, bytes(40), None, None)
    assert isinstance(complete(unanswered, READ, 2, 7, 1), NoSuchEntry)
    assert "bookie:1: read of ledger 7, entry 1: answered with code 2" in str(refused.got)
    with pytest.raises(ProtocolVersionMismatch):
        complete(unanswered, READ, 999, 7, 2)
    assert str(unknown.got).startswith("bookie:1: read of ledger 7, entry 2: ")
    assert unanswered.too_long((READ, 0, 7, 3, 0, 0, 0), 1 << 21)
    assert not unanswered.too_long((READ, 0, 7, 3, 0, 0, 0), 1 << 21)
    assert "has 2097152 bytes, more than frame_bytes_max=1048576; raise that limit" in str(long.got)
    given_up.done = True
    assert complete(unanswered, READ, 999, 7, 4) is None
    assert given_up.got is None


def test_streams_keep_their_keys_after_the_end() -> None:
    """In V2 the unanswered adds of a stream that has ended stay in use until their responses."""
    streams = Streams(by_transaction=False)
    unanswered: Unanswered[Waiting] = Unanswered(V2, "bookie:1", adds=streams.adds)
    window = streams.open(7, 0, 10)
    with pytest.raises(IllegalOperation, match="ledger 7, entry 0: only its add stream may write it"):
        streams.check_add((ADD, 7, 0))
    with pytest.raises(IllegalOperation, match="ledger 7 has an add stream on this channel; finish it first"):
        streams.check_stream(7)
    streams.check_add((READ, 7, 0))
    streams.adds.send(window, 3, 0)
    streams.drop(window)
    streams.drop(window)
    streams.check_add((ADD, 7, 2))
    streams.check_stream(7)
    assert unanswered.must_wait((ADD, 7, 2))
    assert unanswered.stream_must_wait(7, 2)
    assert not unanswered.stream_must_wait(7, 3)
    assert unanswered.group_must_wait(ADD, 7, ids(2, 3, 4))
    assert not unanswered.group_must_wait(ADD, 7, ids(3, 4))
    assert not unanswered.must_wait((ADD, 8, 2))
