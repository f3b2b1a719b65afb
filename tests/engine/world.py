"""One world: runs of the bookie in processes of their own, power cuts between them, and the judgement."""

import contextlib
import io
import logging
import os
import shutil
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from bookie._fast.base import fatal
from bookie.errors import StartRefused
from tests.engine.bookie import Engine
from tests.engine.events import Recorder, events
from tests.engine.peers import Known, Peer, Verifier
from tests.engine.plan import Plan, RunPlan
from tests.engine.runtime import NEVER, Exit, Runtime, Settings
from tests.history.checker import judge
from tests.history.events import Event

__all__ = ["Outcome", "play", "SCRATCH"]

SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")
PATIENCE_NS = 300_000_000_000
"""Every request is answered, and every stop ends, within this simulated time after the last fault."""
REAL_SECONDS = 60
"""A run that takes longer hangs without calling the world, for example in a loop that waits for an atomic."""


@dataclass(slots=True)
class Outcome:
    """What became of a world: its findings, the hash of all that happened, and the calls of its last run."""

    seed: int
    findings: list[str] = field(default_factory=list)
    fingerprint: int = 0
    steps: int = 0
    runs: int = 0
    requests: int = 0
    trace: list[str] = field(default_factory=list)
    output: str = ""


def play(runtime: Runtime, plan: Plan, *, keep_trace: bool = False) -> Outcome:
    """Play a world to its end, or to the first run that shows a finding."""
    outcome = Outcome(plan.seed)
    root = SCRATCH / f"bookie-world-{os.getpid()}"
    runtime.new_world(root)
    known = Known()
    same_boot = True
    seen = 0
    try:
        for number, run in enumerate(plan.runs):
            status = _fork(runtime, plan, run, number, root, known, same_boot=same_boot, outcome=outcome)
            outcome.runs += 1
            outcome.steps += runtime.shared.steps
            outcome.fingerprint = (outcome.fingerprint * 1_000_003 ^ runtime.shared.hash) & (1 << 64) - 1
            _ended(runtime, run, status, number, outcome)
            if outcome.findings:
                break
            history = runtime.history()
            known.absorb(list(events(history[seen:])))
            seen = len(history)
            same_boot = run.cut < 0
            if run.cut >= 0:
                runtime.disk_cut(plan.seed * 31 + number, run.cut)
        history_events = list(events(runtime.history()))
        outcome.requests = sum(event.kind == "invoke" for event in history_events)
        outcome.findings += [f"{one.invariant}: {one.what}" for one in judge(history_events)[:5]]
    finally:
        if keep_trace or outcome.findings:
            outcome.trace = runtime.trace()
        shutil.rmtree(root, ignore_errors=True)
    return outcome


def _ended(runtime: Runtime, run: RunPlan, status: int, number: int, outcome: Outcome) -> None:
    if status == Exit.ENDED or (status == Exit.KILLED and run.world["kill_at"]):
        return
    if status == Exit.RAISED:
        outcome.findings.append(f"run {number}: {outcome.output.strip().splitlines()[-1] if outcome.output else '?'}")
    elif status in (Exit.STUCK, Exit.OVERFLOWN):
        outcome.findings.append(f"run {number}: {runtime.finding()}")
    else:
        outcome.findings.append(f"run {number}: the process ended with status {status}")


def _fork(
    runtime: Runtime,
    plan: Plan,
    run: RunPlan,
    number: int,
    root: Path,
    known: Known,
    *,
    same_boot: bool,
    outcome: Outcome,
) -> int:
    """Run the bookie in a child process, and return its exit status, negative for a signal."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(runtime, plan, run, number, root, known, writing, same_boot=same_boot)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        outcome.output = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _child(
    runtime: Runtime,
    plan: Plan,
    run: RunPlan,
    number: int,
    root: Path,
    known: Known,
    output: int,
    *,
    same_boot: bool,
) -> None:
    """Be the bookie of a run. Never returns."""
    import signal  # noqa: PLC0415

    signal.alarm(REAL_SECONDS)
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.WARNING, force=True)
    runtime.begin(Settings(**run.world))
    status: int = Exit.ENDED
    try:
        for rule in run.rules:
            mask = sum(1 << op for op in rule.ops)
            runtime.rule(mask, rule.part, rule.action, rule.nth, rule.times, rule.argument)
        status = _Run(runtime, plan, run, number, root / "disk", known).play(same_boot=same_boot)
    except BaseException:  # noqa: BLE001 - reported by the parent
        runtime.leave()
        log.write(traceback.format_exc())
        status = Exit.RAISED
    runtime.leave()
    with contextlib.suppress(OSError):
        os.write(output, log.getvalue()[-60_000:].encode())
    os._exit(status)


class Stuck(Exception):
    """Something waits longer than it may."""


class _Run:
    def __init__(self, runtime: Runtime, plan: Plan, run: RunPlan, number: int, root: Path, known: Known) -> None:
        self._runtime = runtime
        self._plan = plan
        self._run = run
        self._recorder = Recorder(runtime, number)
        self._engine = Engine(plan, root)
        self._known = known
        most = plan.network["frame_bytes_max"] - 200
        self._peers = [
            Peer(runtime, self._recorder, client, peer, known, most) for client, peer in enumerate(run.peers, 1)
        ]

    def play(self, *, same_boot: bool) -> int:
        """Start, serve, stop. Returns the exit status."""
        try:
            self._engine.start(same_boot=same_boot)
        except (OSError, StartRefused):
            if not self._excused():
                raise
            return Exit.ENDED
        self._recorder.nemesis("start")
        if self._run.verify:
            self._verify()
        elif (ended := self._serve()) is not None:
            return ended
        self._engine.stop()
        if fatal.wait(0) is not None and not self._excused():
            raise Stuck(f"fatal without a cause: {fatal.wait(0)}")
        return Exit.ENDED

    def _excused(self) -> bool:
        """Whether a fault explains that the bookie gave up."""
        full = self._run.world["full_from"] != NEVER
        return self._runtime.shared.faults > 0 or full or any(rule.action for rule in self._run.rules)

    def _serve(self) -> int | None:
        """Let the peers ask. Returns an exit status if the run has ended here."""
        now = self._runtime.now()
        end = now + int(self._run.seconds * 1e9)
        flushes = [now + int(self._run.seconds * 1e9 * (i + 1) / (self._run.flushes + 1)) for i in range(self._run.flushes)]
        while True:
            now = self._runtime.now()
            for peer in self._peers:
                peer.turn(now)
            if fatal.wait(0) is not None:
                if not self._excused():
                    raise Stuck(f"fatal without a cause: {fatal.wait(0)}")
                self._drain()
                return Exit.ENDED
            if flushes and now >= flushes[0]:
                flushes.pop(0)
                stores = self._engine.storage.stores
                assert stores is not None
                self._engine.storage.checkpoints.request() if False else None
            asking = any(not peer.done() for peer in self._peers)
            waiting = sum(peer.waiting for peer in self._peers)
            if now >= end and not waiting or not asking and not waiting:
                return self._malformed()
            if now >= end + PATIENCE_NS:
                raise Stuck(f"{waiting} requests are not answered after {PATIENCE_NS / 1e9:.0f} s")
            until = min([end + PATIENCE_NS, *flushes[:1], *(peer.due for peer in self._peers if not peer.done())])
            if now < end < until:
                until = end
            if self._runtime.wait(max(until, now + 1)) == 2:
                self._drain()
                return Exit.KILLED

    def _malformed(self) -> None:
        for peer in self._peers:
            if peer.malformed:
                raise Stuck(f"a response that is none: {peer.malformed}")

    def _drain(self) -> None:
        for peer in self._peers:
            peer.drain()

    def _verify(self) -> None:
        sent: dict[int, set[int]] = {}
        for event in events(self._runtime.history()):
            if event.kind == "invoke" and event.op in ("add", "recovery_add"):
                sent.setdefault(event.ledger, set()).add(event.entry)
        self._recorder.nemesis("verify")
        verifier = Verifier(self._runtime, self._recorder, sent)
        end = self._runtime.now() + PATIENCE_NS
        while not verifier.turn():
            if self._runtime.now() > end:
                raise Stuck("the verification does not end")
            self._runtime.wait(end + 1)
        self._recorder.nemesis("verified")


def play_events(runtime: Runtime) -> list[Event]:
    """Return the events of the last world."""
    return list(events(runtime.history()))
