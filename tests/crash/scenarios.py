"""Failure scenarios, each in one function: the directories, the plan, and what the judge found.

A scenario ends with every acknowledged entry read back by a healthy process. `planted` enables a bug of the bookie
that the scenario must reveal; without one, nothing may be found.
"""

import os
import random
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.crash.life import (
    PATIENCE_S,
    await_answer,
    die,
    dies_in_replay,
    end_well,
    kill_after,
    never,
    new_bookie,
    note_exit,
    start_and_verify,
)
from tests.crash.load import Load
from tests.crash.peer import OK, READ_ONLY, Peer
from tests.crash.planned import draw_settings, watched
from tests.crash.power_cut import LOSSES, Losses, VolatileDisk
from tests.crash.real_disk import RealDisk
from tests.history.checker import Violation
from tests.history.events import History

__all__ = [
    "cut_power",
    "die_at_step",
    "die_before",
    "fail_a_read",
    "fail_an_index_sync",
    "fail_the_disk",
    "fill_the_disk",
    "fill_the_disk_before_a_lone_writer",
    "kill_again_and_again",
]

DIES_STARTING = 0.15
STALLS = 0.7
END_S = 5.0
"""How long a process gets whose planted bug is that it does not end."""
REPLAYS = 5
"""How often a death under load is repeated until the replay after it comes to the same step."""


def kill_again_and_again(directory: Path, seed: str, cycles: int, planted: str = "") -> list[Violation]:
    """Kill one bookie on one set of directories `cycles` times, sometimes while it starts."""
    rng = random.Random(seed)
    settings, plan = draw_settings(rng, directory)
    print(f"life {seed}: {settings} {plan}")
    bookie = new_bookie(directory, settings, plan, planted)
    history = History()
    load = Load(history, rng)

    def strike() -> None:
        if not load.acknowledged:
            load.go_on(1)
        kill_after(bookie, history, rng.uniform(0.02, 0.3))

    with watched(bookie, history) as violations:
        for _ in range(cycles):
            if rng.random() < DIES_STARTING:
                os.close(bookie.launch())
                kill_after(bookie, history, rng.uniform(0.1, 0.4))
            start_and_verify(bookie, load)
            load.run(bookie.address, strike)
        end_well(bookie, load)
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
    bookie = new_bookie(directory, {**several, **settings}, {}, planted)
    history = History()
    load = Load(history, random.Random(step))
    with watched(bookie, history) as violations:
        for _ in range(REPLAYS):
            bookie.control = True
            start_and_verify(bookie, load)
            load.run(bookie.address, lambda: die(bookie, load, lambda: bookie.order(step=step)))
            history.nemesis("kill")
            bookie.control = False
            if not in_replay or dies_in_replay(bookie, step):
                break
        else:
            raise AssertionError(f"no start came to step {step}:\n{bookie.log_text()[-2000:]}")
        end_well(bookie, load)
    assert load.acknowledged
    return violations


def die_before(directory: Path, call: Mapping[str, Any], settings: Mapping[str, str]) -> list[Violation]:
    """Kill the process at a call of module base.file under load, before the call is made."""
    bookie = new_bookie(directory, dict(settings), {"faults": True}, "")
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
        start_and_verify(bookie, load)
        load.run(bookie.address, strike)
        bookie.control = False
        end_well(bookie, load)
    assert load.acknowledged
    return violations


def fail_the_disk(directory: Path, fault: dict[str, Any], planted: str = "") -> list[Violation]:
    """A write or sync of the storage fails under load: the process ends, and the next one has everything."""
    bookie = new_bookie(directory, {}, {"faults": True}, planted)
    history = History()
    load = Load(history, random.Random(str(fault)))

    def strike() -> None:
        load.go_on()
        bookie.order(plan=fault, ends=True)
        hit = bookie.heard()
        history.nemesis("fault", at=hit.get("at"))
        note_exit(bookie, history, END_S if planted else PATIENCE_S)

    with watched(bookie, history) as violations:
        bookie.control = True
        start_and_verify(bookie, load)
        load.run(bookie.address, strike)
        bookie.control = False
        end_well(bookie, load)
    return violations


def fail_an_index_sync(directory: Path, nth: int) -> list[Violation]:
    """A commit of the location index fails: LMDB would continue, but the bookie must not."""
    bookie = new_bookie(directory / "bookie", {}, {}, "")
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
        end_well(bookie, load)
    return violations


def fill_the_disk(directory: Path, fault: dict[str, Any]) -> list[Violation]:
    """The disk is full for a while: the bookie becomes read-only, then writable again, and has everything (B15)."""
    bookie = new_bookie(directory, {}, {"faults": True}, "")
    history = History()
    load = Load(history, random.Random(str(fault)))

    def fill_and_free() -> None:
        load.go_on()
        bookie.order(plan=fault)
        assert bookie.heard(), bookie.log_text()[-2000:]
        await_answer(bookie, load, READ_ONLY)
        bookie.order(clear=True)
        await_answer(bookie, load, OK)

    with watched(bookie, history) as violations:
        bookie.control = True
        start_and_verify(bookie, load)
        load.run(bookie.address, fill_and_free)
        load.run(bookie.address, lambda: kill_after(bookie, history, 0.2))
        bookie.control = False
        end_well(bookie, load)
    return violations


def fill_the_disk_before_a_lone_writer(directory: Path) -> list[Violation]:
    """A full disk must not delay others, although the thread that serves a lone writer writes its groups (B15)."""
    bookie = new_bookie(directory, {"serverNumIOThreads": "1"}, {"faults": True}, "")
    history = History()
    load = Load(history, random.Random(1))
    with watched(bookie, history) as violations:
        bookie.control = True
        start_and_verify(bookie, load)
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
        kill_after(bookie, history, 0)
        bookie.control = False
        end_well(bookie, load)
    return violations


def fail_a_read(directory: Path, planted: str = "") -> list[Violation]:
    """The disk cannot read entry logs for a while: reads get errors, never a denial, and all is there afterwards."""
    bookie = new_bookie(directory, {"dbStorage_readAheadCacheMaxSizeMb": "2"}, {"faults": True}, planted)
    history = History()
    load = Load(history, random.Random(1))

    def strike() -> None:
        load.go_on()
        kill_after(bookie, history, 0.3)

    with watched(bookie, history) as violations:
        start_and_verify(bookie, load)
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
    bookie = new_bookie(directory, settings, {"faults": True}, planted)
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
            start_and_verify(bookie, load)
            load.run(bookie.address, cut)
            print(f"{disk.cut_power(rng, losses)} writes were not synced")
        bookie.control = False
        bookie.environment |= disk.environment()
        end_well(bookie, load)
    assert load.acknowledged
    return violations


# The steps of a scenario.
