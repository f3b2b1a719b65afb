"""The auditor's office, on a modelled queue under modelled time: a process that cannot audit must not keep it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from random import Random
from typing import Any, cast

import pytest

from bookie.client.config import ClientConfig
from bookie.client.replication.auditor import Auditor
from bookie.client.replication.contracts import Cluster, Environment
from bookie.client.replication.settings import RecoverySettings
from bookie.errors import ClientClosed
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from tests.sim.loop import VirtualLoop

DELAY_S = 600


class Office:
    """An election: the first candidate is elected, and the next one when it withdraws."""

    def __init__(self) -> None:
        self.candidates: list[Candidacy] = []
        self.terms: list[str] = []

    def elect(self) -> None:
        """Inform the first candidate, once."""
        if self.candidates and not self.candidates[0].elected:
            first = self.candidates[0]
            first.elected = True
            self.terms.append(first.name)
            asyncio.get_running_loop().call_soon(first.listener, True)


class Candidacy:
    """A subscription that ends with `close`."""

    def __init__(self, office: Office, name: str, listener: Callable[[bool], None]) -> None:
        self.office, self.name, self.listener = office, name, listener
        self.elected = False
        office.candidates.append(self)
        office.elect()

    def close(self) -> None:
        """Withdraw the candidate from the election."""
        self.office.candidates.remove(self)
        self.office.elect()


class Nothing:
    """A subscription to a value that never changes."""

    def close(self) -> None:
        """Do nothing."""


class Queue:
    """The queue of one auditor. `enabled` raises `error` if there is one."""

    def __init__(self, office: Office, error: Exception | None) -> None:
        self.office = office
        self.error = error
        self.marked: list[int] = []

    async def mark(self, ledger: int, *_: object) -> None:
        """Record a mark."""
        self.marked.append(ledger)

    async def enabled(self) -> bool:
        """Return True."""
        if self.error is not None:
            raise self.error
        return True

    async def set_lost_bookie_delay_s(self, *_: object, **__: object) -> None:
        """Do nothing, since the delay is set."""

    def watch_lost_bookie_delay(self, listener: Callable[[int | None], None]) -> Nothing:
        """Report the delay after a while, like a store."""
        asyncio.get_running_loop().call_later(1, listener, DELAY_S)
        return Nothing()

    def stand(self, name: str, listener: Callable[[bool], None]) -> Candidacy:
        """Stand for election."""
        return Candidacy(self.office, name, listener)


class Ledgers:
    """Metadata of a cluster with one ledger on one bookie. `registered` are the bookies according to the store."""

    def __init__(self) -> None:
        self.registered: frozenset[str] = frozenset()

    async def bookies(self, *, read_only: bool) -> frozenset[str]:
        """Return the registered bookies, which are writable."""
        return frozenset() if read_only else self.registered

    async def ledgers(self) -> AsyncIterator[list[int]]:
        """Yield that ledger."""
        yield [7]

    async def read(self, _: int) -> Versioned[LedgerMetadata]:
        """Return metadata of a closed, empty ledger."""
        segments = (Segment(0, ("away",)),)
        return Versioned(LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=segments), 0, 0)


def environment(name: str, office: Office, error: Exception | None = None) -> Environment:
    """Return what an auditor needs that fails with `error` whenever it is elected."""
    nothing: Any = None
    return Environment(
        name=name,
        queue=cast("Any", Queue(office, error)),
        metadata=cast("Any", Ledgers()),
        bookies=nothing,
        ledgers=nothing,
        placement=nothing,
        cluster=Cluster(),
        config=ClientConfig(),
        settings=RecoverySettings(check_interval_s=0, full_check_interval_s=0),
        random=Random(1),
        epoch_ms=lambda: 0,
    )


def auditor(name: str, office: Office, error: Exception | None = None) -> Auditor:
    """Return such an auditor."""
    return Auditor(environment(name, office, error))


def test_an_auditor_that_fails_gives_up_its_office() -> None:
    """Another candidate takes the office and keeps it; the first one stands again after it."""

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
    """The only candidate tries again, after a pause each time."""

    async def main() -> None:
        office = Office()
        work = asyncio.ensure_future(auditor("bad", office, ValueError("not foreseen")).run())
        await asyncio.sleep(11)
        assert office.terms == ["bad"] * 3
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    VirtualLoop().run(main())


def test_a_second_term_waits_for_lost_bookies_as_the_first_did() -> None:
    """Only an operator who writes the delay again requests an audit; reporting it to a new term does not."""

    async def main() -> None:
        office = Office()
        given = environment("one", office)
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


async def audited(given: Environment, script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run an auditor while `script` runs."""
    work = asyncio.ensure_future(Auditor(given).run())
    await script()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def test_bookies_that_all_vanish_at_once_have_the_delay() -> None:
    """A metadata store that stalls lets all sessions expire at once, which says nothing about the bookies."""
    given = environment("one", Office())
    marked, store = cast("Queue", given.queue).marked, cast("Ledgers", given.metadata)

    async def script() -> None:
        store.registered = frozenset({"away", "b:1", "c:1"})
        given.cluster.changed(store.registered, frozenset())
        await asyncio.sleep(100)
        store.registered = frozenset()
        given.cluster.changed(store.registered, frozenset())
        await asyncio.sleep(DELAY_S - 1)
        assert marked == []
        store.registered = frozenset({"b:1"})
        given.cluster.changed(store.registered, frozenset())
        await asyncio.sleep(2)
        assert marked == [7]

    VirtualLoop().run(audited(given, script))


def test_nobody_is_missing_for_a_session_timeout_after_an_interruption() -> None:
    """While the store could not be reached, a bookie that came back could not register."""
    given = environment("one", Office())
    marked = cast("Queue", given.queue).marked

    async def script() -> None:
        await asyncio.sleep(DELAY_S)
        given.cluster.interrupted()
        await asyncio.sleep(given.config.session_timeout_s - 1)
        assert marked == []
        await asyncio.sleep(2)
        assert marked == [7]

    VirtualLoop().run(audited(given, script))


def test_the_store_is_asked_before_bookies_are_lost() -> None:
    """What the auditor has seen may be old, since the store may not have been able to tell that a bookie is back."""
    given = environment("one", Office())
    marked, store = cast("Queue", given.queue).marked, cast("Ledgers", given.metadata)

    async def script() -> None:
        await asyncio.sleep(DELAY_S / 2)
        store.registered = frozenset({"away"})
        await asyncio.sleep(DELAY_S)
        assert marked == []
        store.registered = frozenset()
        await asyncio.sleep(DELAY_S + 2)
        assert marked == [7]

    VirtualLoop().run(audited(given, script))


def test_an_auditor_ends_with_its_client() -> None:
    """An auditor ends when its client is closed."""

    async def main() -> None:
        office = Office()
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(auditor("done", office, ClientClosed("the store was closed")).run(), 60)
        assert office.candidates == []

    VirtualLoop().run(main())
