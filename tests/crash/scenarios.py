"""Failure scenarios, each in one function: the directories, the plan, and what the judge found.

A scenario ends with every acknowledged entry read back by a healthy process. `planted` enables a bug of the bookie
that the scenario must reveal; without one, nothing may be found.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.crash.load import Load
from tests.crash.peer import FENCED, NO_ENTRY, NO_LEDGER, OK, Peer
from tests.crash.planned import PlannedBookie, Refused, draw_settings, watched
from tests.crash.power_cut import LOSSES, Losses, VolatileDisk
from tests.crash.real_disk import RealDisk
from tests.crash.small_disk import SmallDisk
from tests.fixtures.planted import NUMBERS
from tests.history.checker import Violation
from tests.history.events import History

__all__ = [
    "cut_power",
    "die_at_step",
    "die_before",
    "die_on_a_full_disk",
    "fail_a_read",
    "fail_an_index_sync",
    "fail_the_disk",
    "fill_a_small_disk",
    "fill_the_disk",
    "fill_the_disk_before_a_lone_writer",
    "hold_back_the_journal",
    "kill_again_and_again",
]

READ_ONLY = 105
DIES_STARTING = 0.15
STALLS = 0.7
END_S = 5.0
"""How long a process gets whose planted bug is that it does not end."""
PATIENCE_S = 60.0
CARRIED_OVER = "were written to the journal again"
HELD_BACK_ADDS = 60_000
"""150 MB: with fewer adds there would be no backlog to carry over."""
HELD_BACK_BYTES = 96 << 20
"""32 MiB start a carry-over, which copies at most 8 MiB; a file is prepared, and a second of load precedes it."""

never = threading.Event()


def kill_again_and_again(directory: Path, seed: str, cycles: int, planted: str = "") -> list[Violation]:
    """Kill one bookie on one set of directories `cycles` times, sometimes while it starts."""
    rng = random.Random(seed)
    settings, plan = draw_settings(rng, directory)
    print(f"life {seed}: {settings} {plan}")
    bookie = _bookie(directory, settings, plan, planted)
    history = History()
    load = Load(history, rng)

    def strike() -> None:
        if not load.acknowledged:
            load.go_on(1)
        _kill_after(bookie, history, rng.uniform(0.02, 0.3))

    with watched(bookie, history) as violations:
        for _ in range(cycles):
            if rng.random() < DIES_STARTING:
                os.close(bookie.launch())
                _kill_after(bookie, history, rng.uniform(0.1, 0.4))
            _start_and_verify(bookie, load)
            load.run(bookie.address, strike)
        _end(bookie, load)
    print(f"{load.acknowledged} entries acknowledged, {cycles} kills")
    assert load.acknowledged
    return violations


def die_at_step(
    directory: Path,
    step: int,
    *,
    directories: int,
    planted: str = "",
    in_replay: bool = True,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> list[Violation]:
    """End the process right after a step of a checkpoint under load; with `in_replay` also in the replay's flush."""
    several = {
        "journalDirectories": ",".join(f"{directory}/journal{n}" for n in range(directories)),
        "ledgerDirectories": ",".join(f"{directory}/ledgers{n}" for n in range(directories)),
    }
    bookie = _bookie(directory, {**several, **settings}, {}, planted)
    history = History()
    load = Load(history, random.Random(step))
    with watched(bookie, history) as violations:
        bookie.control = True
        _start_and_verify(bookie, load)
        load.run(bookie.address, lambda: _die(bookie, load, lambda: bookie.order(step=step)))
        history.nemesis("kill")
        bookie.control = False
        if in_replay:
            bookie.plan["step"] = step
            assert bookie.run() == -signal.SIGABRT, (
                f"the start did not come to step {step}:\n{bookie.log_text()[-2000:]}"
            )
            del bookie.plan["step"]
        _end(bookie, load)
    assert load.acknowledged
    return violations


def die_before(directory: Path, call: Mapping[str, Any], settings: Mapping[str, str]) -> list[Violation]:
    """Kill the process at a call of module base.file under load, before the call is made."""
    bookie = _bookie(directory, dict(settings), {"faults": True}, "")
    history = History()
    load = Load(history, random.Random(str(call)))

    def strike() -> None:
        load.go_on()
        bookie.order(plan={**call, "action": "KILL"})
        code = bookie.exited(PATIENCE_S)
        assert code == -signal.SIGKILL, f"exit code {code}\n{bookie.log_text()[-2000:]}"
        history.nemesis("kill")

    with watched(bookie, history) as violations:
        bookie.control = True
        _start_and_verify(bookie, load)
        load.run(bookie.address, strike)
        bookie.control = False
        _end(bookie, load)
    assert load.acknowledged
    return violations


def fail_the_disk(directory: Path, fault: dict[str, Any], planted: str = "") -> list[Violation]:
    """A write or sync of the storage fails under load: the process ends, and the next one has everything."""
    bookie = _bookie(directory, {}, {"faults": True}, planted)
    history = History()
    load = Load(history, random.Random(str(fault)))

    def strike() -> None:
        load.go_on()
        bookie.order(plan=fault, ends=True)
        hit = bookie.heard()
        history.nemesis("fault", at=hit.get("at"))
        _note_exit(bookie, history, END_S if planted else PATIENCE_S)

    with watched(bookie, history) as violations:
        bookie.control = True
        _start_and_verify(bookie, load)
        load.run(bookie.address, strike)
        bookie.control = False
        _end(bookie, load)
    return violations


def fail_an_index_sync(directory: Path, nth: int) -> list[Violation]:
    """A commit of the location index fails: LMDB would continue, but the bookie must not."""
    bookie = _bookie(directory / "bookie", {}, {}, "")
    disk = VolatileDisk(directory / "bookie", directory)
    history = History()
    load = Load(history, random.Random(nth))

    def wait_for_the_end() -> None:
        code = bookie.exited(PATIENCE_S)
        at = disk.failed_at()
        assert at is not None, f"no sync of the index has failed; exit code {code}"
        history.nemesis("fault", at=at)
        assert code is not None, "the process did not end"
        history.nemesis("exit", code)

    with watched(bookie, history) as violations:
        bookie.environment |= disk.environment(fail_sync="locations.lmdb/data.mdb", nth=nth)
        history.nemesis("start")
        bookie.start()
        load.run(bookie.address, wait_for_the_end)
        for name in disk.environment():
            del bookie.environment[name]
        _end(bookie, load)
    return violations


def fill_the_disk(directory: Path, fault: dict[str, Any]) -> list[Violation]:
    """The disk is full for a while: the bookie becomes read-only, then writable again, and has everything (B15)."""
    bookie = _bookie(directory, {}, {"faults": True}, "")
    history = History()
    load = Load(history, random.Random(str(fault)))

    def fill_and_free() -> None:
        load.go_on()
        bookie.order(plan=fault)
        assert bookie.heard(), bookie.log_text()[-2000:]
        _await_answer(bookie, load, READ_ONLY)
        bookie.order(clear=True)
        _await_answer(bookie, load, OK)

    with watched(bookie, history) as violations:
        bookie.control = True
        _start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_free)
        load.run(bookie.address, lambda: _kill_after(bookie, history, 0.2))
        bookie.control = False
        _end(bookie, load)
    return violations


def fill_a_small_disk(directory: Path, disk: SmallDisk, settings: dict[str, str]) -> list[Violation]:
    """Fill a separate file system under the directories that `settings` puts there (B15)."""
    bookie = _bookie(directory, settings, {}, "")
    bookie.within = disk.enter
    history = History()
    load = Load(history, random.Random(str(settings)))

    def fill_and_free() -> None:
        load.go_on()
        disk.fill()
        _await_answer(bookie, load, READ_ONLY)
        disk.free()
        _await_answer(bookie, load, OK)

    with watched(bookie, history) as violations:
        _start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_free)
        load.run(bookie.address, lambda: _kill_after(bookie, history, 0.2))
        _end(bookie, load)
    return violations


def die_on_a_full_disk(directory: Path, disk: SmallDisk, settings: dict[str, str]) -> list[Violation]:
    """Kill the bookie while its disk is full, and again after a start on the full disk: it serves what it has,
    read-only, denies nothing, and becomes writable by itself when there is room (B7, B15).
    """
    bookie = _bookie(directory, settings, {}, "")
    bookie.within = disk.enter
    history = History()
    load = Load(history, random.Random(str(settings)))

    def fill_and_die() -> None:
        load.go_on()
        disk.fill()
        _await_answer(bookie, load, READ_ONLY)
        _kill_after(bookie, history, 0)

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
        _start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_die)
        read_all()
        _kill_after(bookie, history, 0.1)
        read_all()
        disk.free()
        _await_answer(bookie, load, OK)
        _kill_after(bookie, history, 0.2)
        _end(bookie, load)
    return violations


def hold_back_the_journal(directory: Path, disk: SmallDisk, settings: dict[str, str]) -> list[Violation]:
    """One of two ledger directories is full for long, while the writers of the other continue: the journal stays
    bounded, over kills at any time, even of a process that started on the full disk, and nothing is lost (B7, B15).
    """
    bookie = _bookie(directory, settings, {}, "")
    bookie.within = disk.enter
    history = History()
    load = Load(history, random.Random(str(settings)))
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
        _kill_after(bookie, history, load.acknowledged % 7 / 100)

    def fill_and_die() -> None:
        load.go_on()
        disk.fill()
        until_carried_over()

    with watched(bookie, history) as violations:
        _start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_die)
        for _ in range(2):
            _start_and_verify(bookie, load)
            load.run(bookie.address, until_carried_over)
        disk.free()
        _start_and_verify(bookie, load)
        load.run(bookie.address, lambda: _kill_after(bookie, history, 0.3))
        _end(bookie, load)
    assert "more entries than fit into memory" not in bookie.log_text()
    assert max(sizes) <= HELD_BACK_BYTES, sizes
    return violations


def _bytes_in(directory: Path) -> int:
    """Return the bytes on disk, while files come and go."""
    total = 0
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            total += path.stat().st_blocks * 512
    return total


def fill_the_disk_before_a_lone_writer(directory: Path) -> list[Violation]:
    """A full disk must not delay others, although the thread that serves a lone writer writes its groups (B15)."""
    bookie = _bookie(directory, {"serverNumIOThreads": "1"}, {"faults": True}, "")
    history = History()
    load = Load(history, random.Random(1))
    with watched(bookie, history) as violations:
        bookie.control = True
        _start_and_verify(bookie, load)
        ledger = load.open()
        writer, other = (Peer(history, name, bookie.address) for name in ("writer", "other"))
        ledger.sent = 101
        for entry in range(100):
            assert writer.add(ledger, entry) == OK
            ledger.acknowledge(entry)
        bookie.order(plan={"op": "pwritev", "action": "ENOSPC", "suffix": ".txn", "times": -1})
        writer.send_adds(ledger, 100, 1)
        assert bookie.heard(), bookie.log_text()[-2000:]
        assert other.read(ledger.id, 99) == OK
        assert other.add(load.open(), 0) == READ_ONLY
        assert not writer.take_adds(wait=False)
        bookie.order(clear=True)
        assert [code for *_, code in writer.take_adds()] == [OK]
        ledger.acknowledge(100)
        writer.close()
        other.close()
        _kill_after(bookie, history, 0)
        bookie.control = False
        _end(bookie, load)
    return violations


def fail_a_read(directory: Path, planted: str = "") -> list[Violation]:
    """The disk cannot read entry logs for a while: reads get errors, never a denial, and all is there afterwards."""
    bookie = _bookie(directory, {"dbStorage_readAheadCacheMaxSizeMb": "2"}, {"faults": True}, planted)
    history = History()
    load = Load(history, random.Random(1))

    def strike() -> None:
        load.go_on()
        _kill_after(bookie, history, 0.3)

    with watched(bookie, history) as violations:
        _start_and_verify(bookie, load)
        load.run(bookie.address, strike)
        bookie.control = True
        history.nemesis("start")
        bookie.start()
        bookie.order(plan={"op": "pread", "action": "EIO", "suffix": ".log", "times": -1})
        peer = Peer(history, "reader", bookie.address)
        codes = {peer.read(ledger.id, entry) for ledger in load.ledgers for entry in sorted(ledger.acked)[::10]}
        peer.close()
        assert codes - {OK}, "every entry came from a cache"
        assert bookie.heard(), bookie.log_text()[-2000:]  # the report that the fault struck, before the next answer
        bookie.order(clear=True)
        load.verify(bookie.address)
    return violations


def cut_power(
    directory: Path, seed: str, cycles: int, planted: str = "", losses: Losses = LOSSES, real: RealDisk | None = None
) -> list[Violation]:
    """Cut the power under load, mostly while a group waits for its sync: what no sync covers is lost or torn."""
    rng = random.Random(seed)
    root = real.root if real else directory / "disk"
    settings = {
        "journalDirectories": f"{root}/journal",
        "journalReuseFiles": rng.choice(("true", "false")),
        "ledgerDirectories": f"{root}/ledgers",
        "metadataServiceUri": f"lmdb://{root}/metadata",
    }
    bookie = _bookie(directory, settings, {"faults": True}, planted)
    disk = real or VolatileDisk(root, directory)
    history = History()
    load = Load(history, rng)

    def cut() -> None:
        if not load.acknowledged:
            load.go_on(1)
        never.wait(rng.uniform(0.05, 0.3))
        if rng.random() < STALLS:
            bookie.order(plan={"op": "fdatasync", "action": "STALL", "suffix": ".txn"})
            bookie.heard()
        history.nemesis("kill")
        bookie.kill()

    with watched(bookie, history) as violations:
        bookie.control = True
        for _ in range(cycles):
            bookie.environment |= disk.environment()
            _start_and_verify(bookie, load)
            load.run(bookie.address, cut)
            print(f"{disk.cut_power(rng, losses)} writes were not synced")
        bookie.control = False
        bookie.environment |= disk.environment()
        _end(bookie, load)
    assert load.acknowledged
    return violations


# The steps of a scenario.


def _bookie(directory: Path, settings: dict[str, str], plan: dict[str, Any], planted: str) -> PlannedBookie:
    bookie = PlannedBookie(directory, settings, plan)
    bookie.environment["BOOKIE_PLANTED"] = str(NUMBERS.get(planted, 0))
    return bookie


def _start_and_verify(bookie: PlannedBookie, load: Load) -> None:
    load.history.nemesis("start")
    try:
        bookie.start()
    except AssertionError as refusal:
        load.history.nemesis("refused")
        raise Refused(str(refusal)) from refusal
    load.verify(bookie.address)


def _end(bookie: PlannedBookie, load: Load) -> None:
    """Show with a healthy process that everything is there, and stop it cleanly."""
    bookie.environment.pop("BOOKIE_PLANTED", None)
    _start_and_verify(bookie, load)
    assert (code := bookie.stop()) == 0, f"exit code {code}\n{bookie.log_text()[-4000:]}"


def _kill_after(bookie: PlannedBookie, history: History, seconds: float) -> None:
    never.wait(seconds)
    history.nemesis("kill")
    bookie.kill()


def _die(bookie: PlannedBookie, load: Load, order: Callable[[], object]) -> None:
    load.go_on()
    order()
    assert bookie.exited(PATIENCE_S) == -signal.SIGABRT, bookie.log_text()[-2000:]


def _note_exit(bookie: PlannedBookie, history: History, within_s: float) -> None:
    """Give the process time to end; the judge says whether that was right."""
    code = bookie.exited(within_s)
    if code is not None:
        history.nemesis("exit", code)
        return
    never.wait(0.5)
    history.nemesis("overdue")
    history.nemesis("kill")
    bookie.kill()


def _await_answer(bookie: PlannedBookie, load: Load, wanted: int) -> None:
    """Add to a ledger of our own until the bookie answers with `wanted`; when the ledger was fenced, to another one."""
    peer = Peer(load.history, "probe", bookie.address)
    ours = [load.open()]
    deadline = time.monotonic() + PATIENCE_S
    try:
        while True:
            ledger = ours[-1]
            ledger.sent += 1
            peer.send_adds(ledger, ledger.sent - 1, 1)  # a full journal answers late, so do not wait for the response
            never.wait(0.005)
            taken = peer.take_adds(wait=False)
            for number, acked, code in taken:
                if code == OK:
                    next(one for one in ours if one.id == number).acknowledge(acked)
            codes = {code for *_, code in taken}
            if wanted in codes:
                return
            if FENCED in codes:
                ours.append(load.open())
            assert time.monotonic() < deadline, f"no add was answered with {wanted}:\n{bookie.log_text()[-2000:]}"
    finally:
        peer.close()
