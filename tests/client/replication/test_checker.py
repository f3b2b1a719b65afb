"""Checks of large fragments: which entries are read, and what they take meanwhile."""

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from bookie.client.replication.checker import LedgerChecker
from bookie.errors import NoSuchEntry
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment

LAST = 20_000


class Bookies:
    """Bookies that hold every entry but one, which take a turn of the loop to answer."""

    def __init__(self, missing: int = -1) -> None:
        self.missing = missing
        self.read_entries: list[int] = []
        self.tasks = 0

    async def read(self, bookie: str, ledger: int, entry: int) -> None:
        """Note the read, and the number of tasks."""
        self.read_entries.append(entry)
        self.tasks = max(self.tasks, len(asyncio.all_tasks()))
        await asyncio.sleep(0)
        if entry == self.missing:
            raise NoSuchEntry(f"{bookie}: ledger {ledger}, entry {entry}")


def checked(bookies: Bookies, percentage: int, *, ensemble: int = 1) -> list[Any]:
    """Check a closed ledger, and return the fragments that lack entries."""
    names = tuple(f"bookie-{k}" for k in range(ensemble))
    metadata = LedgerMetadata(
        ensemble_size=ensemble,
        write_quorum=1,
        ack_quorum=1,
        segments=(Segment(0, names),),
        state=LedgerState.CLOSED,
        last_entry=LAST,
    )
    environment: Any = SimpleNamespace(
        bookies=bookies,
        cluster=SimpleNamespace(alive=frozenset(names)),
        random=Random(7),
        settings=SimpleNamespace(verification_percentage=percentage, reads_at_once=-1),
    )

    async def check() -> list[Any]:
        return list(await LedgerChecker(environment).check(7, metadata, LAST))

    return asyncio.run(check())


@pytest.mark.parametrize("percentage", [0, 1, 30, 100])
def test_a_share_of_the_entries_is_read(percentage: int) -> None:
    """The first and the last entry, and the share of those between, each once; with a bounded number of tasks."""
    bookies = Bookies()
    assert checked(bookies, percentage) == []
    assert len(set(bookies.read_entries)) == len(bookies.read_entries)
    assert {0, LAST} <= set(bookies.read_entries) <= set(range(LAST + 1))
    assert len(bookies.read_entries) == 2 + -(-(LAST - 1) * percentage // 100)
    assert bookies.tasks < 150


def test_a_hole_is_found_and_ends_the_check() -> None:
    """The rest is not read, since the fragment is copied anyway."""
    bookies = Bookies(missing=777)
    assert [part.bookie for part in checked(bookies, 100)] == ["bookie-0"]
    assert len(bookies.read_entries) < LAST / 2


def test_only_the_entries_of_each_place_are_read() -> None:
    """Of a striped ledger, each bookie is asked for its own entries."""
    bookies = Bookies()
    assert checked(bookies, 100, ensemble=3) == []
    assert sorted(bookies.read_entries) == list(range(LAST + 1))
