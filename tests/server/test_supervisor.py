"""The supervisor ends a process that must not go on (B2, B18). Each case is a process: the latch never opens again."""

import subprocess
import sys

import pytest

HEAD = """
import threading, sys
from bookie._fast import fatal
from bookie.server import logs
from bookie.server.supervisor import Supervisor
logs.configure("keyvalue", "info")
supervisor = Supervisor()
supervisor.start()
"""
NEVER = "threading.Event().wait()\n"
CASES = {
    "failed sync": ("fatal.trip('fdatasync /j/1.txn', 5)\n" + NEVER, 5, "fdatasync /j/1.txn"),
    "dead thread": ("threading.Thread(target=lambda: 1 / 0, name='flush').start()\n" + NEVER, 5, "flush"),
    "watched": ("supervisor.watch('journal', lambda: False)\n" + NEVER, 5, "journal"),
    "stuck stop": ("supervisor.limit(0.01)\n" + NEVER, 2, "took too long"),
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
    "all is well": ("supervisor.watch('x', lambda: True)\nsupervisor.stop()\n", 0, ""),
}


@pytest.mark.parametrize(("body", "code", "says"), CASES.values(), ids=CASES.keys())
def test_exit(body: str, code: int, says: str) -> None:
    """B2, B18: the exit code says what happened, the log what failed, and it takes less than five seconds."""
    process = subprocess.Popen([sys.executable, "-c", HEAD + body], stderr=subprocess.PIPE, text=True)
    with process:
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert says in errors
