"""One life of the bookie, in a process of its own: the driver starts the engine, plays all peers, and stops it.

The process may die at any call of the engine. What the peers sent and received is in the shared history by then.
"""

import io
import itertools
import logging
import signal
import traceback
from dataclasses import dataclass
from pathlib import Path

from bookie._fast.base import fatal
from bookie.errors import StartRefused
from tests.engine.bookie import Engine
from tests.engine.budgets import over_budget
from tests.engine.events import Recorder, heads
from tests.engine.operations import Ledgers, Operator
from tests.engine.peers import Crowd, Known, Peer, Verifier
from tests.engine.plan import Plan, Rule
from tests.engine.runtime import NEVER, Action, Exit, Runtime, Settings

__all__ = ["be_bookie", "Place"]

PATIENCE_NS = 300_000_000_000
"""Every request is answered within this simulated time after the last fault."""
CPU_SECONDS = 60
"""A run that takes longer goes round without calling the world, for example in a loop that waits for an atomic."""
REAL_SECONDS = 600
"""A run that takes longer waits for something that the world does not know."""
DYING = 2
LOOK_AT_BUDGETS = 64
"""Every how many turns of the peers."""
TRIES = 3
"""How often an entry is asked for whose place on the disk may be damaged."""
HARMLESS = (Action.STALL, Action.SHORT)
"""What a rule may do to a call without excusing a bookie that gives up."""


class Stuck(Exception):
    """Something takes longer than it may, or ends without a cause."""


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of the bookie's files, the number of the run, the number of the machine's boot, and whether the
    disk has lied or decayed in this run or before.
    """

    root: Path
    number: int
    boot: int
    damaged: bool = False


def be_bookie(runtime: Runtime, plan: Plan, place: Place, known: Known, *, traced: bool) -> None:
    """Be the bookie of a run, and end the run with what was logged."""
    signal.alarm(REAL_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.WARNING, force=True)
    run = plan.runs[place.number]
    status: int
    try:
        runtime.begin(Settings(**run.world, traced=traced))
        for rule in (*plan.planted, *run.rules):
            if not rule.hangs:
                _add_rule(runtime, rule)
        status = _Run(runtime, plan, place, known).play()
        runtime.leave()
    except BaseException:  # noqa: BLE001 - the parent process reports it
        runtime.leave()
        log.write(traceback.format_exc())
        status = Exit.RAISED
    runtime.end_run(status, log.getvalue())


def _add_rule(runtime: Runtime, rule: Rule) -> None:
    mask = sum(1 << op for op in rule.ops)
    runtime.rule(mask, rule.part, rule.action, rule.nth, rule.times, rule.argument)


class _Run:
    def __init__(self, runtime: Runtime, plan: Plan, place: Place, known: Known) -> None:
        self._runtime = runtime
        self._plan = plan
        self._run = plan.runs[place.number]
        self._recorder = Recorder(runtime, place.number)
        self._damaged = runtime.damaged = place.damaged
        self._engine = Engine(plan.at(place.number), place.root, place.boot)
        self._known = known
        most = plan.payload_bytes_max
        self._crowd = Crowd(
            runtime,
            [
                Peer(runtime, self._recorder, number, peer, known, most)
                for number, peer in enumerate(self._run.peers, 1)
            ],
        )

    def play(self) -> int:
        """Start, serve and stop. Return the exit status."""
        self._recorder.nemesis("begin")
        try:
            self._engine.start()
        except (OSError, StartRefused):
            if self._excused():
                return Exit.ENDED
            raise
        self._recorder.nemesis("start")
        if self._engine.flushed:
            self._recorder.nemesis("flushed")
        operator = Operator(self._engine.storage, Ledgers(self._known.existing), self._recorder, self._run.operations)
        operator.start()
        if self._run.verify:
            self._verify()
        elif (ended := self._serve()) is not None:
            return ended
        operator.stop()
        try:
            self._engine.stop()
        except OSError:
            if not self._excused():
                raise
        if self._engine.storage.flushed:
            self._recorder.nemesis("flushed")
        self._check_fatal()
        if operator.failed is not None and not self._excused():
            raise operator.failed
        return Exit.ENDED

    def _excused(self) -> bool:
        """Whether a fault may be why the bookie gave up."""
        refusals = any(rule.action not in HARMLESS for rule in self._run.rules)
        return self._runtime.faults() > 0 or self._run.world["full_from"] != NEVER or refusals or self._damaged

    def _check_fatal(self) -> bool:
        """Return whether the bookie has given up. Raises Stuck if it had no reason to."""
        cause = fatal.wait(0)
        if cause is not None and not self._excused():
            raise Stuck(f"the bookie gave up without a fault: {cause}")
        return cause is not None

    def _serve(self) -> int | None:
        """Let the peers ask. Return an exit status if the run is over here.

        While a ledger directory hangs, every add must be answered, though not every read; while a journal does, only
        requests that need no such disk. Then the process is killed.
        """
        for rule in self._run.rules:
            if rule.hangs:
                _add_rule(self._runtime, rule)
        end = self._runtime.now() + int(self._run.seconds * 1e9)
        turns, crowd = itertools.count(), self._crowd
        while True:
            if next(turns) % LOOK_AT_BUDGETS == 0:
                self._check_budgets()
            now = self._runtime.now()
            self._check_promptness(now)
            crowd.turn(now)
            if self._check_fatal():
                return Exit.ENDED
            waiting = self._waiting()
            if self._run.hangs and not waiting and now >= end:
                crowd.drain()
                return Exit.KILLED
            if not self._run.hangs and not waiting and (now >= end or not (crowd.asking() or self._run.lasts)):
                self._check_responses()
                self._check_budgets()
                return None
            if now >= end + PATIENCE_NS:
                raise Stuck(f"{waiting} requests are not answered after {PATIENCE_NS / 1e9:.0f} s")
            until = min(end if now < end else end + PATIENCE_NS, crowd.due())
            if self._runtime.wait(max(until, now + 1)) == DYING:
                crowd.drain()
                return Exit.KILLED

    def _waiting(self) -> int:
        """Return how many requests have no response that must get one."""
        if any(rule.hangs and rule.part.startswith("journal") for rule in self._run.rules):
            return self._crowd.spared()
        if self._run.hangs:
            return max(self._crowd.adding(), self._crowd.spared())
        return self._crowd.waiting()

    def _check_budgets(self) -> None:
        if over := over_budget(self._engine):
            raise Stuck(f"over budget: {over}")

    def _check_promptness(self, now: int) -> None:
        if self._run.prompt_ns == NEVER:
            return
        spared = self._run.hangs
        if (late := now - self._crowd.oldest_ns(spared=spared)) > self._run.prompt_ns:
            what = self._crowd.oldest(spared=spared)
            raise Stuck(f"{what} has waited for {late / 1e9:.3f} s, although nothing delays it")
        if refused := self._crowd.refused():
            raise Stuck(f"refused, although it needs no disk that hangs: {refused}")

    def _check_responses(self) -> None:
        if malformed := self._crowd.malformed():
            raise Stuck(f"a peer received bytes that are no response: {malformed}")

    def _verify(self) -> None:
        """Read back everything that was ever sent for ledgers that exist."""
        sent: dict[int, set[int]] = {}
        for kind, op, ledger, entry in heads(self._runtime.history()):
            if kind == "invoke" and op in ("add", "recovery_add"):
                sent.setdefault(ledger, set()).add(entry)
        self._recorder.nemesis("verify")
        verifier = Verifier(
            self._runtime,
            self._recorder,
            {ledger: sent[ledger] for ledger in sent if ledger in self._known.existing},
            tries=TRIES if self._damaged else 0,
        )
        end = self._runtime.now() + PATIENCE_NS
        while not verifier.turn():
            if self._runtime.now() > end:
                raise Stuck("the verification does not end")
            self._runtime.wait(end + 1)
        self._recorder.nemesis("verified")
