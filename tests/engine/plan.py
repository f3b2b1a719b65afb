"""What a seed stands for: the bookie's settings, and for each run the faults, the peers and the end. Values only."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from bookie._fast.base.bounds import half_entry_bytes
from bookie.storage.settings import MIB
from tests.engine.decay import Decay
from tests.engine.runtime import NEVER, Action, Op

__all__ = ["draw_plan", "hang", "Operation", "PeerPlan", "Plan", "Rule", "RunPlan"]

KIB = 1 << 10
MS = 1_000_000
S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """`times` calls of `ops` on paths that contain `part` meet an action, beginning with the `nth`.

    A stall for `NEVER` ends with the process only. It counts the calls since the start, which it does not meet.
    """

    ops: tuple[Op, ...]
    part: str
    action: Action
    nth: int
    times: int
    argument: int = 0

    @property
    def hangs(self) -> bool:
        """Whether the calls never return."""
        return self.action is Action.STALL and self.argument == NEVER


@dataclass(frozen=True, slots=True)
class PeerPlan:
    """One connection after the other, with requests of one kind, from `begin_ns` of the run on."""

    role: str
    seed: str
    ledgers: tuple[int, ...]
    begin_ns: int
    requests: int
    window: int
    pause_ns: int
    v3: bool
    sip_bytes: int = 0
    """How much the peer reads at a time, with pauses; 0 for everything at once."""
    sealed: bool = False
    """Whether its connections begin with START_TLS, and what follows is encrypted."""
    free: bool = False
    """Whether nothing that it asks for needs a disk that hangs: it must be answered soon, and not be refused."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What the operator does at a time of a run: checkpoint, delete, collect, read_only or writable."""

    at_ns: int
    kind: str
    ledger: int = -1


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One life of the bookie. `world` are the fields of `runtime.Settings`; `kill_at` there ends it early.

    `cut` is how the power fails after it: -1 for not at all, else the mode of `disk_cut`. `decays` happen before it,
    and `changes` are settings that differ from then on.
    """

    world: dict[str, int]
    rules: tuple[Rule, ...]
    peers: tuple[PeerPlan, ...]
    seconds: float
    operations: tuple[Operation, ...]
    cut: int
    verify: bool = False
    decays: tuple[Decay, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    lasts: bool = False
    """Whether the run goes on for its whole time, although no peer has anything left to ask."""
    prompt_ns: int = NEVER
    """How long a request may wait at most in this run, in which nothing keeps the bookie from an answer."""

    @property
    def hangs(self) -> bool:
        """Whether a disk stops answering in it, so that only a kill can end it."""
        return any(rule.hangs for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Plan:
    """A world: settings that stay, and its runs. The last run has no faults and reads everything back."""

    seed: int
    network: dict[str, Any] = field(default_factory=dict)
    storage: dict[str, Any] = field(default_factory=dict)
    journal: dict[str, Any] = field(default_factory=dict)
    ledgers: tuple[int, ...] = ()
    ledger_directories: int = 1
    journals: int = 1
    runs: tuple[RunPlan, ...] = ()
    planted: tuple[Rule, ...] = ()
    """A planted bug: rules of every run that excuse nothing."""
    taken_over: bool = False
    """Whether the disks are those of a Java bookie at first."""

    @property
    def payload_bytes_max(self) -> int:
        """The longest payload of an entry: one that a frame takes, and half of each directory's write cache.

        A bookie refuses to start with a larger frame (docs/limits.md); worlds need larger ones to be hostile.
        """
        settings = [self.storage, *(run.changes for run in self.runs)]
        caches = [one["write_cache_bytes"] for one in settings if "write_cache_bytes" in one]
        fits = [half_entry_bytes(cache // self.ledger_directories) for cache in caches]
        most: int = min([self.network["frame_bytes_max"], *fits])
        return most - 200

    @property
    def sealed(self) -> bool:
        """Whether some peer uses TLS, so that the bookie offers it."""
        return any(peer.sealed for run in self.runs for peer in run.peers)

    def at(self, number: int) -> "Plan":
        """Return the plan with the settings of a run."""
        storage, journal, network = dict(self.storage), dict(self.journal), dict(self.network)
        for run in self.runs[: number + 1]:
            for name, value in run.changes.items():
                (storage if name in storage else network if name in network else journal)[name] = value
        return replace(self, storage=storage, journal=journal, network=network)


def draw_plan(seed: int) -> Plan:
    """Return the world of a seed."""
    rng = random.Random(f"world-{seed}")
    ledgers = _ledgers(rng)
    runs = [_run(rng, seed, number, ledgers) for number in range(rng.choice((1, 2, 2, 3, 4)))]
    runs.append(_last_run(rng, seed, len(runs)))
    return Plan(
        seed,
        network=_network(rng),
        storage={
            **_storage(rng),
            "keep_flushed": random.Random(f"kept-{seed}").random() < 0.5,
            "index_slice_ledgers": random.Random(f"slices-{seed}").choice((0, 1, 1, 2, 1000)),
        },
        journal=_journal(rng),
        ledgers=ledgers,
        ledger_directories=rng.choice((1, 1, 2, 3)),
        journals=rng.choice((1, 1, 2)),
        runs=tuple(runs),
    )


def _ledgers(rng: random.Random) -> tuple[int, ...]:
    extreme = (0, (1 << 63) - 1, (1 << 31) - 1, 1 << 32)
    ids = {rng.choice(extreme) if rng.random() < 0.1 else rng.randrange(1, 1000) for _ in range(rng.randrange(1, 6))}
    return tuple(sorted(ids))


def _network(rng: random.Random) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": 0,
        "io_threads": rng.choice((1, 2, 2, 3)),
        "policy_threads": 1,
        "connections_per_address_max": 0,
        "frame_bytes_max": rng.choice((64 * KIB, 256 * KIB, 5 * MIB)),
    }


def _storage(rng: random.Random) -> dict[str, Any]:
    per_ledger = rng.random() < 0.25
    return {
        "write_cache_bytes": rng.choice((1, 2, 8)) * MIB,
        "read_cache_bytes": rng.choice((256, 1024)) * KIB,
        "read_segment_bytes": rng.choice((64, 128)) * KIB,
        "uncached_read_bytes": rng.choice((1, 16)) * MIB,
        "readahead_entries": rng.choice((1, 10, 50)),
        "readahead_bytes": rng.choice((1, 16, 64)) * KIB,
        "reread_table_bytes": 64 * KIB,
        "flush_interval_ms": rng.choice((20, 200, 10_000)),
        "read_threads": rng.choice((1, 2, 3)),
        "log_bytes_max": rng.choice((16, 64, 256, 4096)) * KIB,
        "open_logs_max": rng.choice((4, 256)),
        "log_per_ledger": per_ledger,
        "ledger_logs_max": rng.choice((2, 500)),
        "index_map_bytes": 64 * MIB,
        "throttle_ms_max": rng.choice((100, 10_000)),
    }


def _journal(rng: random.Random) -> dict[str, Any]:
    return {
        "file_bytes_max": rng.choice((64, 256, 1024)) * KIB,
        "prealloc_bytes": rng.choice((16, 64, 256)) * KIB,
        "buffer_bytes": rng.choice((2, 4)) * MIB,
        "backups_max": rng.choice((0, 0, 2)),
        "group_wait_ms": rng.choice((0.0, 1.0, 20.0)),
        "group_bytes": rng.choice((1 << 10, 512 << 10)),
        "flush_when_empty": rng.random() < 0.5,
        "reuse_files": rng.random() < 0.7,
        "alignment_bytes": rng.choice((512, 4096)),
    }


def _world(rng: random.Random, seed: int, number: int) -> dict[str, int]:
    return {
        "seed": random.Random(f"threads-{seed}-{number}").getrandbits(63),
        "kill_at": 0,
        "steps_max": 4_000_000,
        "preempt": rng.choice((0, 10, 50, 300)),
        "priorities": int(rng.random() < 0.3),
        "spurious": rng.choice((0, 0, 20)),
        "disk_ns": rng.choice((2_000, 20_000, 200_000)),
        "sync_ns": rng.choice((50_000, 1 * MS, 10 * MS)),
        "short_io": rng.choice((0, 0, 50, 500)),
        "socket_bytes": rng.choice((4, 64, 256)) * KIB,
        "pause_at": 0,
        "pause_ns": 0,
        "pause_all": 0,
        "full_from": NEVER,
        "full_to": NEVER,
        "absent_ns": 0,
    }


def _run(rng: random.Random, seed: int, number: int, ledgers: tuple[int, ...]) -> RunPlan:
    world = _world(rng, seed, number)
    killed = rng.random() < 0.7
    if killed:
        world["kill_at"] = int(10 ** rng.uniform(1.5, 4.2))
    if rng.random() < 0.2:
        world["pause_at"] = int(10 ** rng.uniform(2.5, 4))
        world["pause_ns"] = int(rng.choice((0.01, 1, 30)) * S)
        world["pause_all"] = int(rng.random() < 0.3)
    if rng.random() < 0.15:
        world["full_from"] = int(rng.uniform(0, 0.3) * S)
        world["full_to"] = world["full_from"] + int(rng.uniform(0.01, 2) * S)
    rules = tuple(_rule(rng) for _ in range(rng.choice((0, 0, 0, 1, 2))))
    peers = tuple(_peer(rng, f"{seed}-{number}-{one}", ledgers) for one in range(rng.randrange(1, 6)))
    cut = rng.choice((0, 0, 1, 2, 3)) if killed and rng.random() < 0.6 else -1
    seconds = rng.choice((0.2, 1.0, 5.0))
    operations = tuple(_operation(rng, seconds, ledgers) for _ in range(rng.choice((0, 0, 1, 3, 6))))
    return RunPlan(world, rules, peers, seconds, operations, cut)


def _operation(rng: random.Random, seconds: float, ledgers: tuple[int, ...]) -> Operation:
    kind = rng.choice(("checkpoint", "checkpoint", "collect", "collect", "delete", "read_only", "writable"))
    return Operation(int(rng.uniform(0, seconds) * S), kind, rng.choice(ledgers) if kind == "delete" else -1)


def _rule(rng: random.Random) -> Rule:
    part = rng.choice(("journal", ".txn", ".log", "locations", "lastMark", "ledgers", ""))
    kind = rng.random()
    nth = int(10 ** rng.uniform(0, 2.5))
    ops: tuple[Op, ...]
    if kind < 0.45:
        ops = rng.choice(((Op.SYNC,), (Op.WRITE,), (Op.READ,), (Op.WRITE, Op.SYNC, Op.READ, Op.OPEN)))
        seconds, most = rng.choice(((0.02, 50), (1, 3), (20, 1)))
        return Rule(ops, part, Action.STALL, nth, rng.randrange(1, most + 1), int(seconds * S))
    if kind < 0.65:
        return Rule((Op.READ, Op.WRITE), part, Action.SHORT, nth, rng.choice((1, 20, -1)))
    if kind < 0.8:
        ops = rng.choice(((Op.OPEN,), (Op.WRITE,), (Op.ALLOCATE,), (Op.RENAME,), (Op.WRITE, Op.ALLOCATE, Op.OPEN)))
        return Rule(ops, part, Action.ENOSPC, nth, rng.choice((1, 5)))
    ops = rng.choice(((Op.SYNC,), (Op.WRITE,), (Op.READ,), (Op.OPEN,), (Op.ALLOCATE,), (Op.RENAME,), (Op.UNLINK,)))
    return Rule(ops, part, Action.EIO, nth, rng.choice((1, 1, -1)))


def hang(rng: random.Random, place: str) -> Rule:
    """Return the rule that a directory answers nothing more from some call on."""
    ops = (Op.OPEN, Op.READ, Op.WRITE, Op.SYNC, Op.ALLOCATE, Op.TRUNCATE, Op.RENAME, Op.UNLINK)
    return Rule(ops, place, Action.STALL, int(10 ** rng.uniform(0, 2.5)), -1, NEVER)


def _peer(rng: random.Random, seed: str, ledgers: tuple[int, ...]) -> PeerPlan:
    role = rng.choice(("writer", "writer", "writer", "reader", "reader", "batch", "fencer", "silent", "rude"))
    return PeerPlan(
        role,
        seed,
        tuple(rng.sample(ledgers, rng.randrange(1, len(ledgers) + 1))),
        int(rng.choice((0, 0, rng.uniform(0, 0.1))) * S),
        rng.choice((5, 50, 200)),
        rng.choice((1, 5, 40)),
        rng.choice((0, 0, 1 * MS)),
        rng.random() < 0.4,
    )


def _last_run(rng: random.Random, seed: int, number: int) -> RunPlan:
    world = _world(rng, seed, number) | {"short_io": 0}
    return RunPlan(world, (), (), 600.0, (), -1, verify=True)
