"""Worlds in which the runs of most flushes wait for the index (store.index_slices)."""

from typing import Any

from bookie.storage.settings import MIB
from tests.engine.drafts import MANY, generator_of, often, peers_of, run_of, world_of
from tests.engine.plan import KIB, MS, Operation, Plan, S

__all__ = ["sliced"]


def sliced(plan: Plan) -> Plan:
    """Flushes for room, beside adds, reads, deletions and collection, at times without space; then a kill."""
    rng = generator_of(plan)
    runs = []
    for number in range(2):
        deleted = rng.sample(MANY, 6)
        world: dict[str, Any] = {}
        if rng.random() < 0.5:
            begin = int(rng.uniform(0.02, 0.5) * S)
            world = {"full_from": begin, "full_to": begin + int(rng.choice((0.05, 0.2, 1)) * S)}
        peers = ("writer", "writer", "writer", "fencer", "reader", "batch", "reader")
        runs.append(
            run_of(
                plan,
                number,
                peers_of(plan, number, *peers, ledgers=MANY, requests=600, pause_ns=rng.choice((0, 1, 2)) * MS),
                kill_at=int(10 ** rng.uniform(3.8, 4.8)) if rng.random() < 0.8 else 0,
                cut=rng.choice((-1, 0, 1)),
                preempt=rng.choice((0, 10, 50)),
                operations=(
                    *often("collect", 0.9, rng.choice((0, 3, 10))),
                    *often("checkpoint", 0.9, rng.choice((0, 0, 3))),
                    *(Operation(int(rng.uniform(0.1, 0.7) * S), "delete", ledger) for ledger in deleted),
                ),
                **world,
            )
        )
    settings = {"flush_interval_ms": rng.choice((500, 10_000)), "log_bytes_max": rng.choice((16, 64)) * KIB}
    caches = {"write_cache_bytes": rng.choice((1, 1, 2)) * MIB, "read_cache_bytes": 256 * KIB}
    kept = {"keep_flushed": rng.random() < 0.3, "index_slice_ledgers": 1, "log_per_ledger": rng.random() < 0.2}
    directories = rng.choice((1, 1, 2))
    pages = {"index_leaves": rng.choice((1, 1 << 13))}
    return world_of(plan, *runs, ledger_directories=directories, **settings, **caches, **kept, **pages)
