"""One world: runs of the bookie in processes of their own, power cuts between them, and the judgement."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from bookie._fast.entrylog.map import read_map
from bookie.storage.layout import INDEX_NAME
from tests.engine.decay import Decay, Snapshots, rot
from tests.engine.doubts import certain
from tests.engine.events import Recorder, events, split_deleted
from tests.engine.java import leave_disks
from tests.engine.peers import Known
from tests.engine.plan import Plan, RunPlan
from tests.engine.run import Place
from tests.engine.runtime import Exit, Lie, Runtime
from tests.engine.scratch import scratch
from tests.engine.standby import Standby
from tests.history.checker import judge

__all__ = ["Outcome", "play"]

FINDINGS_MAX = 5


@dataclass(slots=True)
class Outcome:
    """What became of a world: its findings, the hash of all that happened, and what its last run called and logged.

    `first_faults` are the errors that the disk returned in the first run.
    """

    seed: int
    findings: list[str] = field(default_factory=list)
    fingerprint: int = 0
    steps: int = 0
    runs: int = 0
    kills: int = 0
    cuts: int = 0
    requests: int = 0
    compacted: int = 0
    first_faults: int = 0
    trace: list[str] = field(default_factory=list)
    output: str = ""


def play(standby: Standby, plan: Plan, *, keep_trace: bool = False) -> Outcome:
    """Play a world to its end, or to the first run with a finding."""
    outcome, runtime = Outcome(plan.seed), standby.runtime
    root = scratch("world")
    runtime.new_world(root)
    known, boot, seen = Known(plan.ledgers), 1, 0
    disk = Disk(runtime, root)
    if plan.taken_over:
        leave_disks(runtime, plan, root / "disk-0")
        known.absorb(runtime.history())
        seen = runtime.shared.history_bytes
    try:
        for number, run in enumerate(plan.runs):
            disk.decay(number, run.decays)
            place = Place(root / "disk-0", number, boot, disk.damaged)
            status, outcome.output = standby.run(plan, place, known, traced=keep_trace)
            outcome.runs += 1
            outcome.kills += status == Exit.KILLED
            outcome.first_faults += runtime.faults_of(0) if number == 0 else 0
            outcome.steps += runtime.shared.steps
            outcome.fingerprint = (outcome.fingerprint * 1_000_003 ^ runtime.shared.hash) & (1 << 64) - 1
            if finding := _finding(runtime, run, status, outcome.output):
                outcome.findings.append(f"run {number}: {finding}")
                return outcome
            known.absorb(runtime.history()[seen:])
            seen = runtime.shared.history_bytes
            disk.confess(number)
            if run.cut >= 0:
                runtime.disk_cut(0, plan.seed * 31 + number, run.cut)
                outcome.cuts += 1
                boot += 1
        history = certain(list(events(runtime.history())))
        outcome.requests = sum(event.kind == "invoke" for event in history)
        outcome.compacted = sum(event.op == "compacted" and event.code > 0 for event in history)
        violations = [found for part in split_deleted(history) for found in judge(part)][:FINDINGS_MAX]
        outcome.findings += [f"{violation.invariant}: {violation.what}" for violation in violations]
        return outcome
    finally:
        if keep_trace:
            outcome.trace = runtime.trace()
        shutil.rmtree(root, ignore_errors=True)


class Disk:
    """The disk of the bookie as the parent process sees it: what decays between runs, and what is in doubt."""

    def __init__(self, runtime: Runtime, root: Path) -> None:
        self._runtime = runtime
        self._place = root / "disk-0"
        self._snapshots = Snapshots(self._place, root / "snapshots")
        self.damaged = False

    def decay(self, number: int, decays: tuple[Decay, ...]) -> None:
        """Let happen what happens to the files before a run."""
        for decay in decays:
            if decay.kind == "save":
                self._snapshots.save(decay.part)
                continue
            if decay.kind == "back":
                doubted = decay.part if self._snapshots.bring_back(decay.part) else ""
                self._runtime.settle(0)
            else:
                sole_proofs = self._sole_proofs(decay.kind)
                file = rot(self._place, decay)
                doubted = file.name if file else ""
                if file in sole_proofs:
                    doubted = "journal"
            if doubted:
                self._doubt(number, "doubt_journal" if "journal" in doubted or ".txn" in doubted else "doubt_files")

    def _sole_proofs(self, kind: str) -> list[Path]:
        """Return the entry logs of a Java bookie that was not taken over yet which alone tell what was in them.

        One without a map looks, when it is damaged, as a crash leaves it. In any other, too, a bit of an entry's id may
        flip: the digest would show it, but only clients can verify digests.
        """
        current = self._place / "ledgers-0" / "current"
        if (current / INDEX_NAME / "data.mdb").exists():
            return []
        return [path for path in current.glob("*.log") if kind == "flip" or read_map(path) is None]

    def confess(self, number: int) -> None:
        """Record what the disk lied about in the run that has ended."""
        lies = {kind: self._runtime.lies(0, kind) for kind in Lie}
        if lies[Lie.SYNC] or lies[Lie.READ]:
            self._doubt(number, "doubt_syncs")
        if lies[Lie.JOURNAL]:
            self._doubt(number, "doubt_journal")
        if lies[Lie.FILE]:
            self._doubt(number, "doubt_files")

    def _doubt(self, number: int, what: str) -> None:
        self.damaged = True
        Recorder(self._runtime, number).nemesis(what)


def _finding(runtime: Runtime, run: RunPlan, status: int, output: str) -> str:
    """Return what is wrong about the end of a run, or ""."""
    if status == Exit.ENDED or (status == Exit.KILLED and (run.world["kill_at"] or run.hangs)):
        return ""
    if status == Exit.RAISED:
        return output.strip().splitlines()[-1]
    if status in (Exit.STUCK, Exit.OVERFLOWN):
        return runtime.finding()
    return f"the process ended with status {status}"
