"""What worlds that are drawn for a purpose are built from: calm runs, peers that share ledgers, and small settings.

Thread schedules, times, settings that are not named, and what peers send follow the seed of the plan.
"""

import random
from dataclasses import replace
from typing import Any

from bookie.storage.settings import MIB
from tests.engine.plan import KIB, Operation, PeerPlan, Plan, RunPlan, S
from tests.engine.runtime import NEVER

__all__ = ["generator_of", "LEDGERS", "LONG", "MANY", "NINE", "often", "peers_of", "run_of", "SMALL", "world_of"]

LEDGERS = (3, 4, 7)
LONG = (3, (1 << 32) + 3, (7 << 32) + 4)
NINE = tuple(range(1, 10))
MANY = tuple(range(1, 17))
CALM = {"absent_ns": 0, "pause_at": 0, "full_from": NEVER, "full_to": NEVER, "short_io": 0}
SMALL = {"flush_interval_ms": 20, "log_bytes_max": 16 * KIB, "log_per_ledger": False, "write_cache_bytes": 2 * MIB}


def generator_of(plan: Plan) -> random.Random:
    """Return a generator that follows the seed, apart from those that drew the plan."""
    return random.Random(f"directed-{plan.seed}")


def peers_of(plan: Plan, number: int, *roles: str, ledgers: tuple[int, ...] = LEDGERS, **more: Any) -> tuple[Any, ...]:
    """Return a peer for each role, every second one with protocol V3."""
    given: dict[str, Any] = {"requests": 200, "window": 20, "pause_ns": 0, **more}
    return tuple(
        PeerPlan(role, f"{plan.seed}-{number}-{at}", ledgers, 0, v3=bool(at % 2), **given)
        for at, role in enumerate(roles)
    )


def run_of(plan: Plan, number: int, peers: tuple[Any, ...], *, cut: int = -1, **more: Any) -> RunPlan:
    """Return a run without faults and operations other than those in `more`; numbers of `world` are in `more`, too."""
    named = ("changes", "decays", "operations", "prompt_ns", "rules", "seconds")
    fields = {name: more.pop(name) for name in named if name in more}
    world = {**plan.runs[0].world, **CALM, "kill_at": 0, "seed": plan.runs[0].world["seed"] + number, **more}
    calm = RunPlan(world, rules=(), peers=peers, seconds=1.0, operations=(), cut=cut)
    return replace(calm, **fields)


def world_of(plan: Plan, *runs: RunPlan, **settings: Any) -> Plan:
    """Return the plan with these runs before its last one."""
    last = replace(plan.runs[-1], world={**plan.runs[-1].world, **CALM, "steps_max": 500_000})
    known = {name: settings.pop(name) for name in ("ledger_directories", "journals") if name in settings}
    journal = {name: settings.pop(name) for name in tuple(settings) if name in plan.journal}
    return replace(
        plan,
        ledgers=tuple({*LEDGERS, *(ledger for run in runs for peer in run.peers for ledger in peer.ledgers)}),
        runs=(*runs, last),
        storage={**plan.storage, "keep_flushed": False, "index_slice_ledgers": 0, **settings},
        journal={**plan.journal, **journal},
        **known,
    )


def often(kind: str, seconds: float, times: int) -> tuple[Operation, ...]:
    """Return an operation that is carried out at equal intervals."""
    return tuple(Operation(int(seconds * S * (at + 1) / (times + 1)), kind) for at in range(times))
