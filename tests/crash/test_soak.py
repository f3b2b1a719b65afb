"""A week in minutes: mixed ledgers are written, read and deleted while space is reclaimed, with a kill -9 every few
seconds. Nothing acknowledged is lost, deleted ledgers are removed, and space, descriptors, memory and index stay
bounded (B1, B7, B12, B13, B14, B19, B21).

BOOKIE_SOAK_SECONDS sets the duration (15), BOOKIE_SOAK_LIVE_MIB the amount of live data (32), BOOKIE_SOAK_ADDS_S the
highest rate of a writer (unlimited), BOOKIE_SOAK_OUT the file for all samples; BOOKIE_SEED repeats a run's choices.
The more live data, the more realistic a run is, because entries then live for many collections: a week in an hour is
1800 seconds with 192 MiB.

Pauses of collection are a thousand times shorter than a bookie's. With unlimited writers, all live data is deleted
in the time of a few compactions, and the mean amplification depends on the machine's other load; so only that of
rate-limited writers is checked.
"""

import json
import math
import os
import random
import statistics
from functools import partial
from pathlib import Path

import pytest

from tests.crash.soak import MIB, Soak

SECONDS = float(os.environ.get("BOOKIE_SOAK_SECONDS", "15"))
LIVE_BYTES = int(os.environ.get("BOOKIE_SOAK_LIVE_MIB", "32")) * MIB
ADDS_S = float(os.environ.get("BOOKIE_SOAK_ADDS_S", "inf"))
LIFE_S_MAX = 4 if SECONDS < 60 else 10
SEED = os.environ.get("BOOKIE_SEED") or str(random.SystemRandom().randrange(1 << 32))
AMPLIFICATION_MAX = 1.6
"""The limit when nothing is left to collect, and for the mean with rate-limited writers, at default thresholds."""
ANONYMOUS_MAX = 400 * MIB
INDEX_MAX = 64 * MIB
DESCRIPTORS_MAX = 64 + 32 + 64
"""Those of B19, openEntryLogLimit, and connections with a margin."""
ORDERLY = 0.15


def report(soak: Soak, settled: float) -> float | None:
    """Print a line of figures for long runs; return the mean amplification if there was enough data for one."""
    amplification = [sample.amplification for sample in soak.samples if sample.live_bytes > LIVE_BYTES // 2]
    mean = statistics.mean(amplification) if amplification else None
    figures = {
        "seconds": round(soak.samples[-1].at_s, 1),
        "kills": soak.kills,
        "acknowledged": soak.model.acknowledged,
        "read_back": soak.model.read_back,
        "ledgers_deleted": len(soak.model.deleted),
        "live_mib": round(soak.samples[-1].live_bytes / MIB, 1),
        "amplification_settled": round(settled, 3),
        "amplification_mean": None if mean is None else round(mean, 3),
        "amplification_max": round(max(amplification), 3) if amplification else None,
        "descriptors_max": max(sample.descriptors for sample in soak.samples),
        "anonymous_mib_max": round(max(sample.anonymous_bytes for sample in soak.samples) / MIB, 1),
        "index_mib_max": round(max(sample.index_bytes for sample in soak.samples) / MIB, 2),
    }
    print(json.dumps(figures))
    if out := os.environ.get("BOOKIE_SOAK_OUT"):
        rows = [[*vars_of(sample)] for sample in soak.samples]
        Path(out).write_text(json.dumps({**figures, "samples": rows}))
    return mean


def vars_of(sample: object) -> list[float]:
    """Return the fields of a sample in their order."""
    return [getattr(sample, name) for name in type(sample).__slots__]  # type: ignore[attr-defined]


def live_for(soak: Soak, seconds: float, *, killed: bool) -> None:
    """Run one life of the process."""
    soak.watch(seconds)
    if killed:
        soak.kill()


@pytest.mark.crash
@pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")
def test_soak(tmp_path: Path) -> None:
    """Kill and sometimes stop the bookie, always under load; then let it rest and collect, and check the totals."""
    print(f"BOOKIE_SEED={SEED}")
    with Soak.opened(tmp_path, f"{SEED}/soak", live_bytes=LIVE_BYTES, pause_s=1 / ADDS_S) as soak:
        while not soak.samples or soak.samples[-1].at_s < SECONDS:
            soak.start()
            seconds = soak.rng.uniform(0.5, LIFE_S_MAX)
            orderly = soak.rng.random() < ORDERLY
            soak.load(partial(live_for, soak, seconds, killed=not orderly))
            if orderly:
                assert soak.bookie.stop() == 0
            assert not soak.model.problems, soak.model.problems[:10]
        soak.bookie.start()
        counters = soak.settle()
        settled = soak.sample()
        soak.verify()
        mean = report(soak, settled.amplification)
        assert not soak.model.problems, soak.model.problems[:10]
        assert soak.bookie.stop() == 0
    assert counters["gc_alarm"] == 0
    present = counters["gc_active_ledger_total"]
    assert len([one for one in soak.model.all() if one.acked]) <= present <= len(soak.model.all())
    assert settled.amplification <= AMPLIFICATION_MAX
    if math.isfinite(ADDS_S) and mean is not None:
        assert mean <= AMPLIFICATION_MAX
    assert max(sample.descriptors for sample in soak.samples) <= DESCRIPTORS_MAX
    assert max(sample.anonymous_bytes for sample in soak.samples) <= ANONYMOUS_MAX
    assert max(sample.index_bytes for sample in soak.samples) <= INDEX_MAX
    assert soak.model.deleted
