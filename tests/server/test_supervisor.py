"""The supervisor ends a process that must not continue (B2, B18). Each case is a process, as the latch stays set."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bookie.server.process.supervisor import Supervisor
from tests.fixtures.whole_bookie import whole_bookie

HEAD = """
import threading, sys
from bookie._fast.base import fatal
from bookie.server.logs import formats
from bookie.server.process.supervisor import Supervisor
formats.configure("keyvalue", "info")
supervisor = Supervisor()
supervisor.start()
"""
NEVER = "threading.Event().wait()\n"
FORGOTTEN = """
watched, forgotten, again = threading.Event(), threading.Event(), threading.Event()
def first():
    if forgotten.is_set():
        again.set()
    elif watched.is_set():
        supervisor.forget("second")
        forgotten.set()
    return True
supervisor.watch("first", first)
supervisor.watch("second", lambda: not forgotten.is_set())
watched.set()
again.wait()
supervisor.stop()
"""
CASES = {
    "failed sync": ("fatal.trip('fdatasync /j/1.txn', 5)\n" + NEVER, 5, "fdatasync /j/1.txn"),
    "dead thread": ("threading.Thread(target=lambda: 1 / 0, name='flush').start()\n" + NEVER, 5, "flush"),
    "watched": ("supervisor.watch('journal', lambda: False)\n" + NEVER, 5, "journal"),
    "stuck stop": ("supervisor.limit(0.01)\n" + NEVER, 2, "took too long"),
    "threads that are left": (
        "supervisor.finish(0, 0.01)\nthreading.Thread(target=threading.Event().wait, name='http_0').start()\n",
        0,
        "http_0",
    ),
    "log that does not drain": (
        "import logging, time\n"
        "class Stuck(logging.Handler):\n"
        "    def emit(self, record): threading.Event().wait()\n"
        "logging.getLogger().addHandler(Stuck())\n"
        "fatal.trip('write', 5)\n" + NEVER,
        5,
        "write",
    ),
    "busy interpreter": (
        "def spin():\n    while True: pass\n"
        "for _ in range(2): threading.Thread(target=spin, daemon=True).start()\n"
        "fatal.trip('write', 5)\n" + NEVER,
        5,
        "write",
    ),
    "thread that is forgotten while others are looked at": (FORGOTTEN, 0, ""),
    "all is well": ("supervisor.watch('x', lambda: True)\nsupervisor.stop()\n", 0, ""),
}


@pytest.mark.parametrize(("body", "code", "says"), CASES.values(), ids=CASES.keys())
def test_exit(body: str, code: int, says: str) -> None:
    """B2, B18: the exit code and the log say what failed, and it takes less than five seconds."""
    process = subprocess.Popen([sys.executable, "-c", HEAD + body], stderr=subprocess.PIPE, text=True)
    with process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert says in errors


class Noting(Supervisor):
    """Records what it is told to watch."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[str, Callable[[], bool]] = {}

    def watch(self, name: str, is_alive: Callable[[], bool]) -> None:
        """Watch like the supervisor."""
        self.noted[name] = is_alive
        super().watch(name, is_alive)


BESIDE = ("metadata", "disks", "rejections", "registration", "repair", "Thread-")
"""Python threads that end only by an exception, which ends the process as well, so they need not be watched."""


def test_every_thread_of_the_data_path_is_watched(tmp_path: Path) -> None:
    """B18: journals, readers, flush, garbage, I/O loops, policy; a new kind of thread must be added here."""
    before = set(threading.enumerate())
    supervisor = Noting()
    with whole_bookie(tmp_path, supervisor):
        threads = [thread for thread in threading.enumerate() if thread not in before]
        watched = {thread.name for thread in threads if thread.name in supervisor.noted}
    assert {name.rstrip("-0123456789") for name in watched} == {
        "flush", "garbage", "index-repair", "io", "journal", "journal-prepare", "policy", "read", "scrub",
    }  # fmt: skip
    assert [one.name for one in threads if one.name not in watched and not one.name.startswith(BESIDE)] == []


def test_threads_that_are_hurried_may_end_before_the_stop_begins(tmp_path: Path) -> None:
    """A second signal ends the I/O loops before the stop has begun, which does not count as their death."""
    supervisor = Noting()
    with whole_bookie(tmp_path, supervisor) as running:
        loops = [thread for thread in threading.enumerate() if thread.name.startswith("io-")]
        assert loops
        running.bookie.hurry()
        for loop in loops:
            loop.join()
        assert all(lives() for lives in supervisor.noted.values())
