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
from tests.sim.loop import VirtualLoop


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
    """Of one auditor: nothing is marked. Asked whether the cluster replicates, it raises `error` if there is one."""

    def __init__(self, office: Office, error: Exception | None) -> None:
        self.office = office
        self.error = error

    async def enabled(self) -> bool:
        """It does."""
        if self.error is not None:
            raise self.error
        return True

    async def set_lost_bookie_delay_s(self, *_: object, **__: object) -> None:
        """It is known."""

    def watch_lost_bookie_delay(self, _: object) -> Nothing:
        """It does not change."""
        return Nothing()

    def stand(self, name: str, listener: Callable[[bool], None]) -> Candidacy:
        """Be a candidate."""
        return Candidacy(self.office, name, listener)


class NoLedgers:
    """Metadata of an empty cluster."""

    async def ledgers(self) -> AsyncIterator[list[int]]:
        """None."""
        none: list[list[int]] = []
        for ids in none:
            yield ids


def auditor(name: str, office: Office, error: Exception | None = None) -> Auditor:
    """One that fails with `error` whenever it is elected."""
    nothing: Any = None
    settings = RecoverySettings(check_interval_s=0)
    return Auditor(
        World(
            name=name,
            queue=cast("Any", Queue(office, error)),
            metadata=cast("Any", NoLedgers()),
            bookies=nothing,
            ledgers=nothing,
            placement=nothing,
            cluster=Cluster(),
            config=ClientConfig(),
            settings=settings,
            random=Random(1),
            epoch_ms=lambda: 0,
        )
    )


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


def test_an_auditor_ends_with_its_client() -> None:
    """There is nothing more to be had then."""

    async def main() -> None:
        office = Office()
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(auditor("done", office, ClientClosed("the store was closed")).run(), 60)
        assert office.candidates == []

    VirtualLoop().run(main())
