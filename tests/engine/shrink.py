"""Makes a failing world smaller, as long as its finding stays the same: fewer runs, peers, operations and faults.

A smaller plan is another world, in which threads meet at other moments. Therefore each is tried with a few orders of
threads before it is given up.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.engine.plan import Plan, RunPlan
from tests.engine.runtime import NEVER

__all__ = ["kind_of", "shrink"]

ORDERS = 3
CALM = {
    "pause_at": 0,
    "jump_at": 0,
    "spurious": 0,
    "short_io": 0,
    "priorities": 0,
    "preempt": 0,
    "full_from": NEVER,
    "kill_at": 0,
}
"""Values of a world in which less happens."""
PARTS = ("peers", "operations", "rules", "decays")

Finds = Callable[[Plan], str]
"""Plays a plan, and returns its first finding, or ""."""


def kind_of(finding: str) -> str:
    """Return a finding without its numbers and paths, which other worlds do not share."""
    return re.sub(r"-?\d+(\.\d+)?", "#", re.sub(r"'?/\S+", "/", finding)).removeprefix("run #: ")


def shrink(plan: Plan, finds: Finds, seconds: float) -> Plan:
    """Return the smallest plan with the finding of `plan` that was found in this time."""
    kind = kind_of(finds(plan))
    end = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(plan):
            if time.monotonic() > end:
                return plan
            found = next((one for one in _orders(candidate) if kind_of(finds(one)) == kind), None)
            if found is not None:
                plan, smaller = found, True
                break
    return plan


def _orders(plan: Plan) -> Iterator[Plan]:
    for order in range(ORDERS):
        runs = (replace(run, world=run.world | {"seed": run.world["seed"] + order}) for run in plan.runs)
        yield replace(plan, runs=tuple(runs))


def _candidates(plan: Plan) -> Iterator[Plan]:
    """Yield plans that are a little smaller, with the largest steps first."""
    runs = plan.runs
    for at in range(len(runs) - 1):
        if len(runs) > 1:
            yield replace(plan, runs=runs[:at] + runs[at + 1 :])
    for at, run in enumerate(runs):
        for less in _less(run):
            yield replace(plan, runs=(*runs[:at], less, *runs[at + 1 :]))
    if plan.ledger_directories > 1:
        yield replace(plan, ledger_directories=1)
    if plan.journals > 1:
        yield replace(plan, journals=1)
    if plan.network["io_threads"] > 1:
        yield replace(plan, network=plan.network | {"io_threads": 1})


def _with(run: RunPlan, name: str, value: Any) -> RunPlan:
    changed: dict[str, Any] = {name: value}
    return replace(run, **changed)


def _less(run: RunPlan) -> Iterator[RunPlan]:
    for part in PARTS:
        held = getattr(run, part)
        if len(held) > 1:
            yield _with(run, part, ())
        for at in range(len(held)):
            yield _with(run, part, held[:at] + held[at + 1 :])
    if run.lasts:
        yield replace(run, lasts=False)
    if run.cut >= 0:
        yield replace(run, cut=-1)
    for name in run.changes:
        yield replace(run, changes={key: value for key, value in run.changes.items() if key != name})
    for name, calm in CALM.items():
        if run.world.get(name, calm) != calm:
            yield replace(run, world=run.world | {name: calm})
    for at, peer in enumerate(run.peers):
        for name in ("requests", "window"):
            if (value := getattr(peer, name)) > 1:
                half: dict[str, Any] = {name: value // 2}
                fewer = replace(peer, **half)
                yield replace(run, peers=(*run.peers[:at], fewer, *run.peers[at + 1 :]))
