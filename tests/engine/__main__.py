"""Play worlds of the engine: `python -m tests.engine 0:1000`, or one with a trace: `python -m tests.engine 17 --trace`."""

import argparse
import os
import sys
import time


def main() -> int:
    """Parse the arguments, play the seeds, and print the findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine", description=__doc__)
    parser.add_argument("seeds", help="one seed, or first:last (the last one is not played)")
    parser.add_argument("--trace", action="store_true", help="print the calls of the last run")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of strings, and the threads of numpy's libraries, must not differ between processes.
        fixed = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.engine", *sys.argv[1:]], fixed)  # noqa: S606
    from tests.engine.plan import draw_plan  # noqa: PLC0415
    from tests.engine.runtime import Runtime  # noqa: PLC0415
    from tests.engine.world import play  # noqa: PLC0415

    first, _, last = given.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    runtime = Runtime()
    runtime.redirect()
    begun, failed, steps, runs, requests = time.monotonic(), 0, 0, 0, 0
    for seed in seeds:
        plan = draw_plan(seed)
        outcome = play(runtime, plan, keep_trace=given.trace)
        steps, runs, requests = steps + outcome.steps, runs + outcome.runs, requests + outcome.requests
        if given.trace:
            print(plan)
            print("\n".join(outcome.trace))
            print(outcome.output)
        if outcome.findings:
            failed += 1
            print(f"seed {seed}: " + "; ".join(outcome.findings), flush=True)
        if len(seeds) == 1:
            print(f"hash {outcome.fingerprint:016x}")
    took = time.monotonic() - begun
    rate = len(seeds) * 60 / max(took, 1e-9)
    print(f"{len(seeds)} worlds, {runs} runs, {steps} steps, {requests} requests, {failed} failed, {rate:.0f} a minute")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
