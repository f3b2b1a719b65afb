"""Worlds in which the disk of one directory, of several, answers nothing more from some call on, until a kill.

Some peers ask only for what lies on the other disks: they must not notice it.
"""

from dataclasses import replace

from bookie.storage.settings import MIB
from tests.engine.drafts import SMALL, generator_of, often, peers_of, run_of, world_of
from tests.engine.plan import KIB, MS, PeerPlan, Plan, S, hang

__all__ = ["hung"]

LEDGERS = tuple(range(1, 13))
DIRECTORIES, JOURNALS = 3, 2
ROLES = ("writer", "writer", "reader", "batch")


def hung(plan: Plan) -> Plan:
    """The second ledger directory or the second journal hangs, beside adds, reads, collection and checkpoints."""
    rng = generator_of(plan)
    journal = rng.random() < 0.5
    place = "journal-1" if journal else "ledgers-1/current"
    free = tuple(ledger for ledger in LEDGERS if ledger % (JOURNALS if journal else DIRECTORIES) != 1)
    runs = []
    for number in range(2):
        window = rng.choice((1, 20, 100))
        fencers = peers_of(plan, number + 20, "fencer", ledgers=tuple({*LEDGERS} - {*free}), pause_ns=5 * MS)
        others = peers_of(plan, number, *ROLES, ledgers=LEDGERS, requests=300, pause_ns=2 * MS)
        spared = peers_of(plan, number + 10, *ROLES, ledgers=free, requests=600, window=window)
        runs.append(
            run_of(
                plan,
                number,
                (*others, *fencers, *(_free(peer, rng.choice((0, 1, 5)) * MS) for peer in spared)),
                cut=rng.choice((-1, 0, 1)),
                preempt=rng.choice((0, 10, 50)),
                rules=(hang(rng, place),),
                operations=(*often("collect", 0.9, 5), *often("checkpoint", 0.9, 3)),
                prompt_ns=5 * S,
                **({"sync_ns": rng.choice((1, 10)) * MS} if journal else {}),
            )
        )
    small = {**SMALL, "write_cache_bytes": 3 * MIB, "throttle_ms_max": 10_000}
    return world_of(plan, *runs, ledger_directories=DIRECTORIES, journals=JOURNALS, file_bytes_max=64 * KIB, **small)


def _free(peer: PeerPlan, pause_ns: int) -> PeerPlan:
    return replace(peer, free=True, pause_ns=pause_ns)
