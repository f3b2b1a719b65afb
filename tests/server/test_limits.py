"""Limits of the data port for operators: the key, the effect beyond it, and the metric that shows it.

The exact rules of each limit are tested in tests/fast/test_limits.py, test_admission.py, test_io_loop.py,
tests/hostile/test_long_polls.py, test_policy_requests.py.
"""

import struct
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from bookie._fast.server.rejections import REASON_TEXTS
from bookie.pb import wire_pb2 as wire
from tests.fixtures.whole_bookie import Running, whole_bookie
from tests.hostile import v3
from tests.hostile.peer import KEY, Peer, add, batch, read
from tests.reference.proto_wire import GROUP, GROUP_END, tag

FENCE = 1
NO_ENTRY, TOO_MANY = 2, 106
MANY = 100
PAYLOAD = bytes(500)


def metric(running: Running, name: str) -> float:
    """Return the sum of a counter's or gauge's samples."""
    (family,) = (family for family in running.bookie.metrics() if family.name == name)
    return sum(value for value, _, _ in family.samples)


def ends(peer: Peer) -> None:
    """Check that the bookie closes the connection without a response."""
    assert peer.take_all() == b""


def a_frame_too_long(running: Running, stack: ExitStack) -> None:
    peer = stack.enter_context(Peer(running.address))
    assert peer.ask(add(1, 0, PAYLOAD)).code == 0
    peer.sock.sendall(struct.pack(">i", 4096))
    ends(peer)


def one_connection_too_many(running: Running, stack: ExitStack) -> None:
    for _ in range(2):
        assert stack.enter_context(Peer(running.address)).ask(add(1, 0)).code == 0
    ends(stack.enter_context(Peer(running.address)))


def nothing_said(running: Running, stack: ExitStack) -> None:
    ends(stack.enter_context(Peer(running.address)))


def a_burst_of_adds(running: Running, stack: ExitStack) -> None:
    """Send adds in one segment: they arrive together, and their sync is not over before the last one."""
    peer = stack.enter_context(Peer(running.address))
    peer.send(*(add(1, entry) for entry in range(MANY)))
    assert {peer.answer().code for _ in range(MANY)} == {0, TOO_MANY}


def a_burst_of_fences(running: Running, stack: ExitStack) -> None:
    """Send fences in one segment, each of another ledger."""
    peer = stack.enter_context(Peer(running.address))
    peer.send(*(read(ledger, 0, flags=FENCE, key=KEY) for ledger in range(MANY)))
    assert {peer.answer().code for _ in range(MANY)} == {NO_ENTRY, TOO_MANY}


def a_burst_that_waits(running: Running, stack: ExitStack) -> None:
    """Check that nothing is refused: excess requests are read later."""
    peer = stack.enter_context(Peer(running.address))
    peer.send(*(add(1, entry) for entry in range(MANY)))
    assert {peer.answer().code for _ in range(MANY)} == {0}


def answers_that_nobody_takes(running: Running, stack: ExitStack) -> None:
    """Request far more than the socket holds; meanwhile others are served, and everything arrives once it is read."""
    peer = stack.enter_context(Peer(running.address, receive_bytes=4096))
    other = stack.enter_context(Peer(running.address))
    peer.send(*(add(1, entry, PAYLOAD) for entry in range(MANY)))
    assert {peer.answer().code for _ in range(MANY)} == {0}
    peer.send(*(batch(1, 0, count=MANY) for _ in range(4 * MANY)))
    served = (other.ask(read(1, 0)).code == 0 for _ in range(100 * MANY))
    assert any(metric(running, "pybookie_connections_choked_total") for _ in served)
    assert {peer.answer().code for _ in range(4 * MANY)} == {0}


def one_poll_too_many(running: Running, stack: ExitStack) -> None:
    peer = stack.enter_context(Peer(running.address))
    assert v3.ask(peer, v3.add3(1, 0)).status == wire.EOK
    wait = v3.read3(1, -1, previousLAC=5, timeOut=3_600_000, flag=v3.PIGGYBACK)
    v3.send(peer, wait)
    assert v3.ask(peer, wait).status == wire.ETOOMANYREQUESTS


def groups_too_deep(running: Running, stack: ExitStack) -> None:
    """Send an unknown field with the deepest nesting allowed, and then deeper: that is neither V3 nor V2."""
    peer = stack.enter_context(Peer(running.address))
    asked = v3.read3(1, 0).SerializeToString()
    for depth in (3, 4):
        body = asked + tag(9, GROUP) * depth + tag(9, GROUP_END) * depth
        peer.sock.sendall(struct.pack(">i", len(body)) + body)
        if depth == 3:
            assert v3.answer(peer).status == wire.ENOLEDGER
    ends(peer)


LIMITS: dict[str, tuple[dict[str, str], Callable[[Running, ExitStack], None], str]] = {
    "bytes of a frame": (
        {"nettyMaxFrameSizeBytes": "4096", "maxBatchReadSize": "4096"},
        a_frame_too_long,
        "pybookie_broken_frames_total",
    ),
    "groups within each other": (
        {"serverMaxProtobufNesting": "3"}, groups_too_deep, "pybookie_unreadable_v3_total",
    ),
    "connections": (
        {"serverMaxConnections": "2"}, one_connection_too_many, "pybookie_connections_refused_total",
    ),
    "connections of an address": (
        {"serverMaxConnectionsPerAddress": "2"},
        one_connection_too_many,
        "pybookie_connections_refused_by_address_total",
    ),
    "time without authentication": (
        {"serverAuthenticationTimeoutMs": "50", "bookieAuthProviderFactoryClass": "token"},
        nothing_said,
        "pybookie_connections_closed_unauthenticated_total",
    ),
    "idle time": (
        {"serverIdleTimeoutMs": "50"}, nothing_said, "pybookie_connections_closed_idle_total",
    ),
    "requests under way of a connection": (
        {"maxPendingRequestsPerConnection": "2"}, a_burst_of_adds, "pybookie_requests_refused_by_connection_total",
    ),
    "adds under way of a loop": (
        {"maxPendingAddRequestsPerThread": "2"}, a_burst_of_adds, "bookkeeper_server_ADD_ENTRY_REJECTED",
    ),
    "fences under way of a connection": (
        {"maxPendingRequestsPerConnection": "2", "serverMaxUrgentRequests": "1"},
        a_burst_of_fences,
        "pybookie_urgent_requests_refused_total",
    ),
    "fences under way of a loop": (
        {"maxPendingAddRequestsPerThread": "2", "serverMaxUrgentRequests": "1"},
        a_burst_of_fences,
        "pybookie_urgent_requests_refused_total",
    ),
    "adds under way in all": (
        {"maxAddsInProgressLimit": "2"}, a_burst_that_waits, "pybookie_connections_held_back_total",
    ),
    "bytes of a connection's answers": (
        {"serverWriteBufferHighWaterMark": "65536", "serverWriteBufferLowWaterMark": "16384"},
        answers_that_nobody_takes,
        "pybookie_connections_choked_total",
    ),
    "long polls of a connection": (
        {"serverMaxLongPollsPerConnection": "1"}, one_poll_too_many, "pybookie_long_polls_refused_total",
    ),
    "long polls": (
        {"serverMaxLongPolls": "1"}, one_poll_too_many, "pybookie_long_polls_refused_total",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("keys", "exceed", "counter"), LIMITS.values(), ids=LIMITS.keys())
def test_a_limit_has_a_key_and_a_metric(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, str],
    exceed: Callable[[Running, ExitStack], None],
    counter: str,
) -> None:
    """The metric is zero before, and positive after the limit was exceeded."""
    monkeypatch.setenv("BOOKIE_AUTH_TOKEN", "nobody knows this one")
    with whole_bookie(tmp_path, serverNumIOThreads="1", **keys) as running, ExitStack() as stack:
        assert metric(running, counter) == 0
        exceed(running, stack)
        assert metric(running, counter) >= 1


def test_who_is_turned_away_is_counted_by_reason(tmp_path: Path) -> None:
    """Each reason in the log is a sample, and only the one that happened counts."""
    with (
        whole_bookie(tmp_path, nettyMaxFrameSizeBytes="4096", maxBatchReadSize="4096") as running,
        ExitStack() as stack,
    ):
        a_frame_too_long(running, stack)
        (family,) = (one for one in running.bookie.metrics() if one.name == "pybookie_peers_turned_away_total")
    counts = {dict(labels)["reason"]: value for value, labels, _ in family.samples}
    assert len(counts) == len(REASON_TEXTS)
    assert {reason for reason, times in counts.items() if times} == {"bad_length"}
