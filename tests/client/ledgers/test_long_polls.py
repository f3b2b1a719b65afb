"""Which answers to reads of the LAC and long polls count, and for what, on modelled bookies."""

import asyncio
from random import Random
from typing import Any, cast

import pytest

from bookie.client.config import ClientConfig
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.placement.default import DefaultPlacement
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.errors import BookieUnavailable, BookKeeperError, LedgerRecoveryError, NoSuchEntry, NoSuchLedger
from bookie.metadata.driver import Versioned
from tests.client.ledgers.shelf import DIGEST, metadata, sealed


class RecordingPlacement(DefaultPlacement):
    """A placement policy that records its calls."""

    def __init__(self) -> None:
        super().__init__(ClientConfig(), Random(1))
        self.failures: list[tuple[str, int]] = []
        self.late: list[str] = []

    def failed(self, bookie: str, entry: int) -> None:
        """Record a bookie without the entry."""
        self.failures.append((bookie, entry))

    def slow(self, bookie: str) -> None:
        """Record a slow bookie."""
        self.late.append(bookie)


class Answers:
    """Bookies that answer a long poll with a given value or error."""

    def __init__(self, given: dict[str, ReadAnswer | BookKeeperError]) -> None:
        self.given = given

    def pending(self, _: str) -> int:
        """Return 0."""
        return 0

    async def read(self, bookie: str, *_: object) -> ReadAnswer:
        """Answer at once."""
        return await self.wait_for_lac(bookie)

    async def wait_for_lac(self, bookie: str, *_: object) -> ReadAnswer:
        """Answer at once."""
        answer = self.given[bookie]
        if isinstance(answer, BookKeeperError):
            raise answer
        return answer


@pytest.mark.parametrize("parallel", [False, True])
def test_who_lacks_the_entry(parallel: bool) -> None:
    """Only bookies of the write set that deny the entry count; not those that timed out or were unreachable."""

    async def main() -> None:
        placement = RecordingPlacement()
        quiet = ReadAnswer(-1, None, -1, None)
        good = ReadAnswer(0, sealed(7, 0), 0, None)
        given: dict[str, ReadAnswer | BookKeeperError] = {
            "lacks": NoSuchLedger("lacks"),
            "quiet": quiet,
            "away": BookieUnavailable("away"),
            "other": NoSuchEntry("other"),
            "good": good,
        }
        context = ClientContext(ClientConfig(), cast("Any", Answers(given)), cast("Any", None), placement, Random(1))
        value = metadata({0: list(given)}, None, quorums=(5, 3, 1))
        reader = LedgerReader(7, Versioned(value, 0, 0), DIGEST, context)
        found = await reader.read_last_add_confirmed_and_entry(0, 100, parallel=parallel)
        assert found.lac == 0
        assert placement.failures == [("lacks", 0)]
        assert placement.late == []

    asyncio.run(main())


def test_a_damaged_answer_counts_for_nothing() -> None:
    """The LAC beside an entry whose digest is wrong is not taken over."""

    async def main() -> None:
        given: dict[str, ReadAnswer | BookKeeperError] = {"bad": ReadAnswer(9, sealed(7, 9, damaged=True), 9, None)}
        config = ClientConfig(use_v2_wire_protocol=False)
        placement = DefaultPlacement(config, Random(1))
        context = ClientContext(config, cast("Any", Answers(given)), cast("Any", None), placement, Random(1))
        reader = LedgerReader(7, Versioned(metadata({0: ["bad"]}, None), 0, 0), DIGEST, context)
        with pytest.raises(LedgerRecoveryError, match="none of bad gave a valid answer"):
            await reader.try_read_last_add_confirmed()
        assert reader.view.lac == -1

    asyncio.run(main())
