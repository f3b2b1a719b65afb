"""Quarantine: what counts as a failure, when it is judged, and how long a quarantine lasts."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bookie.client import Channel
from bookie.client.bookies import BookieClient
from bookie.client.bookies.health import Health
from bookie.client.bookies.quarantine import WithoutQuarantined
from bookie.client.config import ClientConfig
from bookie.client.placement.default import DefaultPlacement
from bookie.errors import (
    BookieReadOnly,
    BookieUnavailable,
    IncorrectParameter,
    LedgerFenced,
    MetadataStoreError,
    NoSuchEntry,
    NotEnoughBookies,
    ReadError,
    RequestTimeout,
)
from tests.client.bookies.senders import DIGEST
from tests.hostile.local import local_bookie

ON: dict[str, Any] = {
    "health_check_enabled": True,
    "health_errors_max": 3,
    "health_check_interval_s": 60.0,
    "quarantine_s": 600.0,
}


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_too_many_failures_in_one_interval() -> None:
    """At the end of an interval, bookies that reached the threshold are quarantined for the configured time."""
    clock = Clock()
    health = Health(ClientConfig(**ON), Random(1), clock)
    for code in (ReadError.code, RequestTimeout.code, ReadError.code):
        health.failed("bad", code)
    health.failed("late", ReadError.code, 2)
    assert health.excluded() == frozenset()
    clock.now = 60.0
    assert health.excluded() == {"bad"}
    health.failed("late", ReadError.code, 2)  # a new interval: the counters were reset
    clock.now = 659.0
    assert health.excluded() == {"bad"}
    clock.now = 661.0
    assert health.excluded() == frozenset()


def test_what_does_not_count() -> None:
    """Missing entries, fences and read-only bookies are no failures; lost connections are, if so configured."""
    clock = Clock()
    counting = Health(ClientConfig(**ON, health_counts_connect_errors=True), Random(1), clock)
    not_counting = Health(ClientConfig(**ON), Random(1), clock)
    for health in (counting, not_counting):
        for error in (NoSuchEntry, LedgerFenced, BookieReadOnly):
            health.failed("good", error.code, 100)
        health.failed("gone", BookieUnavailable.code, 3)
    off = Health(ClientConfig(), Random(1), clock)
    off.failed("bad", ReadError.code, 1000)
    clock.now = 61.0
    assert counting.excluded() == {"gone"}
    assert not not_counting.excluded()
    assert not off.excluded()
    counting.release()
    assert counting.excluded() == frozenset()


def test_the_ratio() -> None:
    """Of 1,000 bookies that fail, about the configured share is quarantined."""
    clock = Clock()
    health = Health(ClientConfig(**ON, quarantine_ratio=0.3), Random(7), clock)
    for bookie in range(1000):
        health.failed(str(bookie), ReadError.code, 3)
    clock.now = 61.0
    assert 230 < len(health.excluded()) < 370


def test_the_client_counts() -> None:
    """The client counts failed requests to an address without a bookie."""

    async def main() -> None:
        config = ClientConfig(
            health_check_enabled=True,
            health_errors_max=3,
            health_counts_connect_errors=True,
        )
        async with BookieClient(config) as client:
            clock = Clock()
            client.health = Health(config, Random(1), clock)
            reads = (client.read("127.0.0.1:1", 7, entry) for entry in range(5))
            assert all(
                isinstance(result, BookieUnavailable) for result in await asyncio.gather(*reads, return_exceptions=True)
            )
            assert client.excluded() == frozenset()
            clock.now = 61.0
            assert client.excluded() == {"127.0.0.1:1"}

    asyncio.run(main())


def test_the_cluster_may_want_no_quarantine() -> None:
    """The cluster is asked before a quarantine. If it refuses, all are released; without an answer nothing changes."""

    async def main() -> None:
        clock = Clock()
        wanted: bool | None = True

        async def enabled() -> bool:
            if wanted is None:
                raise MetadataStoreError("away")
            return wanted

        health = Health(ClientConfig(**ON), Random(1), clock, enabled)

        async def out(bookie: str) -> frozenset[str]:
            """After an interval in which it failed."""
            health.failed(bookie, ReadError.code, 3)
            clock.now += 61.0
            health.excluded()
            await asyncio.gather(*health._asking)
            return health.excluded()

        assert await out("a") == {"a"}
        wanted = None
        assert await out("b") == {"a"}
        wanted = False
        assert await out("b") == frozenset()

    asyncio.run(main())


def test_placement_without_the_quarantined() -> None:
    """Quarantined bookies are avoided while there are enough others, and used when there are not."""
    placement = DefaultPlacement(ClientConfig(), Random(1))
    out: set[str] = set()
    choice = WithoutQuarantined(placement, lambda: frozenset(out))
    choice.bookies_changed(frozenset("abcde"), frozenset())
    out.update("ab")
    for _ in range(20):
        assert set(choice.new_ensemble(3, 3, 2)) == set("cde")
        assert choice.replacement(2, 2, ("c", "d"), 0) == "e"
    assert set(choice.new_ensemble(4, 3, 2)) > set("c")
    assert choice.replacement(2, 2, ("c", "d"), 0, excluded={"e"}) in "ab"
    with pytest.raises(NotEnoughBookies):
        choice.new_ensemble(6, 3, 2)


def test_one_bookies_batches(tmp_path: Path) -> None:
    """`batch_read_entries` reads what one bookie stores; invalid arguments are refused before anything is sent."""
    with local_bookie(tmp_path) as bookie, Channel.connect(*bookie.address) as channel:
        address = "{}:{}".format(*bookie.address)
        for entry in range(5):
            channel.add(7, entry, b"x", digest=DIGEST, lac=-1, length=0)

        async def main() -> None:
            async with BookieClient(ClientConfig(use_v2_wire_protocol=True)) as client:
                batch = await client.batch_read_entries(address, 7, 1, 3, 1000, 0, None, allow_fast_fail=True)
                batch.verify(DIGEST)
                assert [entry for entry, _ in batch] == [1, 2, 3]
                for wrong in ((-1, 1, 1), (0, -1, 1), (0, 1, -1)):
                    with pytest.raises(IncorrectParameter, match=r"ledger 7: .* -1; give 0 or more"):
                        await client.batch_read_entries(address, 7, *wrong)

        asyncio.run(main())
