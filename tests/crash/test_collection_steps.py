"""The process ends between any two steps of compaction and of the deletion of ledgers (B6, B13, B14), and bugs
planted in both are revealed. Module base.crash_steps names the steps.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.planted import NUMBERS
from tests.storage.collecting import Collecting
from tests.storage.collection_scenarios import SCENARIOS

pytestmark = pytest.mark.crash

ROOT = Path(__file__).resolve().parents[2]
STEPS = {
    "target created": 41,
    "target published": 42,
    "copied": 21,
    "copy synced": 22,
    "copy indexed": 23,
    "unlinked": 24,
    "deletion committed": 31,
    "deleted ledgers forgotten": 32,
}


def work(one: Collecting) -> None:
    """Write three ledgers to several logs, all of them closed."""
    for at in range(0, 60, 10):
        for ledger in (1, 2, 3):
            one.add(ledger, range(at, at + 10))
        one.one.checkpoint()
    one.restart()


def dies(root: Path, step: int) -> None:
    """Return the code of the child process."""
    from bookie._fast.base.crash_steps import crash_after_step

    one = Collecting(root)
    work(one)
    crash_after_step(step)
    one.delete(2)
    one.cycle()


def child(code: str, planted: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python code with a planted bug."""
    environment = {**os.environ, "BOOKIE_PLANTED": str(NUMBERS.get(planted, 0))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=170, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("step", STEPS)
def test_b13_b14_an_end_behind_this_step_loses_nothing(step: str, tmp_path: Path) -> None:
    """Live entries are served after the next two starts, deleted ones are not, and the rest is collected."""
    number = STEPS[step]
    code = "from pathlib import Path; from tests.crash.test_collection_steps import dies; "
    done = child(f"{code}dies(Path({str(tmp_path)!r}), {number})")
    assert done.returncode == -signal.SIGABRT, done.stderr
    expected = Collecting(tmp_path / "model-only")
    work(expected)
    model = expected.model
    expected.one.crash()
    model.delete(2)
    one = Collecting(tmp_path)
    one.model = model
    one.check()
    assert {result.outcome for result in one.cycle()} == {"unlinked"}
    one.check()
    one.restart(crash=True)
    one.check()
    assert one.collector.live_bytes().live.sum() == one.live_in_index()
    one.stop()


@pytest.mark.parametrize("scenario", [name for name, scenario in SCENARIOS.items() if scenario.bug])
def test_a_planted_bug_is_found(scenario: str, tmp_path: Path) -> None:
    """With the bug, the scenario fails at its own assertion."""
    pytest.importorskip("bookie._fast.testing.faulty", reason="build with BOOKIE_FAULTS=1")
    code = "import runpy, sys; sys.argv[1:] = " + repr([scenario, str(tmp_path)])
    code += "; runpy.run_module('tests.storage.collection_scenarios', run_name='__main__')"
    done = child(code, SCENARIOS[scenario].bug)
    assert done.returncode == 1, done.stderr
    assert "AssertionError" in done.stderr
