"""Hardships that some worlds have besides those of `plan`: disks that lie or decay, jumping clocks, peers that no sane
client resembles, changed settings, mostly dead entry logs, TLS, and the disks of a Java bookie. Values only.

They are drawn by a generator of their own, so that a world without them stays the world that it was.
"""

import random
from dataclasses import replace

from bookie.storage.settings import MIB
from tests.engine.decay import Decay
from tests.engine.plan import KIB, MS, Operation, PeerPlan, Plan, Rule, RunPlan, S, draw_plan, hang
from tests.engine.runtime import Action, Op

__all__ = ["draw_world"]

RAW = ("wild", "flood")
"""Roles that do not look at answers, and so could not shake hands."""
FILES = (".txn", ".txn", ".log", ".log", "locations", "locations", "lastMark", "")
NAMES = (".txn", ".log", "data.mdb", "data.mdb", "lastMark", "DIRTY", "")
CHANGES = {
    "write_cache_bytes": (1024 * KIB, 2048 * KIB, 8192 * KIB),
    "read_cache_bytes": (256 * KIB, 1024 * KIB),
    "readahead_entries": (1, 10, 50),
    "flush_interval_ms": (20, 200, 10_000),
    "read_threads": (1, 3),
    "log_bytes_max": (16 * KIB, 64 * KIB, 4096 * KIB),
    "open_logs_max": (4, 256),
    "log_per_ledger": (False, True),
    "ledger_logs_max": (2, 500),
    "index_map_bytes": (64 << 20, 96 << 20),
    "file_bytes_max": (64 * KIB, 1024 * KIB),
    "prealloc_bytes": (16 * KIB, 256 * KIB),
    "buffer_bytes": (2048 * KIB, 4096 * KIB),
    "backups_max": (0, 2),
    "group_wait_ms": (0.0, 20.0),
    "reuse_files": (False, True),
    "alignment_bytes": (512, 4096),
}


def draw_world(seed: int) -> Plan:
    """Return the world of a seed."""
    plan = draw_plan(seed)
    rng = random.Random(f"hardships-{seed}")
    if rng.random() < 0.5:
        least = (16 if plan.network["frame_bytes_max"] > MIB else 8) * MIB
        plan = replace(plan, network=plan.network | {"input_bytes_max": least, "output_bytes_max": least})
    runs = list(plan.runs)
    for share, hardship in ((0.2, _jump), (0.25, _peers), (0.2, _changes), (0.15, _churn), (0.25, _lies)):
        if rng.random() < share:
            hardship(rng, runs, plan)
    if rng.random() < 0.15:
        _seal(rng, runs)
    _other_loops(random.Random(f"loops-{seed}"), runs)
    _hang(random.Random(f"hangs-{seed}"), runs, plan)
    plan = replace(plan, runs=tuple(runs))
    return _taken_over(rng, plan) if rng.random() < 0.1 else plan


def _seal(rng: random.Random, runs: list[RunPlan]) -> None:
    """Half of the peers use START_TLS before anything else."""
    for at, run in enumerate(runs):
        sealed = {peer for peer in run.peers if rng.random() < 0.5 and peer.role not in RAW}
        runs[at] = replace(run, peers=tuple(replace(peer, sealed=peer in sealed) for peer in run.peers))


def _taken_over(rng: random.Random, plan: Plan) -> Plan:
    """The disks were those of a Java bookie, with one ledger directory and one journal.

    The first start, which takes them over, is killed at times.
    """
    first = plan.runs[0]
    if rng.random() < 0.6:
        kill = int(10 ** rng.uniform(1.5, 3.3))
        first = replace(first, world=first.world | {"kill_at": kill}, cut=rng.choice((-1, 0, 0, 1, 2, 3)))
    return replace(plan, runs=(first, *plan.runs[1:]), ledger_directories=1, journals=1, taken_over=True)


def _some_run(rng: random.Random, runs: list[RunPlan]) -> int:
    """Return the number of a run that is not the last."""
    return rng.randrange(len(runs) - 1)


def _jump(rng: random.Random, runs: list[RunPlan], _plan: Plan) -> None:
    """The wall clock is set, forward or back, once or in several runs."""
    for at in {_some_run(rng, runs) for _ in range(2)}:
        jump = rng.choice((-1, 1)) * int(10 ** rng.uniform(6, 17))  # from a millisecond to three years
        runs[at] = replace(runs[at], world=runs[at].world | {"jump_at": rng.randrange(1, 5000), "jump_ns": jump})


def _peers(rng: random.Random, runs: list[RunPlan], plan: Plan) -> None:
    for number in range(rng.randrange(1, 4)):
        at = _some_run(rng, runs)
        role = rng.choice(("wild", "wild", "flood", "reader", "batch"))
        peer = PeerPlan(
            role,
            f"hard-{plan.seed}-{number}",
            plan.ledgers,
            int(rng.uniform(0, 0.1) * S),
            rng.choice((5, 50)),
            rng.choice((1, 5, 40)),
            rng.choice((0, 1 * MS)),
            rng.random() < 0.4,
            0 if role in ("wild", "flood") else rng.choice((1, 50, 1000)),
        )
        runs[at] = replace(runs[at], peers=(*runs[at].peers, peer))


def _changes(rng: random.Random, runs: list[RunPlan], _plan: Plan) -> None:
    """The operator changes settings while the bookie is down."""
    for at in range(1, len(runs)):
        names = rng.sample(sorted(CHANGES), rng.randrange(0, 5))
        runs[at] = replace(runs[at], changes={name: rng.choice(CHANGES[name]) for name in names})


def _other_loops(rng: random.Random, runs: list[RunPlan]) -> None:
    """The number of I/O loops changes as well, where the operator changes settings."""
    for at, run in enumerate(runs):
        if run.changes and rng.random() < 0.3:
            runs[at] = replace(run, changes=run.changes | {"io_threads": rng.choice((1, 2, 3))})


def _hang(rng: random.Random, runs: list[RunPlan], plan: Plan) -> None:
    """A ledger directory stops answering for good, in one world of thirty, until the process is killed.

    Adds that find no room for them wait only shortly, because those of a connection are refused one after the other.
    """
    if rng.random() >= 1 / 30:
        return
    at = _some_run(rng, runs)
    rule = hang(rng, f"ledgers-{rng.randrange(plan.ledger_directories)}/current")
    changes = runs[at].changes | {"throttle_ms_max": 100}
    runs[at] = replace(runs[at], rules=(*runs[at].rules, rule), changes=changes, cut=rng.choice((-1, 0, 1)))


def _churn(rng: random.Random, runs: list[RunPlan], plan: Plan) -> None:
    """Half of the ledgers are deleted after they were written to, so that the logs that they share are compacted.

    The bookie lives long enough for that, or is killed in the middle of it.
    """
    if len(plan.ledgers) < 2:
        return
    shared = {"log_bytes_max": 16 * KIB, "flush_interval_ms": 20, "log_per_ledger": False}
    dying = rng.sample(plan.ledgers, len(plan.ledgers) // 2)
    at = _some_run(rng, runs)
    seconds = max(runs[at].seconds, 1.0)
    first, last = 0.3 * seconds, 0.9 * seconds
    operations = [Operation(int(first * S), "checkpoint")]
    operations += [Operation(int(rng.uniform(first, last) * S), "delete", ledger) for ledger in dying]
    operations += [
        Operation(int(rng.uniform(first, last) * S), rng.choice(("collect", "checkpoint"))) for _ in range(4)
    ]
    operations.append(Operation(int(last * S), "collect"))
    writers = tuple(
        PeerPlan("writer", f"churn-{plan.seed}-{number}", plan.ledgers, 0, 200, 40, rng.choice((0, 1 * MS)), number > 0)
        for number in range(2)
    )
    kill = int(10 ** rng.uniform(3.5, 4.8)) if rng.random() < 0.4 else 0
    runs[at] = replace(
        runs[at],
        world=runs[at].world | {"kill_at": kill},
        peers=(*runs[at].peers, *writers),
        seconds=seconds,
        operations=(*runs[at].operations, *operations),
        changes=runs[at].changes | shared,
        lasts=True,
    )


def _lies(rng: random.Random, runs: list[RunPlan], plan: Plan) -> None:
    """The disk loses or misplaces writes, lies about syncs, misreads or rots, or a directory becomes an older one."""
    kind = rng.choice(("write", "write", "sync", "read", "rot", "rot", "back"))
    at = _some_run(rng, runs)
    run = runs[at]
    nth = int(10 ** rng.uniform(0, 2.5))
    if kind == "write":
        action = rng.choice((Action.LOST, Action.ASTRAY))
        rule = Rule((Op.WRITE,), rng.choice(FILES), action, nth, rng.choice((1, 5)))
        runs[at] = replace(run, rules=(*run.rules, rule))
    elif kind == "sync":
        world = run.world | {"kill_at": run.world["kill_at"] or int(10 ** rng.uniform(2, 4))}
        rule = Rule((Op.SYNC,), rng.choice(FILES), Action.LOST, nth, rng.choice((1, -1)))
        runs[at] = replace(run, world=world, rules=(*run.rules, rule), cut=rng.choice((0, 1)))
    elif kind == "read":
        rule = Rule((Op.READ,), rng.choice(FILES), Action.ROT, nth, rng.choice((1, 20)))
        runs[at] = replace(run, rules=(*run.rules, rule))
    elif kind == "rot":
        decays = tuple(
            Decay(rng.choice(("flip", "flip", "zero", "noise", "swap")), rng.choice(NAMES), rng.getrandbits(40))
            for _ in range(rng.choice((1, 1, 3)))
        )
        runs[at + 1] = replace(runs[at + 1], decays=decays)
    else:
        places = [f"ledgers-{i}" for i in range(plan.ledger_directories)]
        name = rng.choice(places + [f"journal-{i}" for i in range(plan.journals)])
        back = rng.randrange(at + 1, len(runs))
        for number, what in ((at, "save"), (back, "back")):
            decays = (*runs[number].decays, Decay(what, name, 0))
            runs[number] = replace(runs[number], decays=decays)
