"""Reads over direct connections, on real bookies: the same results as by the event loop, and the way back to it."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from bookie.client import BookKeeper
from bookie.client.blocking.handles import ReadHandle
from bookie.client.direct import pool as direct_pool
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    IncorrectParameter,
    LedgerClosed,
    NoSuchEntry,
    NoSuchLedger,
    ReadError,
)
from tests.client.facade.direct_adds import WAIT_S, wait_until
from tests.fixtures.bookies import BookieProcess, metadata_of
from tests.fixtures.forked import closed_in_a_child

PAYLOADS = [b"entry %d" % k * (k % 7) for k in range(300)]
LARGEST = (5 << 20) - 1000


@pytest.fixture(params=[True, False], ids=["V2", "V3"])
def v2(request: pytest.FixtureRequest) -> bool:
    """Whether the client speaks V2."""
    return bool(request.param)


def written(uri: str, payloads: list[bytes] = PAYLOADS, copies: int = 1, **settings: Any) -> int:
    """Write a ledger, and return its id."""
    with BookKeeper(uri, **settings) as bk:
        with bk.create_ledger(ensemble_size=copies, write_quorum_size=copies, ack_quorum_size=copies) as ledger:
            for payload in payloads:
                ledger.append_async(payload)
        return ledger.id


def warm(reader: ReadHandle) -> ReadHandle:
    """Read once by the event loop, which learns the bookie's address and what it supports.

    The bookie may be silent for WAIT_S seconds on connections that are established from then on, since a busy machine
    may be slow.
    """
    reader.read(0)
    for peer in reader._direct._bookies._peers.values():
        peer.direct._connector._patience_s = WAIT_S
    reader.batch_read(0, 1)
    reader._direct._routes.clear()  # known limits are kept for a moment
    return reader


@contextmanager
def patient(reader: ReadHandle) -> Iterator[None]:
    """Let reads wait for direct connections and answers for WAIT_S seconds, not only as long as is good for callers."""
    pools = [peer.direct for peer in reader._direct._bookies._peers.values()]
    wait_until(lambda: not any(pool._connecting for pool in pools))
    with patch.object(reader._direct, "_step_s", WAIT_S), patch.object(direct_pool, "WAIT_S", WAIT_S):
        yield


@contextmanager
def only_direct(reader: ReadHandle) -> Iterator[None]:
    """Fail all reads that the event loop would have to do."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the event loop was asked")

    handle: Any = reader._handle
    before = {name: getattr(handle, name) for name in ("read", "batch_read", "batches_begun")}
    for name in before:
        setattr(handle, name, refuse)
    with patient(reader):
        yield
    for name in before:
        delattr(handle, name)


def contents(batch: Any) -> list[tuple[int, bytes]]:
    """Return the ids and payloads of a batch."""
    return [(entry.id, bytes(entry.data)) for entry in batch]


def test_the_same_results(uri: str, v2: bool) -> None:
    """Both paths return the same batches, and the direct one does not use the event loop."""
    ledger = written(uri)
    with (
        BookKeeper(uri, useV2WireProtocol=v2, maxDirectConnectionsPerBookie=0) as other,
        BookKeeper(uri, useV2WireProtocol=v2) as bk,
        other.open_ledger(ledger) as by_loop,
        bk.open_ledger(ledger) as reader,
    ):
        warm(reader)
        for entry in (0, 1, 7, 299):
            expected = by_loop.read(entry)
            with only_direct(reader):
                got = reader.read(entry)
            assert (got.first, got.last, got.lac, contents(got)) == (
                expected.first,
                expected.last,
                expected.lac,
                contents(expected),
            )
            assert bytes(got.stored(0)) == bytes(expected.stored(0))
        for limits in ((0, 0, 0), (3, 50, 0), (3, 0, 2000), (290, 100, 0), (299, 1, 1), (0, 1000, 1)):
            expected = by_loop.batch_read(*limits)
            with only_direct(reader):
                got = reader.batch_read(*limits)
            assert (got.first, got.last, got.lac, contents(got)) == (
                expected.first,
                expected.last,
                expected.lac,
                contents(expected),
            )


def test_what_callers_do_with_spans_stays_theirs(uri: str) -> None:
    """Entries of one size share nothing that a caller can change."""
    ledger = written(uri, [b"first", b"other"])
    with BookKeeper(uri) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            starts, ends = reader.read(0).payload_spans()
            starts[:], ends[:] = 0, 0
            assert contents(reader.read(1)) == [(1, b"other")]


def test_the_same_errors(uri: str, v2: bool) -> None:
    """Wrong arguments, entries above the LAC and closed handles are the event loop's errors, as ever."""
    ledger = written(uri)
    with BookKeeper(uri, useV2WireProtocol=v2) as bk:
        with bk.open_ledger(ledger) as reader:
            warm(reader)
            with pytest.raises(IncorrectParameter):
                reader.read(-1)
            with pytest.raises(ReadError, match="above the LAC"):
                reader.read(300)
            with pytest.raises(ReadError, match="above the LAC"):
                reader.batch_read(300)
            with pytest.raises(IncorrectParameter, match="max_count"):
                reader.batch_read(0, -1)
        with pytest.raises(LedgerClosed):
            reader.read(0)
        with pytest.raises(LedgerClosed):
            reader.batch_read(0)
    with pytest.raises(ClientClosed):
        reader.read(0)


def test_a_wrong_digest_is_found(uri: str) -> None:
    """Entries that are not on the bookie any more are reported as by the event loop."""
    ledger = written(uri)
    with BookKeeper(uri, useV2WireProtocol=True) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        reader._direct._ledger = ledger + 1_000_000  # the direct read asks for a ledger that does not exist
        assert contents(reader.read(5)) == [(5, PAYLOADS[5])]
        assert contents(reader.batch_read(5, 2)) == [(5, PAYLOADS[5]), (6, PAYLOADS[6])]


def test_the_largest_frame(uri: str, v2: bool) -> None:
    """Entries as large as a frame permits are read directly."""
    payloads = [os.urandom(LARGEST), b"small", os.urandom(LARGEST)]
    ledger = written(uri, payloads)
    with BookKeeper(uri, useV2WireProtocol=v2) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            for entry, payload in enumerate(payloads):
                assert bytes(reader.read(entry)[0].data) == payload
                assert bytes(reader.batch_read(entry)[0].data) == payload


def test_many_threads(uri: str, v2: bool) -> None:
    """More threads than connections get the right entries, some by the event loop; connections stay bounded."""
    ledger = written(uri)
    with BookKeeper(uri, useV2WireProtocol=v2, maxDirectConnectionsPerBookie=2) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)

        def work(first: int) -> bool:
            return all(
                contents(reader.read(k)) == [(k, PAYLOADS[k])]
                and contents(reader.batch_read(k, 3)) == list(enumerate(PAYLOADS))[k : k + 3]
                for k in range(first, 300, 8)
            )

        with patient(reader), ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(8)))
        pools = [peer.direct for peer in bk._aio.bookie_client._peers.values()]
        assert max(len(pool._links) for pool in pools) in (1, 2)
        assert [pool.busy for pool in pools] == [0] * len(pools)


@pytest.mark.thorough
def test_a_killed_bookie(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """The other replica is read when a bookie dies, and the bookie again when it is back."""
    cluster = bookies(3)
    uri = metadata_of(cluster)
    ledger = written(uri, copies=2)
    with BookKeeper(uri, useV2WireProtocol=v2) as bk, bk.open_ledger(ledger) as reader:
        ensemble = reader.metadata.segments[0].bookies
        for entry in range(10):
            reader.read(entry)
        one = next(bookie for bookie in cluster[1:] if bookie.id in ensemble)
        one.kill()
        for entry in range(20):
            assert contents(reader.read(entry)) == [(entry, PAYLOADS[entry])]
            assert contents(reader.batch_read(entry, 2)) == [(k, PAYLOADS[k]) for k in (entry, entry + 1)]
        one.start()
        for entry in range(20):
            assert contents(reader.read(entry)) == [(entry, PAYLOADS[entry])]


@pytest.mark.thorough
def test_a_hung_bookie(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """A bookie that does not answer is left to the event loop, which asks the other replica; then it is avoided."""
    cluster = bookies(3)
    uri = metadata_of(cluster)
    ledger = written(uri, copies=2)
    settings = {"useV2WireProtocol": v2, "firstSpeculativeReadTimeout": 50}
    with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
        ensemble = reader.metadata.segments[0].bookies
        for entry in range(10):
            reader.read(entry)
            reader.batch_read(entry, 2)
        one = next(bookie for bookie in cluster[1:] if bookie.id in ensemble)
        one.freeze()
        try:
            for entry in range(10):
                assert contents(reader.read(entry)) == [(entry, PAYLOADS[entry])]
                assert contents(reader.batch_read(entry, 2)) == [(k, PAYLOADS[k]) for k in (entry, entry + 1)]
        finally:
            one.thaw()
        for entry in range(10):
            assert contents(reader.read(entry)) == [(entry, PAYLOADS[entry])]


@pytest.mark.thorough
def test_closing_while_a_read_waits(bookies: Callable[..., list[BookieProcess]]) -> None:
    """A thread that waits for a hung bookie gets ClientClosed when the client is closed."""
    (one,) = bookies(1)
    uri = metadata_of([one])
    ledger = written(uri)
    bk = BookKeeper(uri, useV2WireProtocol=True)
    bk.start()
    reader = warm(bk.open_ledger(ledger))
    one.freeze()
    errors: list[BaseException] = []

    def read() -> None:
        try:
            reader.read(1)
        except BookKeeperError as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    pool = next(iter(bk._aio.bookie_client._peers.values())).direct
    while not pool.busy and not bk._aio.bookie_client.pending(pool.bookie):
        thread.join(0.001)
    bk.close()
    thread.join(WAIT_S)
    one.thaw()
    assert [type(error) for error in errors] == [ClientClosed]


def test_a_forked_child(uri: str) -> None:
    """A child gets ClientClosed and leaves the parent's connections alone, even when it exits."""
    ledger = written(uri)
    with BookKeeper(uri, useV2WireProtocol=True) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        reader.read(1)
        assert closed_in_a_child(lambda: reader.read(2))
        with only_direct(reader):
            assert contents(reader.read(3)) == [(3, PAYLOADS[3])]


def test_a_lost_ledger(uri: str, v2: bool) -> None:
    """An entry that no bookie has is the same error on both paths."""
    ledger = written(uri)
    with BookKeeper(uri, useV2WireProtocol=v2) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        view: Any = reader._handle.reading.view
        view.ledger = reader._direct._ledger = ledger + 1_000_000
        with pytest.raises((NoSuchLedger, NoSuchEntry)):
            reader.read(1)
        with pytest.raises((NoSuchLedger, NoSuchEntry)):
            reader.batch_read(1)
