"""Worlds in which a damaged index is repaired beside flushes, deletion, collection and compaction (decision 0015)."""

from typing import Any

from bookie.storage.settings import MIB
from tests.engine.decay import Decay
from tests.engine.drafts import NINE, SMALL, generator_of, often, peers_of, run_of, world_of
from tests.engine.plan import KIB, MS, Operation, Plan, Rule, S
from tests.engine.runtime import Action, Op

__all__ = ["mended"]


def mended(plan: Plan) -> Plan:
    """The index rots, while the bookie is down or serves, or is misread, in each of two runs, and the disk is full at
    times; then a kill. The second start flushes what the first run wrote, so no misreading makes it uncertain.
    """
    rng = generator_of(plan)
    writers = peers_of(plan, 0, "writer", "writer", ledgers=NINE, requests=300)
    runs = [run_of(plan, 0, writers, operations=often("checkpoint", 0.9, 4)), run_of(plan, 1, (), seconds=0.01)]
    for number in (2, 3):
        more: dict[str, Any] = {}
        if rng.random() < 0.6:
            kinds = [rng.choice(("flip", "zero", "zero", "noise", "swap")) for _ in range(rng.choice((1, 1, 2)))]
            more["decays"] = tuple(Decay(kind, "data.mdb", rng.getrandbits(40)) for kind in kinds)
        else:
            (op, times), rules = rng.choice(((Op.READ, 3), (Op.WRITE, 1), (Op.WRITE, 1))), rng.randrange(1, 5)
            more["rules"] = tuple(
                Rule((op,), "data.mdb", Action.ROT, int(10 ** rng.uniform(0.5, 2.5)), times) for _ in range(rules)
            )
        if rng.random() < 0.5:  # so that compaction takes time
            slow = Rule((Op.READ, Op.SYNC), ".log", Action.STALL, rng.randrange(1, 60), 300, rng.choice((2, 10)) * MS)
            more["rules"] = (*more.get("rules", ()), slow)
        if rng.random() < 0.4:
            begin = int(rng.uniform(0.02, 0.5) * S)
            more |= {"full_from": begin, "full_to": begin + int(rng.choice((0.05, 0.2, 1)) * S)}
        roles = ("writer", "writer", "fencer", "reader", "batch")
        deletions = (Operation(int(rng.uniform(0.01, 0.7) * S), "delete", ledger) for ledger in rng.sample(NINE, 3))
        runs.append(
            run_of(
                plan,
                number,
                peers_of(plan, number, *roles, ledgers=NINE, requests=400, pause_ns=2 * MS),
                kill_at=int(10 ** rng.uniform(4, 4.8)) if rng.random() < 0.5 else 0,
                cut=rng.choice((-1, 0, 1)),
                preempt=rng.choice((0, 10, 50, 300)),
                operations=(*often("collect", 0.9, 10), *often("checkpoint", 0.9, 3), *deletions),
                **more,
            )
        )
    small = {**SMALL, "write_cache_bytes": MIB, "index_slice_ledgers": rng.choice((0, 0, 1))}
    return world_of(plan, *runs, ledger_directories=1, file_bytes_max=64 * KIB, **small)
