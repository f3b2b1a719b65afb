"""Change metadata by compare-and-set, in a store that yields to other tasks between reading and writing."""

import asyncio
from dataclasses import replace

import pytest

from bookie.client.ledgers.metadata_loop import Known, change_metadata, closed_at, with_segment
from bookie.client.ledgers.view import LedgerView
from bookie.errors import LedgerClosed, MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

LEDGER = 7
NEW = LedgerMetadata(
    ensemble_size=2, write_quorum=2, ack_quorum=1, segments=(Segment(0, ("a:1", "b:1")),), custom={"n": b"0"}
)


class Store:
    """The metadata of one ledger, with the number of reads and writes."""

    def __init__(self) -> None:
        self.stored = Versioned(NEW, 0, 1)
        self.reads = self.writes = 0
        self.lies = False

    async def read(self, ledger: int) -> Versioned[LedgerMetadata]:
        assert ledger == LEDGER
        self.reads += 1
        await asyncio.sleep(0)
        return self.stored

    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        assert ledger == LEDGER
        self.writes += 1
        await asyncio.sleep(0)
        if version != self.stored.version or self.lies:
            raise MetadataVersionConflict(f"ledger {ledger} is at {self.stored.version}, not {version}")
        self.stored = Versioned(metadata, version + 1, 1)
        return self.stored


def counted(metadata: LedgerMetadata) -> LedgerMetadata:
    return replace(metadata, custom={"n": b"%d" % (int(metadata.custom["n"]) + 1)})


def test_many_change_it_at_once_and_none_is_lost() -> None:
    """Twenty handles increment a counter from stale copies; the sum is twenty."""

    async def changes() -> Store:
        store = Store()
        await asyncio.gather(
            *(change_metadata(store, Known(LEDGER, store.stored), counted) for _ in range(20))  # type: ignore[arg-type]
        )
        return store

    store = asyncio.run(changes())
    assert store.stored.value.custom == {"n": b"20"}
    assert store.stored.version == 20


def test_what_needs_no_change_is_not_written() -> None:
    """Metadata that need no change are neither written nor read."""
    store = Store()
    known = Known(LEDGER, store.stored)
    assert asyncio.run(change_metadata(store, known, lambda _: None)) == NEW  # type: ignore[arg-type]
    assert (store.reads, store.writes) == (0, 0)


def test_a_change_is_asked_anew_after_a_conflict_and_may_give_up() -> None:
    """After a conflict the change sees the other client's metadata, and its error ends the loop."""
    store = Store()
    known = Known(LEDGER, store.stored)
    store.stored = Versioned(closed_at(NEW, 3, 30), 1, 1)
    seen: list[LedgerMetadata] = []
    known.listener = seen.append

    def unless_closed(metadata: LedgerMetadata) -> LedgerMetadata:
        if metadata.state is LedgerState.CLOSED:
            raise LedgerClosed(f"ledger {LEDGER} ends at {metadata.last_entry}")
        return with_segment(metadata, 4, ("a:1", "c:1"))

    with pytest.raises(LedgerClosed):
        asyncio.run(change_metadata(store, known, unless_closed))  # type: ignore[arg-type]
    assert known.closed
    assert seen == [store.stored.value]
    assert store.stored.version == 1


def test_a_store_that_refuses_its_own_version_ends_the_loop() -> None:
    """A store that refuses its own version raises the conflict after one try."""
    store = Store()
    store.lies = True
    with pytest.raises(MetadataVersionConflict):
        asyncio.run(change_metadata(store, Known(LEDGER, store.stored), counted))  # type: ignore[arg-type]
    assert (store.writes, store.reads) == (1, 1)


@pytest.mark.parametrize(("version", "created_ms"), [(0, 1), (0, 0), (3, 2), (7, 2)])
def test_another_ledger_with_the_same_id_is_left_alone(version: int, created_ms: int) -> None:
    """The ledger was deleted and its id used again: neither is the other one changed, nor its version waited for."""
    store = Store()
    known = Known(LEDGER, Versioned(NEW, 5, 1))
    store.stored = Versioned(NEW, version, created_ms)

    async def twice() -> None:
        for _ in range(2):
            with pytest.raises(NoSuchLedgerMetadata, match=f"ledger {LEDGER} was deleted, and another one was created"):
                await asyncio.wait_for(change_metadata(store, known, counted), 30)  # type: ignore[arg-type]

    asyncio.run(twice())
    assert (store.reads, store.writes) == (1, 1)
    assert (known.metadata, store.stored.value) == (NEW, NEW)


@pytest.mark.parametrize("version", [0, 7])
def test_readers_of_a_ledger_whose_id_was_used_again_are_told_of_its_deletion(version: int) -> None:
    """A watch may see only the new ledger, since the old one was deleted between two looks."""

    async def watched() -> None:
        view = LedgerView(LEDGER, Versioned(NEW, 5, 1))
        waiting = asyncio.ensure_future(view.change())
        await asyncio.sleep(0)
        view.saw_metadata(Versioned(closed_at(NEW, 9, 90), version, 2))
        with pytest.raises(NoSuchLedgerMetadata, match=f"ledger {LEDGER} was deleted"):
            await asyncio.wait_for(waiting, 30)
        assert not view.closed

    asyncio.run(watched())


def test_only_newer_versions_are_learned() -> None:
    """A watch and a change may report the same version in any order."""
    known = Known(LEDGER, Versioned(NEW, 5, 1))
    assert not known.learn(Versioned(closed_at(NEW, 0, 1), 5, 1))
    assert not known.closed
    assert known.learn(Versioned(closed_at(NEW, 0, 1), 6, 1))
    assert known.closed


def test_a_segment_takes_the_place_of_one_that_starts_where_it_does() -> None:
    """L6: the first entries of segments strictly increase."""
    grown = with_segment(NEW, 4, ("a:1", "c:1"))
    assert [segment.first_entry for segment in grown.segments] == [0, 4]
    again = with_segment(grown, 4, ("d:1", "c:1"))
    assert again.segments == (NEW.segments[0], Segment(4, ("d:1", "c:1")))
    assert with_segment(NEW, 0, ("d:1", "c:1")).segments == (Segment(0, ("d:1", "c:1")),)
