"""Requests that Python answers, over sockets: bookie info, entry lists, and too many of either.

Modules: server.policy, store.entry_ranges.
"""

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bookie.auth.token import TokenClient, TokenServer
from bookie.availability import AvailableEntries
from bookie.pb import wire_pb2 as wire
from bookie.server.requests import bookie_info
from tests.hostile import v3, v3_frames
from tests.hostile.auth_frames import log_in
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import TIMEOUT_S, Peer, add
from tests.reference.entry_ranges import encode_entries

STORED = [0, 1, 2, 5, 6, 8]
pytestmark = pytest.mark.leaks("one bookie serves the whole file, and opens logs as it goes")


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """A bookie with some entries of ledger 4."""
    with local_bookie(tmp_path_factory.mktemp("bookie")) as bookie:
        with bookie.peer() as peer:
            for entry in STORED:
                assert peer.ask(add(4, entry, b"x")).code == 0
        yield bookie


@pytest.fixture
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """A connection."""
    with bookie.peer() as peer:
        yield peer


@dataclass
class Stalled:
    """Disks that do not report their size until `go`."""

    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    go: threading.Event = field(default_factory=threading.Event)

    def capacity(self, directories: Sequence[Path]) -> bookie_info.Capacity:
        """Return the capacity of any directories."""
        self.begun.release()
        assert self.go.wait(TIMEOUT_S)
        return bookie_info.Capacity(len(directories), 0)


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Stalled:
    """Stalls the disks of every bookie that is started after it."""
    stalled = Stalled()
    monkeypatch.setattr(bookie_info.BookieInfo.__init__, "__defaults__", (stalled.capacity, None))
    return stalled


def entries_of(ledger: int) -> wire.Request:
    """Return the request for an entry list."""
    part = wire.GetListOfEntriesOfLedgerRequest(ledgerId=ledger)
    return v3_frames.request(wire.GET_LIST_OF_ENTRIES_OF_LEDGER, getListOfEntriesOfLedgerRequest=part)


def test_the_size_of_the_disks(bookie: LocalBookie, peer: Peer) -> None:
    """The response has the values of the file system, exactly where they do not change."""
    answer = v3.ask(peer, v3_frames.request(wire.GET_BOOKIE_INFO)).getBookieInfoResponse
    status = os.statvfs(bookie.storage.storage.ledger_directories[0])
    assert answer.status == wire.EOK
    assert answer.totalDiskCapacity == status.f_blocks * status.f_frsize
    assert 0 < answer.freeDiskSpace <= answer.totalDiskCapacity


@pytest.mark.parametrize("flushed", [False, True])
def test_the_list_of_entries(bookie: LocalBookie, peer: Peer, *, flushed: bool) -> None:
    """The response has Java's bytes, from memory and from the index; an unknown ledger is reported as such."""
    if flushed:
        bookie.storage.checkpoint()
    answer = v3.ask(peer, entries_of(4)).getListOfEntriesOfLedgerResponse
    assert (answer.status, answer.ledgerId) == (wire.EOK, 4)
    assert answer.availabilityOfEntriesOfLedger == encode_entries(STORED)
    assert AvailableEntries.decode(answer.availabilityOfEntriesOfLedger).count() == len(STORED)
    assert v3.ask(peer, entries_of(5)).status == wire.ENOLEDGER


def test_too_many_are_refused(tmp_path: Path, disks: Stalled) -> None:
    """While the disks do not answer, a connection may have a sixteenth of the queue; further requests are refused,
    adds continue, and all are answered.
    """
    with (
        local_bookie(tmp_path, policy_threads=1, policy_queue_max=48, io_threads=1) as bookie,
        bookie.peer() as peer,
    ):
        v3.send(peer, *(v3_frames.request(wire.GET_BOOKIE_INFO, txn=txn) for txn in range(1, 6)))
        assert disks.begun.acquire(timeout=TIMEOUT_S)
        refused = [v3.answer(peer), v3.answer(peer)]
        assert {answer.status for answer in refused} == {wire.ETOOMANYREQUESTS}
        assert v3.ask(peer, v3_frames.request(wire.ADD_ENTRY)).status == wire.EOK
        disks.go.set()
        served = [v3.answer(peer) for _ in range(3)]
        assert {answer.status for answer in served} == {wire.EOK}
        transactions = [answer.header.txnId for answer in refused + served]
        assert sorted(transactions) == [1, 2, 3, 4, 5]


def test_the_backlog_of_requests_may_be_full(tmp_path: Path, disks: Stalled) -> None:
    """When all connections together fill the queue, requests are refused, but everyone can log in and be served."""
    token = b"a-token-of-enough-bytes"
    most = 4
    with contextlib.ExitStack() as stack:
        provider = TokenServer((token,))
        bookie = stack.enter_context(
            local_bookie(tmp_path, provider=provider, policy_threads=1, policy_queue_max=most, io_threads=1)
        )

        def logged_in() -> Peer:
            peer = stack.enter_context(bookie.peer())
            log_in(peer, 3, "token", TokenClient(token).session("127.0.0.1"))
            return peer

        peers = [logged_in() for _ in range(most)]
        for peer in peers:
            v3.send(peer, v3_frames.request(wire.GET_BOOKIE_INFO))
        assert disks.begun.acquire(timeout=TIMEOUT_S)
        for _ in range(2 * most):
            late = logged_in()
            assert v3.ask(late, v3_frames.request(wire.GET_BOOKIE_INFO)).status == wire.ETOOMANYREQUESTS
            assert v3.ask(late, v3_frames.request(wire.ADD_ENTRY)).status == wire.EOK
        disks.go.set()
        assert {v3.answer(peer).status for peer in peers} == {wire.EOK}


def test_answers_for_nobody(tmp_path: Path, disks: Stalled) -> None:
    """Connections that are gone before Python is done leave nothing behind."""
    with local_bookie(tmp_path, policy_threads=1) as bookie:
        gone = [bookie.peer() for _ in range(10)]
        for peer in gone:
            v3.send(peer, v3_frames.request(wire.GET_BOOKIE_INFO))
        assert disks.begun.acquire(timeout=TIMEOUT_S)
        for peer in gone:
            peer.abort()
        disks.go.set()
        with bookie.peer() as peer:
            assert v3.ask(peer, v3_frames.request(wire.GET_BOOKIE_INFO)).status == wire.EOK
            assert bookie.stat("policy_served") >= 1
