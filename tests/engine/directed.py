"""Worlds that a planted bug is likely to show in: what a seed draws, with peers, faults and ends of one kind.

Each function returns the world that takes the place of the drawn one. Thread schedules, times, settings that are not
named here and what peers send still follow the seed.
"""

import random
from dataclasses import replace
from typing import Any

from bookie.storage.settings import MIB
from tests.engine.decay import Decay
from tests.engine.drafts import LEDGERS, LONG, MANY, NINE, SMALL, generator_of, often, peers_of, run_of, world_of
from tests.engine.plan import KIB, MS, Operation, Plan, Rule, S, hang
from tests.engine.runtime import Action, Op

__all__ = [
    "collected",
    "fenced",
    "fenced_twice",
    "flushed",
    "full",
    "full_journal",
    "full_log",
    "full_replay",
    "gaps",
    "killed",
    "late_directory",
    "logs_by_ledger",
    "long_ids",
    "many_files",
    "prompt",
    "rotting",
    "sealed",
    "sipping",
    "slow_readers",
    "stalled",
    "taken_over",
    "unreadable",
    "unreadable_index",
    "young",
    "zeroed",
]


def killed(plan: Plan) -> Plan:
    """Two runs full of adds, killed at any call, some after an error of the journal's disk; then the power fails."""
    rng = generator_of(plan)
    error = Rule((Op.SYNC,), ".txn", Action.EIO, rng.randrange(1, 20), 1)
    runs = [
        run_of(
            plan,
            number,
            peers_of(plan, number, "writer", "writer", "reader"),
            kill_at=int(10 ** rng.uniform(3, 4)),
            cut=rng.choice((-1, 0, 1)),
            preempt=rng.choice((10, 50, 300)),
            rules=(error,) if rng.random() < 0.3 else (),
        )
        for number in range(2)
    ]
    return world_of(plan, *runs)


def flushed(plan: Plan) -> Plan:
    """Checkpoints all the time beside adds, fences and reads; then a kill and a power cut, twice."""
    rng = generator_of(plan)
    runs = [
        run_of(
            plan,
            number,
            peers_of(plan, number, "writer", "writer", "fencer", "reader", "batch", pause_ns=1 * MS),
            kill_at=int(10 ** rng.uniform(3.4, 4.4)),
            cut=rng.choice((0, 1, 1)),
            operations=often("checkpoint", 1.0, 12),
        )
        for number in range(2)
    ]
    return world_of(plan, *runs, file_bytes_max=64 * KIB, **SMALL)


def collected(plan: Plan) -> Plan:
    """Small logs, a deleted ledger, and collection all the time beside adds and reads."""
    rng = generator_of(plan)
    runs = [
        run_of(
            plan,
            number,
            peers_of(plan, number, "writer", "writer", "fencer", "reader", pause_ns=1 * MS),
            kill_at=int(10 ** rng.uniform(4, 4.6)) if rng.random() < 0.7 else 0,
            cut=rng.choice((-1, 0, 1)),
            operations=(*often("collect", 0.6, 12), Operation(int(0.2 * S), "delete", LEDGERS[number])),
        )
        for number in range(2)
    ]
    return world_of(plan, *runs, file_bytes_max=64 * KIB, **SMALL)


def stalled(plan: Plan) -> Plan:
    """One of three ledger directories is on a disk whose calls take seconds, or a minute, or never return, while all
    of them collect and compact beside adds, fences and reads, at times without space, and until a kill.
    """
    rng, hanging = generator_of(plan), random.Random(f"hanging-{plan.seed}")
    roles = ("writer", "writer", "fencer", "reader", "batch")
    runs = []
    for number in range(2):
        deleted = rng.sample(NINE, 5)
        operations = [Operation(int(rng.uniform(0.1, 0.7) * S), "delete", ledger) for ledger in deleted]
        hangs, world = [hang(hanging, "ledgers-1/current")] * hanging.randrange(2), {}
        if rng.random() < 0.4:
            begin = int(rng.uniform(0.02, 0.5) * S)
            world = {"full_from": begin, "full_to": begin + int(rng.choice((0.1, 1, 10)) * S)}
        runs.append(
            run_of(
                plan,
                number,
                peers_of(plan, number, *roles, ledgers=NINE, requests=400, pause_ns=2 * MS),
                kill_at=int(10 ** rng.uniform(4, 4.8)) if rng.random() < 0.7 else 0,
                cut=rng.choice((-1, 0, 1)),
                preempt=rng.choice((0, 10, 50)),
                rules=(*(_stall(rng) for _ in range(rng.choice((1, 1, 2)))), *hangs),
                operations=(*often("collect", 0.9, 10), *often("checkpoint", 0.9, 3), *operations),
                **world,
            )
        )
    # The adds of a connection that find no room are refused one after the other, each after this time.
    small = {**SMALL, "write_cache_bytes": MIB, "throttle_ms_max": 100}
    return world_of(plan, *runs, ledger_directories=3, file_bytes_max=64 * KIB, **small)


def _stall(rng: random.Random) -> Rule:
    """Calls in the second ledger directory take up to seconds each, or one takes a minute, longer than most runs."""
    seconds, most = rng.choice(((0.05, 200), (1, 30), (5, 5), (60, 1)))
    ops = rng.choice(
        ((Op.SYNC,), (Op.WRITE,), (Op.READ,), (Op.UNLINK,), (Op.READ, Op.WRITE, Op.SYNC, Op.UNLINK, Op.OPEN))
    )
    part = "ledgers-1/current" + rng.choice(("", "", "/locations"))
    nth = int(10 ** rng.uniform(0, 2 if ops != (Op.UNLINK,) else 1))
    return Rule(ops, part, Action.STALL, nth, rng.randrange(1, most + 1), int(seconds * S))


def full(plan: Plan) -> Plan:
    """The disk has no space for a while, beside checkpoints; then a kill. The next start may find it full, too."""
    rng = generator_of(plan)
    begin = int(rng.uniform(0.02, 0.2) * S)
    world = {"full_from": begin, "full_to": begin + int(rng.uniform(0.05, 0.5) * S)}
    run = run_of(
        plan,
        0,
        peers_of(plan, 0, "writer", "writer", "fencer", "reader", pause_ns=1 * MS),
        operations=often("checkpoint", 0.8, 10),
        kill_at=int(10 ** rng.uniform(3.8, 4.5)) if rng.random() < 0.7 else 0,
        **world,
    )
    again = run_of(
        plan,
        1,
        peers_of(plan, 1, "writer", "reader", pause_ns=1 * MS),
        operations=often("checkpoint", 0.8, 10),
        kill_at=int(10 ** rng.uniform(3.8, 4.3)),
        full_from=0,
        full_to=int(rng.uniform(0.01, 0.4) * S),
    )
    return world_of(plan, run, again, ledger_directories=1, file_bytes_max=64 * KIB, **SMALL)


def late_directory(plan: Plan) -> Plan:
    """One of two ledger directories takes no flush for a while, so that the marks disagree; then a kill."""
    rng = generator_of(plan)
    rules = (Rule((Op.WRITE, Op.ALLOCATE, Op.OPEN), "ledgers-1/current", Action.ENOSPC, rng.randrange(20, 60), -1),)
    run = run_of(
        plan,
        0,
        peers_of(plan, 0, "writer", "writer", "reader", pause_ns=1 * MS),
        operations=often("checkpoint", 0.8, 10),
        kill_at=int(10 ** rng.uniform(4, 4.5)),
        rules=rules,
    )
    return world_of(plan, run, ledger_directories=2, file_bytes_max=64 * KIB, reuse_files=False, **SMALL)


def fenced(plan: Plan) -> Plan:
    """Peers fence ledgers while others write to them, and threads lose the processor at any call; then a kill."""
    rng = generator_of(plan)
    run = run_of(
        plan,
        0,
        (
            *peers_of(plan, 0, "writer", "writer", ledgers=MANY, window=40, requests=400),
            *peers_of(plan, 1, "fencer", "fencer", "fencer", ledgers=MANY, requests=150, window=4),
        ),
        preempt=rng.choice((5, 20, 100)),
        absent_ns=rng.choice((1, 10, 50)) * MS,
        disk_ns=2_000,
        sync_ns=50_000,
        kill_at=int(10 ** rng.uniform(2.8, 3.8)) if rng.random() < 0.5 else 0,
    )
    later = run_of(plan, 1, peers_of(plan, 2, "writer", ledgers=MANY))
    fast = replace(plan, network={**plan.network, "io_threads": 3})
    return world_of(fast, replace(run, cut=1 if run.world["kill_at"] else -1), later, group_wait_ms=0.0)


def slow_readers(plan: Plan) -> Plan:
    """Small caches turn over while peers with small socket buffers take their answers slowly."""
    rng = generator_of(plan)
    run = run_of(
        plan,
        0,
        (
            *peers_of(plan, 0, "writer", "writer", requests=300),
            *peers_of(plan, 1, "batch", "reader", "reader", "silent", requests=200, window=40),
        ),
        short_io=rng.choice((50, 500)),
        socket_bytes=4 * KIB,
        preempt=rng.choice((10, 50)),
        seconds=5.0,
    )
    again = replace(run, world={**run.world, "seed": run.world["seed"] + 1}, peers=run.peers[2:])
    caches = {
        "read_cache_bytes": 256 * KIB,
        "read_segment_bytes": 64 * KIB,
        "flush_interval_ms": 20,
        "write_cache_bytes": MIB,
        "readahead_bytes": 16 * KIB,
        "readahead_entries": 50,
    }
    return world_of(plan, run, again, **caches)


def unreadable(plan: Plan) -> Plan:
    """A second run has to read from disks that fail at times."""
    rng = generator_of(plan)
    write = run_of(plan, 0, peers_of(plan, 0, "writer", "writer"), operations=often("checkpoint", 0.5, 3))
    rules = (Rule((Op.READ,), rng.choice((".log", "data.mdb")), Action.EIO, rng.randrange(1, 30), rng.choice((1, -1))),)
    read = run_of(plan, 1, peers_of(plan, 1, "reader", "reader", "batch", requests=100), rules=rules)
    return world_of(plan, write, read)


def gaps(plan: Plan) -> Plan:
    """Peers that break off leave gaps in ledgers, which batches read from memory and, after a start, from disk."""
    rng = generator_of(plan)
    roles = ("rude", "rude", "rude", "fencer", "batch", "batch")
    runs = [
        run_of(plan, number, peers_of(plan, number, *roles, window=5), operations=often("checkpoint", 0.5, 3))
        for number in range(2)
    ]
    return world_of(plan, *runs, flush_interval_ms=rng.choice((20, 10_000)))


def young(plan: Plan) -> Plan:
    """The first start ends early: by a kill with a power cut, by a full disk, or by one error of the index."""
    rng = generator_of(plan)
    kind = rng.randrange(3)
    more: dict[str, Any] = {"kill_at": rng.randrange(20, 1500), "cut": rng.choice((0, 1, 2))}
    if kind == 1:
        more = {"full_from": 0, "full_to": int(rng.uniform(0.001, 0.05) * S)}
    elif kind == 2:
        rule = Rule((Op.WRITE,), "data.mdb", Action.EIO, rng.randrange(1, 8), 1)
        more = {"rules": (rule,), "operations": often("checkpoint", 0.5, 5)}
    return world_of(plan, run_of(plan, 0, peers_of(plan, 0, "writer"), seconds=0.5, **more))


def logs_by_ledger(plan: Plan) -> Plan:
    """Each ledger has an entry log of its own, and all of them share a buffer."""
    runs = [
        run_of(plan, number, peers_of(plan, number, "writer", "writer", pause_ns=1 * MS), cut=-1) for number in range(2)
    ]
    return world_of(
        plan, *runs, **{**SMALL, "log_per_ledger": True, "ledger_logs_max": 500, "log_bytes_max": 256 * KIB}
    )


def long_ids(plan: Plan) -> Plan:
    """The ids of some ledgers differ only above their low 32 bits."""
    runs = [
        run_of(
            plan,
            number,
            peers_of(plan, number, "writer", "writer", "reader", "reader", "batch", ledgers=LONG),
            operations=often("checkpoint", 0.5, 3),
        )
        for number in range(2)
    ]
    return replace(world_of(plan, *runs), ledgers=LONG)


def full_journal(plan: Plan) -> Plan:
    """The journal's disk has no space for some of its writes; a kill follows before anything was flushed."""
    rng = generator_of(plan)
    rules = (Rule((Op.WRITE,), ".txn", Action.ENOSPC, rng.randrange(3, 30), 50),)
    run = run_of(
        plan,
        0,
        peers_of(plan, 0, "writer", "writer", "reader", requests=1000),
        rules=rules,
        kill_at=int(10 ** rng.uniform(3.2, 3.9)),
    )
    return world_of(plan, run, flush_interval_ms=10_000, write_cache_bytes=8 * MIB)


def prompt(plan: Plan) -> Plan:
    """Nothing delays the bookie: no fault, no flush, a quick disk. Each request is answered soon."""
    rng = generator_of(plan)
    run = run_of(
        plan,
        0,
        peers_of(plan, 0, "writer", "writer", "writer", "reader", requests=100, window=rng.choice((2, 10))),
        disk_ns=2_000,
        sync_ns=50_000,
        preempt=rng.choice((0, 50)),
        prompt_ns=200 * MS,
    )
    return world_of(
        plan, run, flush_interval_ms=10_000, write_cache_bytes=8 * MIB, group_wait_ms=rng.choice((0.0, 1.0))
    )


def fenced_twice(plan: Plan) -> Plan:
    """Several peers fence the same ledgers at once; the power fails before the slow sync ends. Then others write."""
    rng = generator_of(plan)
    runs = [
        run_of(plan, 0, peers_of(plan, 0, "writer", "writer", requests=50)),
        run_of(
            plan,
            1,
            peers_of(plan, 1, *["recoverer"] * 6, requests=3, window=3),
            sync_ns=20 * MS,
            kill_at=rng.randrange(100, 2000),
            cut=1,
        ),
        run_of(plan, 2, peers_of(plan, 2, "writer", "writer")),
    ]
    return world_of(plan, *runs, group_wait_ms=0.0)


def full_log(plan: Plan) -> Plan:
    """Flushes go to one large entry log, for which the disk has no space now and then."""
    rng = generator_of(plan)
    rules = (Rule((Op.WRITE,), ".log", Action.ENOSPC, rng.randrange(2, 12), rng.randrange(1, 4)),)
    run = run_of(
        plan,
        0,
        peers_of(plan, 0, "writer", "writer", "reader", "reader", pause_ns=1 * MS),
        operations=often("checkpoint", 0.6, 10),
        rules=rules,
    )
    large = {**SMALL, "log_bytes_max": 4096 * KIB}
    return world_of(plan, run, ledger_directories=1, **large)


def sipping(plan: Plan) -> Plan:
    """Peers take responses from the write cache slowly, or never, while both of its halves are filled and flushed."""
    rng = generator_of(plan)
    slow = ("silent", "silent", "reader", "batch") if plan.seed % 2 else ("reader", "batch", "reader", "batch")
    asking: dict[str, Any] = {
        "requests": 60,
        "window": 20,
        "sip_bytes": rng.choice((500, 3000)),
        "pause_ns": rng.choice((0, 20 * MS)),
    }
    run = run_of(
        plan,
        0,
        (
            *peers_of(plan, 0, "writer", "writer", requests=600, window=10, pause_ns=2 * MS),
            *peers_of(plan, 1, *slow, **asking),
        ),
        socket_bytes=4 * KIB,
        preempt=rng.choice((10, 50)),
        seconds=5.0,
    )
    return world_of(
        plan, run, flush_interval_ms=rng.choice((50, 200)), write_cache_bytes=MIB, read_cache_bytes=256 * KIB
    )


def unreadable_index(plan: Plan) -> Plan:
    """A second run cannot read some pages of the index."""
    rng = generator_of(plan)
    write = run_of(plan, 0, peers_of(plan, 0, "writer", "writer"), operations=often("checkpoint", 0.5, 3))
    rules = (Rule((Op.READ,), "data.mdb", Action.EIO, rng.randrange(5, 80), rng.randrange(1, 20)),)
    read = run_of(plan, 1, peers_of(plan, 1, "reader", "recoverer", "reader", "batch", requests=100), rules=rules)
    return world_of(plan, write, read)


def rotting(plan: Plan) -> Plan:
    """The index rots before each run but the first, or loses or misplaces writes during it."""
    rng = generator_of(plan)
    runs = []
    for number, run in enumerate(plan.runs):
        if number and rng.random() < 0.5:
            decay = Decay(rng.choice(("flip", "flip", "zero", "noise", "swap")), "data.mdb", rng.getrandbits(40))
            runs.append(replace(run, decays=(*run.decays, decay)))
        else:
            action, nth = rng.choice((Action.LOST, Action.ASTRAY)), int(10 ** rng.uniform(0, 2))
            runs.append(
                replace(run, rules=(*run.rules, Rule((Op.WRITE,), "locations", action, nth, rng.choice((1, 5)))))
            )
    return replace(plan, runs=tuple(runs))


def zeroed(plan: Plan) -> Plan:
    """Groups in a large journal file overtake the zeros that are written ahead of them; then a kill."""
    rng = generator_of(plan)
    run = run_of(
        plan,
        0,
        peers_of(plan, 0, "writer", "writer", "writer", requests=500, window=60),
        preempt=rng.choice((5, 20)),
        absent_ns=rng.choice((20, 100)) * MS,
        disk_ns=2_000,
        sync_ns=50_000,
        kill_at=int(10 ** rng.uniform(3.4, 4.1)),
    )
    sizes = {"prealloc_bytes": MIB, "file_bytes_max": 16 * MIB, "reuse_files": False}
    return world_of(plan, run, flush_interval_ms=10_000, write_cache_bytes=8 * MIB, **sizes)


def many_files(plan: Plan) -> Plan:
    """Several small journal files hold what no flush has stored yet when the bookie is killed."""
    rng = generator_of(plan)
    run = run_of(plan, 0, peers_of(plan, 0, "writer", "writer", "reader"), kill_at=int(10 ** rng.uniform(3.5, 4)))
    return world_of(plan, run, file_bytes_max=64 * KIB, flush_interval_ms=10_000, write_cache_bytes=8 * MIB)


def full_replay(plan: Plan) -> Plan:
    """A start has no space for entry logs, and more in the journal than its write cache holds; then there is room."""
    rng = generator_of(plan)
    rules = (Rule((Op.WRITE, Op.ALLOCATE), ".log", Action.ENOSPC, 1, rng.randrange(3, 40)),)
    write = run_of(
        plan, 0, peers_of(plan, 0, *["writer"] * 3, requests=300, window=40), kill_at=rng.randrange(6000, 15_000)
    )
    again = run_of(
        plan,
        1,
        peers_of(plan, 1, "reader", "reader", requests=50, pause_ns=5 * MS),
        rules=rules,
        operations=often("checkpoint", 0.6, 12),
        changes={"write_cache_bytes": MIB},
        kill_at=int(10 ** rng.uniform(3.8, 4.5)),
    )
    return world_of(plan, write, again, flush_interval_ms=10_000, write_cache_bytes=8 * MIB)


def taken_over(plan: Plan) -> Plan:
    """The first start takes over the disks of a Java bookie, and dies in it; others write and fence afterwards."""
    rng = generator_of(plan)
    first = run_of(plan, 0, (), kill_at=int(10 ** rng.uniform(2, 3.3)), cut=rng.choice((-1, 0, 1)))
    later = run_of(plan, 1, peers_of(plan, 1, "writer", "writer", "reader", "fencer"))
    return replace(world_of(plan, first, later, ledger_directories=1, journals=1), taken_over=True)


def sealed(plan: Plan) -> Plan:
    """All peers use TLS, and some take little at a time."""
    rng = generator_of(plan)
    peers = peers_of(plan, 0, "writer", "writer", "reader", "batch", sealed=True, sip_bytes=rng.choice((0, 0, 1000)))
    run = run_of(plan, 0, peers, short_io=rng.choice((0, 50, 500)), socket_bytes=rng.choice((4, 64)) * KIB)
    return world_of(plan, run)
