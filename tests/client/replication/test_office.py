"""Who holds the auditor's office, on a modelled queue under modelled time: whoever cannot audit must not hold it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any, cast

import pytest

from bookie.client.config import ClientConfig
from bookie.client.replication.auditor import Auditor
from bookie.client.replication.contracts import Cluster, World
from bookie.client.replication.settings import RecoverySettings
from bookie.errors import ClientClosed
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from tests.sim.loop import VirtualLoop

DELAY_S = 600


class Office:
    """One election: the first that stands is elected, the next when it withdraws."""

    def __init__(self) -> None:
        self.candidates: list[Candidacy] = []
        self.terms: list[str] = []

    def elect(self) -> None:
        """Tell the first, once."""
        if self.candidates and not self.candidates[0].elected:
            first = self.candidates[0]
            first.elected = True
            self.terms.append(first.name)
            asyncio.get_running_loop().call_soon(first.listener, True)


class Candidacy:
    """Ends with `close`."""

    def __init__(self, office: Office, name: str, listener: Callable[[bool], None]) -> None:
        self.office, self.name, self.listener = office, name, listener
        self.elected = False
        office.candidates.append(self)
        office.elect()

    def close(self) -> None:
        """Withdraw."""
        self.office.candidates.remove(self)
        self.office.elect()


class Nothing:
    """A subscription to what never changes."""

    def close(self) -> None:
        """It ends."""


class Queue:
    """Of one auditor. Asked whether the cluster replicates, it raises `error` if there is one."""

    def __init__(self, office: Office, error: Exception | None) -> None:
        self.office = office
        self.error = error
        self.marked: list[int] = []

    async def mark(self, ledger: int, *_: object) -> None:
        """It is kept."""
        self.marked.append(ledger)

    async def enabled(self) -> bool:
        """It does."""
        if self.error is not None:
            raise self.error
        return True

    async def set_lost_bookie_delay_s(self, *_: object, **__: object) -> None:
        """It is known."""

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Nothing:
        """It is what it is, and a store takes a while to tell that."""
        asyncio.get_running_loop().call_later(1, listener, DELAY_S)
        return Nothing()

    def stand(self, name: str, listener: Callable[[bool], None]) -> Candidacy:
        """Be a candidate."""
        return Candidacy(self.office, name, listener)


class Ledgers:
    """Metadata of a cluster with one ledger, on one bookie."""

    async def ledgers(self) -> AsyncIterator[list[int]]:
        """That one."""
        yield [7]

    async def read(self, _: int) -> Versioned[LedgerMetadata]:
        """Closed, and empty."""
        segments = (Segment(0, ("away",)),)
        return Versioned(LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=segments), 0, 0)


def world(name: str, office: Office, error: Exception | None = None) -> World:
    """Of an auditor that fails with `error` whenever it is elected."""
    nothing: Any = None
    return World(
        name=name,
        queue=cast("Any", Queue(office, error)),
        metadata=cast("Any", Ledgers()),
        bookies=nothing,
        ledgers=nothing,
        placement=nothing,
        cluster=Cluster(),
        config=ClientConfig(),
        settings=RecoverySettings(check_interval_s=0),
        random=Random(1),
        epoch_ms=lambda: 0,
    )


def auditor(name: str, office: Office, error: Exception | None = None) -> Auditor:
    """Of such a world."""
    return Auditor(world(name, office, error))


def test_an_auditor_that_fails_gives_up_its_office() -> None:
    """Another one takes it and keeps it; the first stands again, behind that one."""

    async def main() -> None:
        office = Office()
        work = [
            asyncio.ensure_future(one.run())
            for one in (auditor("bad", office, ValueError("not foreseen")), auditor("good", office))
        ]
        await asyncio.sleep(60)
        assert office.terms == ["bad", "good"]
        assert [one.name for one in office.candidates] == ["good", "bad"]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        assert office.candidates == []

    VirtualLoop().run(main())


def test_a_lone_auditor_that_fails_tries_again() -> None:
    """After a pause each time: nobody else does it."""

    async def main() -> None:
        office = Office()
        work = asyncio.ensure_future(auditor("bad", office, ValueError("not foreseen")).run())
        await asyncio.sleep(11)
        assert office.terms == ["bad"] * 3
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    VirtualLoop().run(main())


def test_a_second_term_waits_for_lost_bookies_as_the_first_did() -> None:
    """Only an operator who writes the delay again asks for an audit at once; that it is told anew is no such thing."""

    async def main() -> None:
        office = Office()
        given = world("one", office)
        queue = cast("Queue", given.queue)
        work = asyncio.ensure_future(Auditor(given).run())
        await asyncio.sleep(DELAY_S / 2)
        (first,) = office.candidates
        first.listener(False)
        await asyncio.sleep(1)
        first.listener(True)
        await asyncio.sleep(DELAY_S - 1)
        assert queue.marked == []
        await asyncio.sleep(10)
        assert queue.marked == [7]
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    VirtualLoop().run(main())


def test_an_auditor_ends_with_its_client() -> None:
    """There is nothing more to be had then."""

    async def main() -> None:
        office = Office()
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(auditor("done", office, ClientClosed("the store was closed")).run(), 60)
        assert office.candidates == []

    VirtualLoop().run(main())
