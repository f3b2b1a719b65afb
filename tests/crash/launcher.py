"""The real `bookie-server`, with its disk and its checkpoints under a test's control.

    python -m tests.crash.launcher OPTIONS...

`CRASH_PLAN` is JSON:

    journal_bytes  roll journal files at this size; the configuration allows no less than 16 MiB
    step           end the process at this step of module base.crash_steps
    faults         give the storage FileOps that fail on a plan
    control        descriptors (in, out) on which the test gives orders, one JSON object per line

Orders, each answered when it is in force:

    {"step": n}                 end the process when step n comes next
    {"collection_step": name}   the same for a step of garbage collection
    {"collect": {timeout_s}}    force a collection; answered with its counters when it has ended
    {"plan": {op, action, …}}   plan a fault; answered a second time, with the time of the clock, once it has struck.
                                With "ends": true that is the time at which the bookie knows that it must end
    {"clear": true}             forget all plans
"""

import dataclasses
import json
import os
import resource
import sys
import threading
import time
from typing import Any

from bookie._fast.base import crash_steps, fatal
from bookie.server import main, running
from bookie.server.configuration.loader import Loaded, load
from bookie.server.storage import collecting
from bookie.storage import ledger_storage
from bookie.storage.garbage.collection import Garbage
from bookie.storage.garbage.steps import watch_steps

__all__: list[str] = []

LATCH_S = 1.0
"""If a bookie does not know of the failure by then, it is taken to be wrong from the failure on."""


def tailored(plan: dict[str, Any]) -> Any:
    """Wrap `load`, and replace sizes by values that a configuration file may not have."""

    def load_tailored(*given: Any) -> Loaded:
        loaded = load(*given)
        journal = loaded.settings.journal
        if "journal_bytes" in plan:
            journal = dataclasses.replace(journal, file_bytes_max=plan["journal_bytes"])
        settings = dataclasses.replace(loaded.settings, journal=journal)
        return dataclasses.replace(loaded, settings=settings)

    return load_tailored


collections: list[Garbage] = []


def tracked(*args: Any, **kwargs: Any) -> Garbage:
    """Create a `Garbage` that orders can reach."""
    collections.append(Garbage(*args, **kwargs))
    return collections[-1]


def collect(timeout_s: float) -> dict[str, object]:
    """Force a cycle; return whether it ended in time, and the counters of the collection."""
    (garbage,) = collections
    ended = garbage.wait(garbage.force(), timeout_s)
    return {"ended": ended, **garbage.stats()}


def end_after(name: str) -> None:
    """End the process after this step of a collection."""

    def look(step: str) -> None:
        if step == name:
            os.abort()

    watch_steps(look)


def obey(orders: int, answers: int) -> None:
    """Carry out orders until the test closes the descriptor."""

    def say(**facts: object) -> None:
        os.write(answers, json.dumps(facts).encode() + b"\n")

    def report(rule: int, *, ends: bool) -> None:
        from bookie._fast.testing import faulty

        while not faulty.wait_hit(rule, 60):
            pass
        at = time.monotonic_ns()
        # The thread that met the failure may be preempted before it has set the latch.
        if ends and fatal.wait(LATCH_S):
            at = time.monotonic_ns()
        say(hit=rule, at=at)

    for line in os.fdopen(orders):
        order = json.loads(line)
        if "step" in order:
            crash_steps.crash_after_step(order["step"])
            say(step=order["step"])
        elif "collect" in order:
            say(**collect(**order["collect"]))
        elif "collection_step" in order:
            end_after(order["collection_step"])
            say(collection_step=order["collection_step"])
        elif "plan" in order:
            from bookie._fast.testing import faulty

            rule = faulty.plan(order["plan"].pop("op"), order["plan"].pop("action"), **order["plan"])
            say(planned=rule)
            ends = order.get("ends", False)
            threading.Thread(target=report, args=(rule,), kwargs={"ends": ends}, daemon=True).start()
        elif "clear" in order:
            from bookie._fast.testing import faulty

            faulty.clear()
            say(cleared=True)


def run() -> None:
    """Set up as planned, then run the command."""
    plan = json.loads(os.environ.get("CRASH_PLAN", "{}"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    collecting.Garbage = tracked  # type: ignore[assignment,attr-defined]
    running.load = tailored(plan)  # type: ignore[attr-defined]
    crash_steps.crash_after_step(plan.get("step", 0))
    if plan.get("faults"):
        from bookie._fast.testing.faulty import FaultyFiles

        ledger_storage.Files = FaultyFiles  # type: ignore[attr-defined]
    if "control" in plan:
        threading.Thread(target=obey, args=plan["control"], daemon=True).start()
    main.main()


if __name__ == "__main__":
    sys.argv[0] = "bookie-server"
    run()
