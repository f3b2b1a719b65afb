"""The processes of a world end with the one that plays it, also if that is killed."""

import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.engine.scratch import base

PATIENCE_MS = 60_000


def descendants(pid: int) -> set[int]:
    """Return the processes below a process."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(path.parent.name)] = int(fields[1])
    found, new = set[int](), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def remove_worlds_of(pid: int) -> None:
    """Remove the directories of worlds that a process played."""
    for path in base().glob(f"bookie-*-{pid}-*"):
        shutil.rmtree(path)


@pytest.mark.parametrize(("module", "processes"), [("tests.engine", 1), ("tests.engine.cluster", 3)])
def test_nothing_outlives_a_killed_player(module: str, processes: int) -> None:
    """After `kill -9` of the command, its bookies and clients end, too. Only its directory stays."""
    player = subprocess.Popen([sys.executable, "-m", module, "0:100000"], stdout=subprocess.DEVNULL)
    while len(found := descendants(player.pid)) < processes:
        assert player.poll() is None
    with ExitStack() as closing:
        for pid in {player.pid, *found}:
            closing.callback(remove_worlds_of, pid)
        poll, waiting = select.poll(), set[int]()
        for pid in found:
            with suppress(ProcessLookupError):
                waiting.add(handle := os.pidfd_open(pid))
                closing.callback(os.close, handle)
                poll.register(handle, select.POLLIN)
        os.kill(player.pid, signal.SIGKILL)
        player.wait()
        while waiting:
            ended = {handle for handle, _ in poll.poll(PATIENCE_MS)}
            assert ended, f"{len(waiting)} processes go on"
            waiting -= ended
            for handle in ended:
                poll.unregister(handle)
