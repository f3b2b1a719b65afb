"""Ranges that threads read over direct connections: all entries in order, whatever happens on the way."""

import itertools
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bookie.client import BookKeeper
from bookie.client.blocking.handles import ReadHandle
from bookie.client.entries.verified import PayloadBlock
from bookie.errors import ClientClosed, RequestTimeout
from tests.client.facade.test_direct import PAYLOADS, contents, only_direct, patient, v2, warm, written
from tests.client.facade.test_direct_peers import misled, pool_of
from tests.fixtures.bookies import BookieProcess, metadata_of

__all__ = ["v2"]

MANY = [b"%d" % k * (k % 50) for k in range(20_000)]
ALL = list(enumerate(MANY))


@pytest.fixture(scope="module")
def ledger(uri: str) -> int:
    """A ledger with many entries."""
    return written(uri, MANY)


def everything(reader: ReadHandle, *args: int, **limits: int) -> list[tuple[int, bytes]]:
    """Return the contents of all batches of a range."""
    with reader.batches(*args, **limits) as batches:
        return [entry for batch in batches for entry in contents(batch)]


def test_ranges(uri: str, ledger: int, v2: bool) -> None:
    """Batches of any size, and ranges in one piece, are read without the event loop."""
    with BookKeeper(uri, useV2WireProtocol=v2) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            assert everything(reader) == ALL
            assert everything(reader, 7, 19_000, max_count=100) == ALL[7:19_001]
            assert everything(reader, 19_000, max_size=1) == ALL[19_000:]
            assert contents(reader.read(3, 12_345)) == ALL[3:12_346]
            with reader.batches(max_count=300) as batches:
                sizes = [len(batch) for batch in itertools.islice(batches, 100)]
            assert max(sizes) == 300
        assert pool_of(bk).busy == 0
        assert everything(reader, 20_000) == []


def test_batches_that_are_received_in_a_block(uri: str, ledger: int, v2: bool) -> None:
    """Every payload of a real bookie's responses is in a block, also where a block is full in the middle of a range."""
    block = PayloadBlock(400_000, 10_000)
    found: list[bytes] = []

    def take() -> None:
        edges, values = block.take()[4:]
        assert edges is not None
        assert values is not None
        found.extend(bytes(values[a:b]) for a, b in itertools.pairwise(np.frombuffer(edges, dtype=np.int32)))

    with BookKeeper(uri, useV2WireProtocol=v2) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader), reader.batches() as batches:
            batches.receive_into(block)
            for batch in batches:
                if not batch.add_to(block):
                    take()
                    assert batch.add_to(block)
        take()
    assert found == MANY


def test_a_range_that_nobody_closes(uri: str, ledger: int) -> None:
    """At the end of a range, its connection serves others, also if the caller only iterates."""
    with BookKeeper(uri) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with patient(reader):
            batches = reader.batches()
            assert [entry for batch in batches for entry in contents(batch)] == ALL
        assert pool_of(bk).busy == 0
        del batches
        assert len(pool_of(bk)._links) == 1


def test_a_range_larger_than_a_frame(uri: str, v2: bool) -> None:
    """A range of several frames arrives as one batch."""
    payloads = [bytes([k]) * 3_000_000 for k in range(5)]
    with (
        BookKeeper(uri, useV2WireProtocol=v2) as bk,
        bk.open_ledger(written(uri, payloads)) as reader,
    ):
        warm(reader)
        with only_direct(reader):
            assert contents(reader.read(0, 4)) == list(enumerate(payloads))
            assert everything(reader, 1, 4) == list(enumerate(payloads))[1:]


def test_little_memory(uri: str, ledger: int) -> None:
    """What is requested and has arrived stays below the limit, even if a batch may have more."""
    with BookKeeper(uri, maxReadBytesInFlight=1 << 16) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with only_direct(reader):
            assert everything(reader) == ALL


def test_an_iteration_left_early(uri: str, ledger: int) -> None:
    """Responses that are due are not taken for those of later requests."""
    settings = {"useV2WireProtocol": True, "maxDirectConnectionsPerBookie": 1}
    with BookKeeper(uri, **settings) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        with reader.batches(max_count=10) as batches:
            assert contents(next(batches)) == ALL[:10]
        assert next(batches, None) is None
        dropped = reader.batches(100)
        assert contents(next(dropped))[0] == ALL[100]
        del dropped
        with only_direct(reader):
            assert contents(reader.read(5)) == [ALL[5]]


def test_the_handle_is_closed_meanwhile(uri: str, ledger: int) -> None:
    """An iteration that has begun goes on after its handle was closed, and ends with the client."""
    with BookKeeper(uri) as bk:
        with bk.open_ledger(ledger) as reader:
            warm(reader)
            batches = reader.batches(max_count=100)
            got = contents(next(batches))
        while len(got) < 15_000:
            got += contents(next(batches))
        assert got == ALL[: len(got)]
    with pytest.raises(ClientClosed):
        list(batches)


def test_short_waits(uri: str, ledger: int) -> None:
    """Calls that hardly wait lose nothing and repeat nothing."""
    with BookKeeper(uri) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        got: list[tuple[int, bytes]] = []
        with reader.batches(max_count=700) as batches:
            for timeout in itertools.cycle((0.0, None, 0.001, 30.0, 0.0001)):
                try:
                    batch = batches.next(timeout)
                except RequestTimeout:
                    continue
                if batch is None:
                    break
                got += contents(batch)
        assert got == ALL


@pytest.mark.parametrize("received", [False, True])
def test_interrupts(uri: str, ledger: int, monkeypatch: pytest.MonkeyPatch, *, received: bool) -> None:
    """Ctrl-C before or after a response was received leaves its entries to the next call."""
    with BookKeeper(uri) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        take = reader._direct.take
        calls = itertools.count(1)

        def interrupted(*args: Any) -> Any:
            got = take(*args) if received else None
            if next(calls) % 3 == 0:
                raise KeyboardInterrupt
            return got or take(*args)

        monkeypatch.setattr(reader._direct, "take", interrupted)
        got: list[tuple[int, bytes]] = []
        with patient(reader), reader.batches(max_count=500) as batches:
            while True:
                try:
                    batch = batches.next()
                except KeyboardInterrupt:
                    continue
                if batch is None:
                    break
                got += contents(batch)
        assert got == ALL
        assert next(calls) > 3


def silent(_: socket.socket, stopped: threading.Event) -> None:
    """Answer nothing."""
    stopped.wait()


def test_a_bookie_that_says_nothing(uri: str) -> None:
    """The event loop reads what a direct connection does not bring."""
    with misled(uri, silent) as (reader, impostor, pool):
        pool._connector._patience_s = 0.01
        assert everything(reader, max_count=50) == list(enumerate(PAYLOADS))
        assert impostor.asked == 1


def test_connections_that_end(uri: str, ledger: int) -> None:
    """Connections that are lost in the middle of a range cost no entry."""
    with BookKeeper(uri) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        got: list[tuple[int, bytes]] = []
        with reader.batches(max_count=500) as batches:
            for batch in batches:
                got += contents(batch)
                for link in list(pool_of(bk)._links):
                    link.shutdown()
        assert got == ALL


@pytest.mark.thorough
def test_bookies_that_die(bookies: Callable[..., list[BookieProcess]], v2: bool) -> None:
    """A range is complete although its bookies are killed and started one after the other."""
    cluster = bookies(3)
    uri = metadata_of(cluster)
    ledger = written(uri, MANY, copies=2)
    with BookKeeper(uri, useV2WireProtocol=v2) as bk, bk.open_ledger(ledger) as reader:
        warm(reader)
        ensemble = reader.metadata.segments[0].bookies
        got: list[tuple[int, bytes]] = []
        with reader.batches(max_count=100) as batches:
            for number, batch in enumerate(batches):
                got += contents(batch)
                if number % 50 == 10:
                    one = next(bookie for bookie in cluster[1:] if bookie.id in ensemble)
                    one.kill()
                    one.start()
        assert got == ALL
