"""Fail each call of a run, one world for each: `python -m tests.engine.sweep 0:3`.

The run is the first one of a seed's world, without its own faults. For each kind of call and each error, the first
such call fails, in the next world the second one, and so on until a run ends that the fault has not touched.
After every run a healthy bookie reads everything back.
"""

import argparse
import sys
import time
from dataclasses import replace

from tests.engine.compiled import use_compiled
from tests.engine.plan import Plan, Rule
from tests.engine.runtime import NEVER, Action, Op
from tests.engine.seeds import fixed_environment, seeds_of

ERRORS = {
    Action.EIO: (Op.OPEN, Op.READ, Op.WRITE, Op.SYNC, Op.ALLOCATE, Op.TRUNCATE, Op.RENAME, Op.UNLINK, Op.MKDIR),
    Action.ENOSPC: (Op.OPEN, Op.WRITE, Op.ALLOCATE, Op.RENAME, Op.MKDIR),
}
CALLS_MAX = 5_000
REQUESTS_MAX = 40
QUIET = {"kill_at": 0, "pause_at": 0, "short_io": 0, "full_from": NEVER, "full_to": NEVER}


def with_one_fault(plan: Plan, rule: Rule) -> Plan:
    """Return the world in which the first run of `plan` meets this rule alone, and the last run reads it back."""
    first, last = plan.runs[0], plan.runs[-1]
    peers = tuple(replace(peer, requests=min(peer.requests, REQUESTS_MAX)) for peer in first.peers)
    struck = replace(first, world={**first.world, **QUIET}, rules=(rule,), peers=peers, cut=-1)
    return replace(plan, runs=(struck, last))


def main() -> int:
    """Parse the arguments, play the runs, and print the findings and the totals."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.sweep", description=__doc__)
    parser.add_argument("seeds", help="a seed, first:last (the last one is not played), or several between commas")
    parser.add_argument("--trace", type=int, default=0, metavar="N", help="print the calls where the Nth one fails")
    given = parser.parse_args()
    fixed_environment("tests.engine.sweep")
    use_compiled()
    # Not imported before, because these load numpy, which reads the environment.
    from tests.engine.plan import draw_plan
    from tests.engine.runtime import Runtime
    from tests.engine.standby import Standby
    from tests.engine.world import play

    runtime = Runtime()
    runtime.redirect()
    standby = Standby(runtime)
    begun, runs, sweeps, failures, failed = time.monotonic(), 0, 0, 0, 0
    for seed in seeds_of(given.seeds):
        runs += 1
        for error, op in ((error, op) for error, ops in ERRORS.items() for op in ops):
            for nth in range(1, CALLS_MAX):
                plan = with_one_fault(draw_plan(seed), Rule((op,), "", error, nth, 1))
                outcome = play(standby, plan, keep_trace=nth == given.trace)
                if nth == given.trace:
                    print("\n".join(outcome.trace))
                if outcome.findings:
                    failed += 1
                    print(f"seed {seed}: {error.name} of {op.name} number {nth}: {outcome.findings[0]}", flush=True)
                if not outcome.first_faults:
                    sweeps += 1
                    break
                failures += 1
    standby.close()
    took = time.monotonic() - begun
    print(f"{runs} runs, {sweeps} sweeps, {failures} failures, {failed} failed, {took:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
