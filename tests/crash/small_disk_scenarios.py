"""Failure scenarios on a small disk that fills up, each in one function, in the way of module scenarios."""

import random
import time
from contextlib import suppress
from pathlib import Path

from tests.crash.life import (
    PATIENCE_S,
    await_answer,
    end_well,
    kill_after,
    new_bookie,
    start_and_verify,
)
from tests.crash.load import Load
from tests.crash.peer import NO_ENTRY, NO_LEDGER, OK, READ_ONLY, Peer
from tests.crash.planned import PlannedBookie, watched
from tests.crash.small_disk import SmallDisk
from tests.history.checker import Violation
from tests.history.events import History

__all__ = ["die_on_a_full_disk", "fill_a_small_disk", "hold_back_the_journal"]

CARRIED_OVER = "were written to the journal again"
HELD_BACK_ADDS = 60_000
"""150 MB: with fewer adds there would be no backlog to carry over."""
HELD_BACK_BYTES = 96 << 20
"""32 MiB start a carry-over, which copies at most 8 MiB; a file is prepared, and a second of load precedes it."""


def fill_a_small_disk(directory: Path, disk: SmallDisk, settings: dict[str, str]) -> list[Violation]:
    """Fill a separate file system under the directories that `settings` puts there (B15)."""
    bookie, load = _on(disk, directory, settings)
    history = load.history

    def fill_and_free() -> None:
        load.go_on()
        disk.fill()
        await_answer(bookie, load, READ_ONLY)
        disk.free()
        await_answer(bookie, load, OK)

    with watched(bookie, history) as violations:
        start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_free)
        load.run(bookie.address, lambda: kill_after(bookie, history, 0.2))
        end_well(bookie, load)
    return violations


def die_on_a_full_disk(directory: Path, disk: SmallDisk, settings: dict[str, str]) -> list[Violation]:
    """Kill the bookie while its disk is full, and again after a start on the full disk: it serves what it has,
    read-only, denies nothing, and becomes writable by itself when there is room (B7, B15).
    """
    bookie, load = _on(disk, directory, settings)
    history = load.history

    def fill_and_die() -> None:
        load.go_on()
        disk.fill()
        await_answer(bookie, load, READ_ONLY)
        kill_after(bookie, history, 0)

    def read_all() -> None:
        history.nemesis("start")
        bookie.start()
        peer = Peer(history, "reader", bookie.address)
        codes = {peer.read(ledger.id, entry) for ledger in load.ledgers for entry in sorted(ledger.acked)}
        assert OK in codes
        assert not codes & {NO_LEDGER, NO_ENTRY}
        assert peer.add(load.open(), 0) == READ_ONLY
        peer.close()

    with watched(bookie, history) as violations:
        start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_die)
        read_all()
        kill_after(bookie, history, 0.1)
        read_all()
        disk.free()
        await_answer(bookie, load, OK)
        kill_after(bookie, history, 0.2)
        end_well(bookie, load)
    return violations


def hold_back_the_journal(directory: Path, disk: SmallDisk, settings: dict[str, str]) -> list[Violation]:
    """One of two ledger directories is full for long, while the writers of the other continue: the journal stays
    bounded, over kills at any time, even of a process that started on the full disk, and nothing is lost (B7, B15).
    """
    bookie, load = _on(disk, directory, settings)
    history = load.history
    files = directory / "journal" / "current"
    sizes = []

    def until_carried_over() -> None:
        before = bookie.log_text().count(CARRIED_OVER)
        deadline = time.monotonic() + 2 * PATIENCE_S
        goal = load.acknowledged + HELD_BACK_ADDS
        while bookie.log_text().count(CARRIED_OVER) < before + 2:
            assert time.monotonic() < deadline, bookie.log_text()[-2000:]
            load.go_on(10)
            sizes.append(_bytes_in(files))
            if load.acknowledged > goal:  # the latest flush has found the blocks that an earlier one freed
                disk.free()
                load.go_on()
                disk.fill()
                goal = load.acknowledged + HELD_BACK_ADDS
        kill_after(bookie, history, load.acknowledged % 7 / 100)

    def fill_and_die() -> None:
        load.go_on()
        disk.fill()
        until_carried_over()

    with watched(bookie, history) as violations:
        start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_die)
        for _ in range(2):
            start_and_verify(bookie, load)
            load.run(bookie.address, until_carried_over)
        disk.free()
        start_and_verify(bookie, load)
        load.run(bookie.address, lambda: kill_after(bookie, history, 0.3))
        end_well(bookie, load)
    assert "more entries than fit into memory" not in bookie.log_text()
    assert max(sizes) <= HELD_BACK_BYTES, sizes
    return violations


def _on(disk: SmallDisk, directory: Path, settings: dict[str, str]) -> tuple[PlannedBookie, Load]:
    bookie = new_bookie(directory, settings, {}, "")
    bookie.within = disk.enter
    return bookie, Load(History(), random.Random(str(settings)))


def _bytes_in(directory: Path) -> int:
    """Return the bytes on disk, while files come and go."""
    total = 0
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            total += path.stat().st_blocks * 512
    return total
