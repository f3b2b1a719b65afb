"""The memory of a process is put back completely after a run: what the next run finds does not depend on it."""

import os
import re
import subprocess
import sys

import pytest

from tests.engine.test_worlds import played

PROGRAM = """
import gc, os, shutil, sys
from tests.engine.hardships import draw_world
from tests.engine.peers import Known
from tests.engine.run import Place, be_bookie
from tests.engine.runtime import Runtime
from tests.engine.scratch import scratch

runtime = Runtime()
runtime.redirect()
root, plan = scratch("memory"), draw_world(int(sys.argv[1]))
runtime.new_world(root)
gc.disable()
returns = runtime.keep_memory()
descriptors = len(os.listdir("/proc/self/fd"))
if 0 <= returns < 3:
    runtime.differs()
    print("run", descriptors, flush=True)
    be_bookie(runtime, plan, Place(root / "disk-0", 0, 1), Known(plan.ledgers), traced=False)
shutil.rmtree(root)
print("ended", returns, runtime.differs(), descriptors)
"""


def test_memory_is_put_back() -> None:
    """After each of three runs, every page is as it was, and nothing is open or mapped that was not."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    words = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-c", PROGRAM, "5"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    *runs, ended = done.stdout.splitlines()
    word, returns, differs, descriptors = ended.split()
    if returns == "-1":
        pytest.skip("the kernel does not note written pages: Linux 6.7 does")
    assert (word, returns, differs) == ("ended", "3", "0")
    assert runs == [f"run {descriptors}"] * 3


def test_a_world_does_not_depend_on_the_one_before() -> None:
    """A seed is the same world in a new process and after two others."""
    alone, later = (re.findall("^hash .*$", played(seeds), re.MULTILINE) for seeds in ("4", "2:5"))
    assert alone == later
