"""What makes worlds useful beyond playing them: plans as files, shrinking, and what is still expected after damage."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.decay import Decay, Snapshots, rot
from tests.engine.doubts import certain
from tests.engine.hardships import draw_world
from tests.engine.plan import Plan, Rule
from tests.engine.plan_files import read_plan, written
from tests.engine.runtime import Action, Op
from tests.engine.shrink import kind_of, shrink
from tests.engine.wire import V2, V3
from tests.history.events import Event


def test_plans_survive_a_file(tmp_path: Path) -> None:
    """A plan that was written is read back as it was, with all of its hardships."""
    for seed in range(200):
        (tmp_path / "plan.json").write_text(written(draw_world(seed)))
        assert read_plan(tmp_path / "plan.json") == draw_world(seed)


def test_a_failing_world_shrinks_to_what_it_needs() -> None:
    """Only the run, the rule and the peers that a finding needs are left."""
    plan = next(plan for plan in map(draw_world, range(100)) if len(plan.runs) == 5 and len(plan.runs[2].peers) > 2)
    broken = replace(plan.runs[2], rules=(*plan.runs[2].rules, Rule((Op.SYNC,), "", Action.EIO, 7, 1)))
    plan = replace(plan, runs=(*plan.runs[:2], broken, *plan.runs[3:]))

    def finds(one: Plan) -> str:
        guilty = [run for run in one.runs if any(rule.nth == 7 for rule in run.rules) and run.peers]
        return f"run {len(one.runs)}: 12 requests are not answered" if guilty else ""

    left = shrink(plan, finds, 60)
    assert len(left.runs) <= 2
    assert [rule.nth for run in left.runs for rule in run.rules] == [7]
    assert sum(len(run.peers) for run in left.runs) == 1
    assert not any(run.operations or run.changes or run.decays for run in left.runs)
    assert finds(left)


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\x7f", bytes(30)])
@pytest.mark.parametrize("protocol", [V2(), V3()])
def test_a_frame_that_is_no_response_is_malformed(protocol: V2 | V3, body: bytes) -> None:
    """Peers count what cannot be decoded as a finding, and do not end with an error of their own."""
    with pytest.raises(ValueError, match="no response"):
        protocol.answer(body)


def test_findings_are_compared_without_numbers() -> None:
    """Another world has other ids and paths, but the same finding."""
    one = kind_of("run 2: OSError: [Errno 5] failed: '/dev/shm/bookie-world-17/disk-0/journal-0'")
    assert one == kind_of("run 1: OSError: [Errno 5] failed: '/dev/shm/bookie-world-4/disk-0/journal-1'")
    assert one != kind_of("B7: ledger 3, entry 4: denied, although it was acknowledged before")


def test_every_rot_changes_a_file_and_repeats(tmp_path: Path) -> None:
    """Damage follows from its seed, stays inside the file, and hits only files of the kind that was asked for."""
    content = bytes(range(256)) * 40
    for kind in ("flip", "zero", "noise", "swap"):
        changed = set()
        for _ in range(2):
            for name in ("1.txn", "1.log"):
                (tmp_path / name).write_bytes(content)
            assert rot(tmp_path, Decay(kind, ".txn", 5)) == tmp_path / "1.txn"
            changed.add((tmp_path / "1.txn").read_bytes())
            assert (tmp_path / "1.log").read_bytes() == content
        assert len(changed) == 1
        assert len(changed.pop()) == len(content)
    assert rot(tmp_path, Decay("flip", "lastMark", 5)) is None


def test_a_directory_comes_back_as_it_was(tmp_path: Path) -> None:
    """Files that were made or changed since are gone."""
    root = tmp_path / "disk"
    files = root / "journal-0" / "current"
    files.mkdir(parents=True)
    snapshots = Snapshots(root, tmp_path / "copies")
    snapshots.save("journal-0")
    assert not snapshots.bring_back("journal-0")
    (files / "1.txn").write_text("old")
    snapshots.save("journal-0")
    (files / "1.txn").write_text("new")
    (files / "2.txn").write_text("new")
    assert snapshots.bring_back("journal-0")
    assert {path.name: path.read_text() for path in files.iterdir()} == {"1.txn": "old"}


def test_doubts_reach_back_to_what_was_flushed() -> None:
    """A lie about the journal leaves what was flushed before it certain; one about syncs reaches back one run more."""

    def added(at: int) -> Event:
        return Event(at=at, kind="return", op="add", ledger=1, entry=at, bodies=("x",))

    def happened(at: int, op: str) -> Event:
        return Event(at=at, kind="nemesis", op=op)

    history = [
        *(happened(0, "begin"), happened(1, "flushed"), added(2)),
        *(happened(3, "begin"), happened(4, "flushed"), added(5)),
    ]
    assert certain(history) == history
    for doubt, left in (("doubt_files", [2, 5]), ("doubt_journal", [2]), ("doubt_syncs", [])):
        kept = certain([*history, happened(6, doubt), added(7), happened(8, "verify"), happened(9, "verified")])
        assert [event.entry for event in kept if event.op == "add"] == [*left, 7]
        assert not any(event.op.startswith("verif") for event in kept)
