"""Copies go to bookies with room: the choice on modelled disks, and a real bookie that is short of it."""

import asyncio
import shutil
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.factory import placement_for
from bookie.client.replication.counters import Counters
from bookie.client.replication.fragments import Fragment
from bookie.client.replication.targets import MARGIN, SHORT_S, Targets, needed_bytes
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import BookieUnavailable, NotEnoughBookies
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from perf.recovery_room import RUNS, run
from tests.client.replication.conftest import GHOST, Cluster
from tests.client.replication.test_replication import work
from tests.client.replication.test_room import SMALL_BYTES, OnSmallDisk
from tests.crash.small_disk import SmallDisk, Unavailable
from tests.sim.loop import VirtualLoop

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")
PAUSE_S = 7.0
LENGTH = 100


class Disks:
    """Bookies with disks of 10,000 bytes, by id with their free bytes; None: no answer."""

    def __init__(self, **free: int | None) -> None:
        self.free = free
        self.asked: list[str] = []

    async def bookie_info(self, bookie: str) -> BookieInfo:
        """Answer like a bookie."""
        self.asked.append(bookie)
        free = self.free[bookie]
        if free is None:
            raise BookieUnavailable(f"{bookie}: no answer")
        return BookieInfo(10_000, free)


def closed(size: int, quorum: int, ensemble: tuple[str, ...], length: int) -> LedgerMetadata:
    """Return the metadata of a ledger with ten entries in one segment."""
    return LedgerMetadata(
        ensemble_size=size,
        write_quorum=quorum,
        ack_quorum=2,
        segments=(Segment(0, ensemble),),
        state=LedgerState.CLOSED,
        length=length,
        last_entry=9,
    )


def targets_of(disks: Disks, **settings: Any) -> Targets:
    """Return the choice among all these bookies."""
    config = ClientConfig(placement_policy="default", weight_paced_pause_max_s=PAUSE_S, **settings)
    placement = placement_for(config, Random(5), float)
    placement.bookies_changed(frozenset(disks.free), frozenset())
    return Targets(placement, cast("Any", disks), config, Counters())


def choose(
    disks: Disks, lost: int = 1, times: int = 1, **settings: Any
) -> tuple[list[dict[int, str]], float, Counters]:
    """Choose targets for the first places of a ledger, several times; return them, the seconds, and the counters."""
    loop, targets = VirtualLoop(), targets_of(disks, **settings)
    ensemble = ("gone0", "gone1", "gone2")
    metadata = closed(3, 3, ensemble, LENGTH)
    bad = [Fragment(0, 9, at, ensemble[at], closed=True, stored=(0, 9)) for at in range(lost)]

    async def main() -> tuple[list[dict[int, str]], float, Counters]:
        began = loop.time()
        found = [await targets.choose(metadata, ensemble, bad, frozenset(ensemble[:lost])) for _ in range(times)]
        return found, loop.time() - began, targets._counters

    return loop.run(main())


def test_those_who_are_short_get_nothing_while_others_have_room() -> None:
    """1,100 free bytes are the warn threshold and the margin; a copy of 100 bytes must fit in as well."""
    disks = Disks(full=0, short=1199, enough=1200, empty=9000)
    chosen, seconds, counters = choose(disks, times=40)
    assert {one[0] for one in chosen} == {"enough", "empty"}
    assert (seconds, counters.targets_short, counters.paused_ms) == (0, 2, 0)
    assert disks.asked.count("full") == disks.asked.count("short") == 1, f"they are not asked again for {SHORT_S} s"


def test_a_segment_that_lost_several_bookies_gets_different_ones() -> None:
    """Each place has a bookie of its own with room."""
    chosen, _, _ = choose(Disks(full=0, a=9000, b=9000, c=9000), lost=3)
    assert sorted(chosen[0].values()) == ["a", "b", "c"]


def test_if_all_are_short_copies_wait_and_go_on() -> None:
    """Entries with too few replicas are worse than fuller disks; there is one pause for a segment."""
    chosen, seconds, counters = choose(Disks(a=0, b=10), lost=2)
    assert sorted(chosen[0].values()) == ["a", "b"]
    assert (seconds, counters.paused_ms) == (PAUSE_S, 1000 * PAUSE_S)


def test_those_who_do_not_tell_are_tried() -> None:
    """A bookie that does not answer may have room; the copy itself shows whether it is there."""
    chosen, seconds, _ = choose(Disks(silent=None, full=0), times=3)
    assert ([one[0] for one in chosen], seconds) == (["silent"] * 3, 0)


def test_without_any_bookie_it_fails_at_once() -> None:
    """Nobody waits for room where nobody is."""
    with pytest.raises(NotEnoughBookies):
        choose(Disks())


def test_it_can_be_switched_off() -> None:
    """Nobody is asked then."""
    disks = Disks(full=0)
    chosen, _, _ = choose(disks, copies_need_room=False)
    assert (chosen, disks.asked) == ([{0: "full"}], [])


def test_what_a_copy_needs() -> None:
    """The mean entry of the ledger counts for each entry of the place."""
    part = Fragment(0, 4, 1, "b", closed=True, stored=(0, 4))
    assert needed_bytes(closed(4, 2, tuple("abcd"), 1000), part) == 250
    assert needed_bytes(closed(4, 2, tuple("abcd"), 0), part) == 0


def test_a_whole_recovery_drives_nobody_over_the_threshold() -> None:
    """With 20 workers at the same time, bookies with room take all copies; without the rule, others are filled up."""
    rows = {name: asyncio.run(run(name, 100, 10, 20, 2e10, 3)) for name in RUNS}
    for name, row in rows.items():
        assert row["room_left_tb"] > 0
        assert (row["over_warn"] == 0) == name.startswith("room"), row


def test_a_real_bookie_that_is_short_of_room_gets_no_copy(cluster: Cluster, tmp_path: Path) -> None:
    """A bookie on a fuller disk is writable, and weights do not count; copies go to the others nevertheless."""
    small = OnSmallDisk(tmp_path / "small", cluster.uri, {"zkTimeout": "4000", "diskUsageThreshold": "0.99"})
    small.ledgers.mkdir()
    one, two, three, four = cluster.ids
    usage = shutil.disk_usage(tmp_path)
    others = 1 - usage.free / usage.total
    warn = others + MARGIN + (1 - others) / 4
    try:
        with SmallDisk(small.ledgers, "tmpfs", SMALL_BYTES) as disk:
            small.disk = disk
            (disk.inside / "ballast").write_bytes(bytes(round((warn + (1 - others) / 4) * SMALL_BYTES)))
            small.start()
            try:
                ledgers = [asyncio.run(cluster.write([(0, (one, GHOST, two, three))], 3)) for _ in range(20)]
                keys = {"ensemblePlacementPolicy": "default", "diskUsageWarnThreshold": warn}
                stats = asyncio.run(work(cluster, *ledgers, **keys))
                assert stats["autorecovery_targets_short"] == 1
                for ledger in ledgers:
                    assert cluster.wait_without(ledger, GHOST).segments[0].bookies[1] == four
            finally:
                small.stop()
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED: {reason}")
