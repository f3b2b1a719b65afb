"""The life of a bookie in a failure scenario: it starts, is verified, dies in some way, and at last stops cleanly."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash.load import Load
from tests.crash.peer import FENCED, OK, Peer
from tests.crash.planned import PlannedBookie, Refused
from tests.fixtures.planted import NUMBERS
from tests.history.events import History

__all__ = [
    "await_answer",
    "die",
    "dies_in_replay",
    "end_well",
    "kill_after",
    "never",
    "new_bookie",
    "note_exit",
    "PATIENCE_S",
    "start_and_verify",
]

PATIENCE_S = 60.0
never = threading.Event()


def new_bookie(directory: Path, settings: dict[str, str], plan: dict[str, Any], planted: str) -> PlannedBookie:
    bookie = PlannedBookie(directory, settings, plan)
    bookie.environment["BOOKIE_PLANTED"] = str(NUMBERS.get(planted, 0))
    return bookie


def start_and_verify(bookie: PlannedBookie, load: Load) -> None:
    load.history.nemesis("start")
    try:
        bookie.start()
    except AssertionError as refusal:
        load.history.nemesis("refused")
        raise Refused(str(refusal)) from refusal
    load.verify(bookie.address)


def end_well(bookie: PlannedBookie, load: Load) -> None:
    """Show with a healthy process that everything is there, and stop it cleanly."""
    bookie.environment.pop("BOOKIE_PLANTED", None)
    start_and_verify(bookie, load)
    assert (code := bookie.stop()) == 0, f"exit code {code}\n{bookie.log_text()[-4000:]}"


def kill_after(bookie: PlannedBookie, history: History, seconds: float) -> None:
    never.wait(seconds)
    history.nemesis("kill")
    bookie.kill()


def die(bookie: PlannedBookie, load: Load, order: Callable[[], object]) -> None:
    load.go_on()
    order()
    assert bookie.exited(PATIENCE_S) == -signal.SIGABRT, bookie.log_text()[-2000:]


def dies_in_replay(bookie: PlannedBookie, step: int) -> bool:
    """Start the bookie, and return whether it died at the step. If it serves instead, it is killed.

    That is right where the replay had nothing to put: no add was acknowledged after the last checkpoint, and what the
    flush that died was about to put was a fence or an add that the journal does not have.
    """
    bookie.plan["step"] = step
    ready = bookie.launch()
    del bookie.plan["step"]
    with os.fdopen(ready) as line:
        readable, _, _ = select.select([ready], [], [], PATIENCE_S)
        assert readable, f"the start neither came to step {step} nor ended:\n{bookie.log_text()[-2000:]}"
        served = line.readline()
    if served:
        bookie.kill()
        return False
    assert (code := bookie.wait()) == -signal.SIGABRT, f"exit code {code}\n{bookie.log_text()[-2000:]}"
    return True


def note_exit(bookie: PlannedBookie, history: History, within_s: float) -> None:
    """Give the process time to end; the judge says whether that was right."""
    code = bookie.exited(within_s)
    if code is not None:
        history.nemesis("exit", code)
        return
    never.wait(0.5)
    history.nemesis("overdue")
    history.nemesis("kill")
    bookie.kill()


def await_answer(bookie: PlannedBookie, load: Load, wanted: int) -> None:
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
