"""What is drawn for a cluster's world: the parameters of tests/sim, and those that only whole clusters have."""

import random
from dataclasses import dataclass, field, fields, replace

from bookie.client.replication.settings import RecoverySettings
from tests.engine.plan import Plan, draw_plan
from tests.engine.runtime import NEVER
from tests.sim.draw import Draw

__all__ = ["ClusterDraw", "engine_plan", "upgraded", "world_settings"]

BOOKIES_MAX = 7
CHECKPOINTS = 8
TIMEOUT_S_MAX = 20.0


@dataclass(frozen=True, slots=True)
class ClusterDraw(Draw):
    """The parameters of one world."""

    session_s: float = 1.0
    """The session timeout of bookies and clients, in simulated seconds."""
    recoveries: int = 0
    """How many processes run auto-recovery: each stands for auditor, and has a replication worker."""
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    v2_share: float = 0.0
    """How many of the clients speak V2."""
    cancels: int = 0
    """Whether calls of clients are cancelled and made again; and how many more clients follow the ledger."""
    fault_kinds: tuple[str, ...] = ()
    """The faults of the world, instead of some that are drawn."""

    @classmethod
    def of(cls, rng: random.Random) -> "ClusterDraw":
        draw = Draw.of(rng)
        while draw.bookies > BOOKIES_MAX:
            draw = Draw.of(rng)
        timeout = min(max(draw.config.add_timeout_s, 0.05), TIMEOUT_S_MAX)
        # One way to the store takes up to twice `store_s`. No call would arrive within a shorter session.
        session_s = max(rng.choice((0.2, 0.5, 2.0)), 2 * draw.store_s)
        recoveries = rng.choice((0, 0, 1, 2))
        # A bookie is lost only after its session, and then another one must take its place.
        lasts_s = max(draw.lasts_s, 0.2, 5 * session_s if recoveries else 0.0)
        bookies = max(draw.bookies, draw.sizes[0] + bool(recoveries))
        config = replace(
            draw.config,
            add_timeout_s=timeout,
            read_timeout_s=timeout * rng.choice((0.5, 1, 3)),
            connect_timeout_s=timeout * 2,
            session_timeout_s=session_s,
        )
        known = {one.name: getattr(draw, one.name) for one in fields(Draw)}
        known |= {"entries": rng.choice((5, 20, 60)), "lasts_s": lasts_s, "config": config}
        known |= {"bookies": bookies, "replicator": False, "direct_s": 0.0}
        return cls(
            **known,
            session_s=session_s,
            recoveries=recoveries,
            recovery=RecoverySettings(
                lost_bookie_delay_s=rng.choice((0, 0, 1)),
                check_interval_s=rng.choice((0.0, lasts_s / 2)),
                bookie_check_interval_s=lasts_s,
                open_ledger_grace_s=lasts_s / 4,
                failed_ledger_hold_s=lasts_s / 4,
                backoff_s=lasts_s / 40,
            ),
            v2_share=rng.choice((0.0, 0.0, 0.3)),
            cancels=rng.choice((0, 0, 1)),
        )


def engine_plan(seed: int, draw: Draw) -> Plan:
    """Return the settings of the bookies. Groups do not wait, since the clients' timeouts can be short.

    Checkpoints are eight in the time of the faults at most, because each takes many steps of all shards.
    """
    plan = draw_plan(seed)
    flush_ms = max(plan.storage["flush_interval_ms"], int(draw.lasts_s * 1000 / CHECKPOINTS))
    return replace(
        plan,
        journal={**plan.journal, "group_wait_ms": 0.0},
        storage={**plan.storage, "flush_interval_ms": flush_ms},
    )


def upgraded(plan: Plan, seed: int, draw: Draw) -> Plan:
    """Return other settings for the same directories, as an upgrade may bring them."""
    other = engine_plan(seed, draw)
    network = {**other.network, "frame_bytes_max": plan.network["frame_bytes_max"]}
    return replace(plan, network=network, storage=other.storage, journal=other.journal)


def world_settings(rng: random.Random, draw: Draw) -> dict[str, int]:
    """Return the fields of `runtime.Settings`."""
    return {
        "seed": rng.getrandbits(63),
        "kill_at": 0,
        "steps_max": NEVER,
        "preempt": rng.choice((0, 10, 100)),
        "priorities": 0,
        "spurious": 0,
        "disk_ns": rng.choice((2_000, 50_000)),
        "sync_ns": max(1000, int(rng.uniform(*draw.sync_s) * 1e9)),
        "short_io": rng.choice((0, 0, 100)),
        "socket_bytes": rng.choice((4, 64)) << 10,
        "pause_at": 0,
        "pause_ns": 0,
        "pause_all": 0,
        "full_from": NEVER,
        "full_to": NEVER,
        "traced": 0,
    }
