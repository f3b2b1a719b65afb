"""`python -m perf.placement_simulation`: seconds to simulate a cluster that fills up.

1,000 bookies in 20 racks and 10,000,000 ledgers on three bookies each, with each kind of weights. Prints one JSON
object per run: seconds, CPU seconds, ledgers per second, and the outcome.
"""

import json
import os
import time

import click

from bookie.spark.simulation.cluster import simulate
from bookie.spark.simulation.scenario import Growth, Load, Scenario, Topology, Weights

DISK = 4 * 10**12
TOPOLOGY = Topology(1000, 20, (DISK,), 0.4, 0.6, 0.95, (Growth(50, 0.5),))


@click.command()
@click.option("--ledgers", type=click.IntRange(1), default=10_000_000, show_default=True)
@click.option("--weights", multiple=True, default=("uniform", "median:3"), show_default=True)
@click.option("--poll", type=float, default=3600.0, show_default=True, help="Seconds between polls.")
@click.option(
    "--background",
    type=float,
    default=0.0,
    show_default=True,
    help="Adds by others at every tenth bookie, as a multiple of the mean load.",
)
@click.option("--policy", default="rack", show_default=True)
def main(ledgers: int, weights: tuple[str, ...], poll: float, background: float, policy: str) -> None:
    """Run the simulations one after the other, in this process."""
    room = DISK * (1050 * 0.95 - 1000 * 0.5)
    load = Load(ledgers, room / 3 / ledgers, 1.0, 2e9, 3, 3, background=background)
    for name in weights:
        started, busy = time.monotonic(), time.process_time()
        outcome = simulate(Scenario(TOPOLOGY, load, policy, Weights.parse(name), poll, 1))
        seconds = time.monotonic() - started
        print(json.dumps({
            "weights": name, "policy": policy, "ledgers": outcome["ledgers"], "seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time() - busy, 2), "ledgers_per_s": round(outcome["ledgers"] / seconds),
            "first_full_day": outcome["first_full_day"], "filled_at_first_full": outcome["filled_at_first_full"],
            "spread_at_end": outcome["spread_at_end"], "load_spread": outcome["load_spread"],
            "busiest": outcome["busiest"], "joined_over_old": outcome["joined_over_old"],
            "cores": len(os.sched_getaffinity(0)),
        }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
