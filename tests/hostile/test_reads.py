"""Reads through sockets compared with a plain model, with entries in both write cache halves, the read ring and on
disk.

Modules: store.read_path, cache.read, store.loads.
"""

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.fixtures.draws import examples
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, batch, entry_of, read, records
from tests.reference.batch_read import batch as expected_batch

FRAME_MAX = 6000
BATCH_MAX = 5000
ledgers = count(1)
pytestmark = pytest.mark.leaks("one bookie serves the whole file, and opens logs as it goes")

ids = st.integers(0, 40)
sizes = st.one_of(st.integers(0, 200), st.sampled_from([1000, 2500, 4960, 5900]))
steps = st.one_of(
    st.tuples(st.just("add"), ids, sizes),
    st.tuples(st.just("add"), ids, sizes),
    st.tuples(st.just("run"), ids, st.integers(1, 20)),
    st.tuples(st.just("read"), st.one_of(ids, st.just(-1)), st.just(0)),
    st.tuples(
        st.just("batch"),
        st.one_of(ids, st.just(-1)),
        st.tuples(
            st.one_of(st.integers(-1, 6), st.sampled_from([-(2**31), 2**31 - 1, 0])),
            st.one_of(st.integers(0, BATCH_MAX + 10), st.sampled_from([-(2**63), -1, 2**63 - 1])),
        ),
    ),
    st.tuples(st.just("checkpoint"), st.just(0), st.just(0)),
)


@pytest.fixture(scope="module")
def bookie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBookie]:
    """One bookie for all examples; each uses a ledger of its own."""
    with local_bookie(tmp_path_factory.mktemp("bookie"), frame_bytes_max=FRAME_MAX, batch_bytes_max=BATCH_MAX) as made:
        yield made


@pytest.fixture(scope="module")
def peer(bookie: LocalBookie) -> Iterator[Peer]:
    """Connect to the bookie once for all tests of this module."""
    with bookie.peer() as peer:
        yield peer


def payload(seeded_random: random.Random, size: int) -> bytes:
    """Return a payload that differs from all others, so that a stale copy of an entry is recognized."""
    return seeded_random.randbytes(size)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=st.lists(steps, min_size=1, max_size=40), seed=st.integers(0, 2**32))
def test_reads_answer_as_the_model(bookie: LocalBookie, peer: Peer, plan: list[tuple], seed: int) -> None:  # type: ignore[type-arg]
    """B7, B21: with gaps, repeated adds and any size limit, flushed or not, reads return what was added last."""
    seeded_random, ledger = random.Random(seed), next(ledgers)
    stored: dict[int, bytes] = {}

    def put(entry: int, size: int) -> None:
        data = payload(seeded_random, size)
        assert peer.ask(add(ledger, entry, data)).code == 0
        stored[entry] = entry_of(ledger, entry, data)

    for what, entry, more in plan:
        if what == "add":
            put(entry, more)
        elif what == "run":
            for offset in range(more):
                put(entry + offset, seeded_random.randrange(100))
        elif what == "checkpoint":
            assert bookie.storage.checkpoint()
        elif what == "read":
            answer = peer.ask(read(ledger, entry))
            wanted = stored.get(max(stored, default=-1) if entry == -1 else entry)
            assert answer.entry == entry
            assert (answer.code, answer.body) == ((0, wanted) if wanted else (2 if stored else 1, b""))
        else:
            limit, size = more
            found = peer.ask(batch(ledger, entry, count=limit, size=size, request_id=seed))
            model = expected_batch(stored, entry, limit, size, batch_max=BATCH_MAX, frame_max=FRAME_MAX)
            event(f"entries in a batch: {min(len(model), 8)}")
            assert (found.entry, found.request_id) == (entry, seed)
            assert found.code == (0 if model else 2 if stored else 1)
            assert records(found.body) == model


@pytest.mark.parametrize("again", [3, 4, 9])
def test_an_entry_written_again_after_its_flush(bookie: LocalBookie, peer: Peer, again: int) -> None:
    """B21: the copy in the write cache overrides the one that read-ahead finds on disk, even within one batch."""
    ledger = next(ledgers)
    stored = {entry: entry_of(ledger, entry, b"first") for entry in range(10)}
    for entry in stored:
        assert peer.ask(add(ledger, entry, b"first")).code == 0
    assert bookie.storage.checkpoint()
    assert peer.ask(add(ledger, again, b"second")).code == 0
    stored[again] = entry_of(ledger, again, b"second")
    for start in (3, 0, 4):
        assert records(peer.ask(batch(ledger, start)).body) == [stored[entry] for entry in range(start, 10)]
    assert bookie.storage.checkpoint()
    for start in (3, 0, 4):
        assert records(peer.ask(batch(ledger, start)).body) == [stored[entry] for entry in range(start, 10)]


def test_each_limit_of_a_batch(bookie: LocalBookie, peer: Peer) -> None:
    """For every size limit around a boundary, from memory and disk, what fits is returned, and at least one entry."""
    ledger = next(ledgers)
    stored = {entry: entry_of(ledger, entry, bytes(68)) for entry in range(30)}
    for entry in stored:
        assert peer.ask(add(ledger, entry, bytes(68))).code == 0
    for _ in ("in the write cache", "on disk"):
        for size in range(36, 36 + 5 * 104 + 2):
            found = peer.ask(batch(ledger, 3, size=size))
            assert records(found.body) == expected_batch(stored, 3, 0, size, batch_max=BATCH_MAX, frame_max=FRAME_MAX)
        assert bookie.storage.checkpoint()


def test_a_batch_that_ends_in_a_page_the_ring_cannot_take(tmp_path: Path) -> None:
    """The response's own pins fill the ring, and the next entry does not fit into the response, so it ends there."""
    small: dict[str, Any] = {"read_cache_bytes": 2 * 65536, "read_segment_bytes": 65536, "readahead_entries": 1}
    with local_bookie(tmp_path, **small) as bookie, bookie.peer() as peer:
        stored = {entry: entry_of(1, entry, bytes([entry % 251]) * 3000) for entry in range(200)}
        for entry, data in stored.items():
            assert peer.ask(add(1, entry, data[32:])).code == 0
        assert bookie.storage.checkpoint()
        for size in range(60_000, 400_000, 7_777):
            found = peer.ask(batch(1, 0, size=size))
            assert records(found.body) == expected_batch(stored, 0, 0, size, batch_max=5 << 20, frame_max=5 << 20)


def test_what_is_read_in_order_is_read_ahead(tmp_path: Path) -> None:
    """While one page of the read cache is being read, the next is loaded, although nothing has requested it."""
    stored = {entry: entry_of(1, entry, bytes([entry % 251]) * 100) for entry in range(100)}
    half = 50 * (4 + len(stored[0]))
    with local_bookie(tmp_path, readahead_bytes=half) as bookie, bookie.peer() as peer:
        for entry, data in stored.items():
            assert peer.ask(add(1, entry, data[32:])).code == 0
        assert bookie.storage.checkpoint()
        for entry in range(6):
            assert peer.ask(read(1, entry)).body == stored[entry]
        assert bookie.stat("disk_reads") == 1, "too early to guess what comes"
        assert peer.ask(read(1, 6)).body == stored[6]
        for _ in range(100_000):
            if bookie.stat("disk_reads") > 1:
                break
            peer.ask(read(2, 0))
        for entry, data in stored.items():
            assert peer.ask(read(1, entry)).body == data
        assert bookie.stat("disk_reads") == 2
