"""Each kind of fault, peer and operation that worlds are said to contain is drawn for some of the first seeds."""

from collections.abc import Callable

import pytest

from tests.engine.hardships import draw_world
from tests.engine.plan import Plan, Rule, RunPlan
from tests.engine.runtime import NEVER, Action, Op

WORLDS = [draw_world(seed) for seed in range(300)]


def rule(action: Action, op: Op, *, lasting: bool = False) -> Callable[[Plan], bool]:
    """Whether calls of a kind meet an action, for ever if that is asked for."""

    def fits(one: Rule) -> bool:
        return one.action is action and op in one.ops and (one.times < 0 or not lasting)

    return lambda plan: any(fits(one) for run in plan.runs for one in run.rules)


def run(what: Callable[[RunPlan], object]) -> Callable[[Plan], bool]:
    """Whether something is true of a run."""
    return lambda plan: any(what(one) for one in plan.runs)


def peer(role: str, **more: object) -> Callable[[Plan], bool]:
    """Whether some run has such a peer."""
    return run(
        lambda one: any(
            peer.role == role and all(getattr(peer, name) == value for name, value in more.items())
            for peer in one.peers
        )
    )


def operation(kind: str) -> Callable[[Plan], bool]:
    """Whether the operator does this."""
    return run(lambda one: any(done.kind == kind for done in one.operations))


def decay(kind: str) -> Callable[[Plan], bool]:
    """Whether this happens to files while the bookie is down."""
    return run(lambda one: any(decay.kind == kind for decay in one.decays))


def changed(name: str) -> Callable[[Plan], bool]:
    """Whether a setting is another one after a start than before it."""

    def value(plan: Plan, number: int) -> object:
        one = plan.at(number)
        return (one.storage | one.journal | one.network)[name]

    return lambda plan: any(value(plan, number) != value(plan, 0) for number in range(1, len(plan.runs)))


DRAWS: dict[str, Callable[[Plan], bool]] = {
    # Disk.
    "a short write": rule(Action.SHORT, Op.WRITE),
    "a lost write": rule(Action.LOST, Op.WRITE),
    "a misdirected write": rule(Action.ASTRAY, Op.WRITE),
    "a sync that does nothing": rule(Action.LOST, Op.SYNC),
    "a misread bit": rule(Action.ROT, Op.READ),
    "no space for a call": rule(Action.ENOSPC, Op.WRITE),
    "no space for a while": run(lambda one: one.world["full_from"] < NEVER),
    "an error of a sync": rule(Action.EIO, Op.SYNC),
    "an error of a write": rule(Action.EIO, Op.WRITE),
    "an error of a read": rule(Action.EIO, Op.READ),
    "an error for ever": rule(Action.EIO, Op.WRITE, lasting=True),
    "a stall": rule(Action.STALL, Op.SYNC),
    "a directory that hangs": run(lambda one: one.hangs),
    "a slow disk": run(lambda one: one.world["sync_ns"] >= 10_000_000),
    "some unsynced sectors and names are lost": run(lambda one: one.cut == 0),
    "all that is unsynced is lost": run(lambda one: one.cut == 1),
    "only names are lost": run(lambda one: one.cut == 2),
    "a flipped bit": decay("flip"),
    "a sector of another place": decay("swap"),
    "a directory goes back": decay("back"),
    # Time.
    "the clock jumps": run(lambda one: one.world.get("jump_ns")),
    "a thread stands still": run(lambda one: one.world["pause_at"] and not one.world["pause_all"]),
    "all threads stand still": run(lambda one: one.world["pause_at"] and one.world["pause_all"]),
    # Peers.
    "a slow peer": run(lambda one: any(peer.sip_bytes for peer in one.peers)),
    "a silent peer": peer("silent"),
    "a peer that resets": peer("rude"),
    "a flood": peer("flood"),
    "extreme requests": peer("wild"),
    "a fence": peer("fencer"),
    "V2": peer("writer", v3=False),
    "V3": peer("writer", v3=True),
    "START_TLS": peer("writer", sealed=True),
    "the largest ledger id": lambda plan: (1 << 63) - 1 in plan.ledgers,
    # Operator.
    "a stop beside peers": lambda plan: not all(one.world["kill_at"] for one in plan.runs[:-1]),
    "a kill": run(lambda one: one.world["kill_at"]),
    "a flush": operation("checkpoint"),
    "read-only mode": operation("read_only"),
    "collection": operation("collect"),
    "a deletion": operation("delete"),
    "mostly dead logs": run(lambda one: one.lasts),
    "a take-over": lambda plan: plan.taken_over,
    "a take-over that is killed": lambda plan: plan.taken_over and plan.runs[0].world["kill_at"] > 0,
    "other sizes": changed("write_cache_bytes"),
    "kept halves": lambda plan: plan.storage["keep_flushed"],
    "other read threads": changed("read_threads"),
    "other I/O loops": changed("io_threads"),
    "other entry logs": changed("log_per_ledger"),
    "other journals": changed("reuse_files"),
}


@pytest.mark.parametrize("what", DRAWS)
def test_worlds_contain_it(what: str) -> None:
    """Some worlds contain it, and some do not."""
    assert 0 < sum(map(DRAWS[what], WORLDS)) < len(WORLDS)
