"""The process ends under load after each step of a garbage collection: everything acknowledged is there afterwards,
and the next collection removes deleted ledgers (B12, B13, B14).
"""

import signal
from pathlib import Path
from typing import Any

import pytest

from bookie.storage.garbage.steps import STEPS
from tests.crash.soak import Soak

PATIENCE_S = 60.0
POLICY: dict[str, dict[str, Any]] = {name: {"collection_step": name} for name in STEPS}
ROOM: dict[str, dict[str, Any]] = {
    "survivors appended": {"step": 21},
    "survivors synced": {"step": 22},
    "survivors indexed": {"step": 23},
    "source unlinked": {"step": 24},
    "ledgers out of the index": {"step": 31},
    "ledgers out of memory": {"step": 32},
}


@pytest.mark.crash
@pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")
@pytest.mark.parametrize("steps", [POLICY, ROOM], ids=["policy", "room"])
def test_b12_b13_b14_an_end_behind_each_step_loses_nothing(steps: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """One bookie is killed after one step after the other, each time under load with deletions."""
    with Soak.opened(tmp_path, "steps", live_bytes=4 << 20) as soak:
        for name, order in steps.items():
            soak.bookie.start()
            soak.verify()

            def die(name: str = name, order: dict[str, Any] = order) -> None:
                soak.watch(0.5)
                soak.bookie.order(**order)
                code = soak.bookie.exited(PATIENCE_S)
                assert code == -signal.SIGABRT, f"{name}: {code}\n{soak.bookie.log_text()[-2000:]}"

            soak.load(die)
            assert not soak.model.problems, (name, soak.model.problems[:10])
        soak.bookie.start()
        soak.verify()
        counters = soak.settle()
        soak.verify()
        assert not soak.model.problems, soak.model.problems[:10]
        present = counters["gc_active_ledger_total"]
        assert len([one for one in soak.model.all() if one.acked]) <= present <= len(soak.model.all())
        assert soak.bookie.stop() == 0
