"""The requests of a connection without a response: which ones a new request must wait for, in both protocols."""

import numpy as np
import pytest

from bookie._fast.client.add_window import AddWindow
from bookie._fast.client.adds_in_flight import AddsInFlight
from bookie.client.channel.streams import Streams
from bookie.client.wire.unanswered import ADD, READ, Unanswered
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import IllegalOperation

V2, V3 = WireV2(1 << 20), WireV3(1 << 20)
NEVER = 10**15


def ids(*entries: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Entry ids as an array."""
    return np.array(entries, dtype=np.int64)


def test_v2_keys_are_in_use_until_the_response() -> None:
    """In V2 the key of a request stays in use when its caller has given up, and is free after the response."""
    unanswered: Unanswered[str] = Unanswered(V2, adds=Streams(by_transaction=False))
    key = (READ, 7, 3)
    assert not unanswered.must_wait(key)
    unanswered.sent(key, "read")
    assert unanswered.late(lambda kept: kept == "read") == ["read"]
    assert unanswered.must_wait(key)
    assert not unanswered.must_wait((ADD, 7, 3))
    assert unanswered.answered((READ, 0, 7, 3, 0, 0, 0)) == "read"
    assert not unanswered.must_wait(key)
    assert unanswered.answered((READ, 0, 7, 3, 0, 0, 0)) is None


def test_v3_requests_never_wait() -> None:
    """In V3 a late request is forgotten, and a group waits for nothing."""
    adds = AddsInFlight(by_transaction=True)
    unanswered: Unanswered[str] = Unanswered(V3, adds=adds)
    unanswered.sent((5, ADD), "add")
    adds.sent(1, 7, ids(0, 1), 6, NEVER)
    assert not unanswered.group_must_wait(ADD, 7, ids(0, 1))
    assert not unanswered.must_wait((1, 7))
    assert unanswered.late(lambda _: True) == ["add"]
    assert len(unanswered) == 0


def test_groups_and_single_requests_wait_for_each_other() -> None:
    """A group waits for single requests of its operation and entries, and a single request for groups."""
    adds, reads = AddsInFlight(by_transaction=False), AddsInFlight(by_transaction=False)
    unanswered: Unanswered[str] = Unanswered(V2, adds=adds, reads=reads)
    unanswered.sent((ADD, 7, 3), "add")
    assert unanswered.group_must_wait(ADD, 7, ids(1, 3))
    assert not unanswered.group_must_wait(ADD, 7, ids(1, 4))
    assert not unanswered.group_must_wait(ADD, 8, ids(3))
    assert not unanswered.group_must_wait(READ, 7, ids(3))
    adds.sent(1, 7, ids(5, 6), 0, NEVER)
    assert unanswered.must_wait((ADD, 7, 6))
    assert not unanswered.must_wait((READ, 7, 6))
    adds.leave(1)
    assert unanswered.must_wait((ADD, 7, 6))
    assert unanswered.group_must_wait(ADD, 7, ids(6, 9))
    assert unanswered.stream_must_wait(7, 3)
    assert not unanswered.stream_must_wait(7, 4)
    assert not unanswered.stream_must_wait(8, 0)
    assert unanswered.lost() == ["add"]
    assert not unanswered.group_must_wait(ADD, 7, ids(3))


def test_streams_keep_their_keys_after_the_end() -> None:
    """In V2 the unanswered adds of a stream that has ended stay in use until their responses."""
    streams = Streams(by_transaction=False)
    unanswered: Unanswered[str] = Unanswered(V2, adds=streams)
    window = AddWindow(7, 0, 10)
    streams.open(window)
    with pytest.raises(IllegalOperation, match="ledger 7, entry 0: only its add stream may write it"):
        unanswered.must_wait((ADD, 7, 0))
    with pytest.raises(IllegalOperation, match="ledger 7 has an add stream on this channel; finish it first"):
        streams.knows_from(AddWindow(7, 50, 10))
    assert not unanswered.must_wait((READ, 7, 0))
    window.sent(3)
    streams.drop(window)
    streams.drop(window)
    assert unanswered.must_wait((ADD, 7, 2))
    assert streams.knows_from(AddWindow(7, 2, 10))
    assert not streams.knows_from(AddWindow(7, 3, 10))
    assert unanswered.group_must_wait(ADD, 7, ids(2, 3, 4))
    assert not unanswered.group_must_wait(ADD, 7, ids(3, 4))
    assert not unanswered.must_wait((ADD, 8, 2))
