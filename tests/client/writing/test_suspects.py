"""Bookies of a region that has died, and that are still registered, are not chosen again and again."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from bookie._fast.client.write_window import WriteWindow
from bookie.client.config import ClientConfig
from bookie.client.entries.digest import Digest, DigestType
from bookie.client.features import Features
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.ledgers.replacement import InMemory, Replacer
from bookie.client.ledgers.suspects import LATELY_S
from bookie.client.placement.region import RegionPlacement
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from tests.client.placement.clusters import placed_by
from tests.sim.loop import VirtualLoop

PLACES = {f"{region}{number}": f"/{region}/r{number % 3}" for region in "xyz" for number in range(6)}
ENSEMBLE = ("x0", "y0", "z0")
SECONDS_A_FAILURE = 5.0


class Writer:
    """A writer whose bookies fail as soon as it has chosen them, if they are dead."""

    def __init__(self, places: dict[str, str], **settings: Any) -> None:
        config = ClientConfig(**settings)
        placement = placed_by(RegionPlacement, places, "/default-region/default-rack")
        digester = Digest.of(DigestType.CRC32C, b"").digester
        window = WriteWindow(digester, 7, (3, 3, 2), lambda _, error: error)
        metadata = LedgerMetadata(ensemble_size=3, write_quorum=3, ack_quorum=2, segments=(Segment(0, ENSEMBLE),))
        self.known = Known(7, Versioned(metadata, 0, 0))
        self._replacer = Replacer(InMemory(placement), placement, window, config, Features())

    @property
    def ensemble(self) -> tuple[str, ...]:
        """The bookies that are written to."""
        return self.known.metadata.segments[-1].bookies

    async def refused(self, changes: int) -> float:
        """Change the ensemble so many times, since the first bookie refuses connections at once. Return the seconds."""
        now = asyncio.get_running_loop().time
        began = now()
        for _ in range(changes):
            self._replacer.waiting[0] = self.ensemble[0]
            await self._replacer.run(self.known)
        return now() - began

    async def replace(self, dead: Collection[str]) -> list[str]:
        """Replace dead bookies until there are none, and return those that failed."""
        failed: list[str] = []
        while found := {index: bookie for index, bookie in enumerate(self.ensemble) if bookie in dead}:
            assert len(failed) < len(PLACES)
            failed += found.values()
            await asyncio.sleep(SECONDS_A_FAILURE)
            self._replacer.waiting.update(found)
            await self._replacer.run(self.known)
        return failed


def test_a_dead_region_is_left_after_one_attempt() -> None:
    """The first replacement is of the same region, as always; the next one is of another."""
    dead = {bookie for bookie in PLACES if bookie.startswith("x")}

    async def scenario() -> None:
        writer = Writer(PLACES)
        failed = await writer.replace(dead)
        assert failed[0] == "x0"
        assert failed[1] in dead
        assert len(failed) == 2
        assert await writer.replace({"y0"}) == ["y0"]
        assert sum(bookie.startswith("y") for bookie in writer.ensemble) >= 1

    VirtualLoop().run(scenario())


def test_bookies_that_failed_are_not_chosen_again_at_once() -> None:
    """Of a region with one live bookie, each of the others fails at most once."""
    places = {bookie: place for bookie, place in PLACES.items() if bookie.startswith("x")} | {
        "y0": "/y/r",
        "z0": "/z/r",
    }
    dead = {bookie for bookie in places if bookie.startswith("x")} - {"x5"}

    async def scenario() -> None:
        writer = Writer(places)
        failed = await writer.replace(dead)
        assert len(set(failed)) == len(failed)
        assert set(writer.ensemble) == {"x5", "y0", "z0"}

    VirtualLoop().run(scenario())


def test_suspected_bookies_are_chosen_where_no_others_are_left() -> None:
    """A bookie that came back replaces another one, though it failed a moment ago."""
    places = {"x0": "/x/r", "x1": "/x/r", "y0": "/y/r", "z0": "/z/r"}

    async def scenario() -> None:
        writer = Writer(places)
        assert await writer.replace({"x0"}) == ["x0"]
        assert await writer.replace({"x1"}) == ["x1"]
        assert writer.ensemble == ENSEMBLE

    VirtualLoop().run(scenario())


def test_bookies_are_suspected_for_a_while() -> None:
    """After `bookieFailureHistoryExpirationMSec`, the region has another chance when its successor fails."""

    async def scenario() -> None:
        writer = Writer(PLACES)
        await writer.replace({bookie for bookie in PLACES if bookie.startswith("x")})
        await asyncio.sleep(ClientConfig().bookie_failure_expiry_s)
        await writer.replace(set(writer.ensemble).difference(ENSEMBLE))
        assert any(bookie.startswith("x") for bookie in writer.ensemble)

    VirtualLoop().run(scenario())


@pytest.mark.parametrize(
    ("settings", "pause_s"),
    [({}, 0.1), ({"add_timeout_s": 0.03}, 0.03), ({"add_timeout_s": 0.0}, 0.1), ({"bookie_failure_expiry_s": 0}, 0.1)],
)
def test_changes_do_not_follow_each_other_without_a_pause(settings: dict[str, float], pause_s: float) -> None:
    """Where all others are registered and refuse connections, each change but the first ones waits a little."""
    places = {"x0": "/x/r", "x1": "/x/r", "x2": "/x/r", "y0": "/y/r", "z0": "/z/r"}

    async def scenario() -> None:
        writer = Writer(places, **settings)
        assert await writer.refused(1) == 0
        assert await writer.refused(50) >= 48 * pause_s

    VirtualLoop().run(scenario())


def test_a_change_to_a_bookie_that_has_not_failed_is_not_delayed() -> None:
    """The first failures cost no time, and neither does a bookie that failed long ago."""

    async def scenario() -> None:
        writer = Writer({"x0": "/x/r", "x1": "/x/r", "y0": "/y/r", "z0": "/z/r"})
        assert await writer.refused(1) == 0
        await asyncio.sleep(LATELY_S)
        assert await writer.refused(1) == 0
        assert await writer.refused(1) > 0

    VirtualLoop().run(scenario())
