"""Ctrl-C at moments all over the start of each command, by real signals. A moment is the n-th call of a function."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fixtures.bookies import BookieProcess

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
MOMENTS = 5
REACHED = 99
IMPORTS = "click:<module>"
"""The first library that all commands import."""
WORK = "bookie.terminal.entry:expect_work"
HANDLED = "bookie.server.process.signals:install"

INTERRUPTER = f"""
import os
import signal
import sys

first, last, moment, report = os.environ["CTRL_C"].split(",")
calls = -1


def count(frame, event, _):
    global calls
    if event != "call":
        return
    name = f"{{frame.f_globals.get('__name__')}}:{{frame.f_code.co_name}}"
    if calls >= 0 or name == first:
        calls += 1
    if name == last:
        with open(report, "w") as file:
            file.write(str(calls))
        os._exit({REACHED})
    if 0 <= calls == int(moment):
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)


sys.setprofile(count)
"""


class Phase(NamedTuple):
    """A command line, and the first and the last function of a part of its start."""

    command: str
    words: list[str]
    first: str
    last: str


class Interrupter:
    """Runs a command until it is interrupted. `shell` is a program that runs it."""

    def __init__(self, directory: Path) -> None:
        self.shell: list[str] = []
        self._directory = directory
        (directory / "sitecustomize.py").write_text(INTERRUPTER)

    def run(self, phase: Phase) -> list[subprocess.CompletedProcess[str]]:
        """Return what became of the command at moments all over the phase. The first run only counts the calls."""
        whole = self.once(phase, -1)
        assert whole.returncode == REACHED, whole.stderr
        calls = int((self._directory / "calls").read_text())
        return [self.once(phase, calls * moment // MOMENTS) for moment in range(MOMENTS)]

    def once(self, phase: Phase, moment: int = 0) -> subprocess.CompletedProcess[str]:
        """Return what became of the command that was interrupted at the n-th call of the phase."""
        module, function = SCRIPTS[phase.command].split(":")
        command = [sys.executable, "-c", f"from {module} import {function}; {function}()", *phase.words]
        facts = {
            "PYTHONPATH": f"{self._directory}:{ROOT}:{ROOT / 'admin'}",
            "CTRL_C": f"{phase.first},{phase.last},{moment},{self._directory / 'calls'}",
        }
        return subprocess.run(
            [*self.shell, *command],
            cwd=self._directory,
            env=os.environ | facts,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def interrupter(tmp_path: Path) -> Interrupter:
    """Return a program that interrupts commands."""
    return Interrupter(tmp_path)


@pytest.mark.parametrize(("command", "words"), [("bkadmin", ["samples"]), ("bkpipe", ["export", "--help"])])
def test_imports_that_are_interrupted(interrupter: Interrupter, command: str, words: list[str]) -> None:
    """Ctrl-C before the command has begun: one line, and the shells' exit code."""
    for done in interrupter.run(Phase(command, words, IMPORTS, WORK)):
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr == f"{command}: interrupted; nothing was done\n"


def test_a_bookie_that_is_interrupted_before_its_start(interrupter: Interrupter, tmp_path: Path) -> None:
    """It is the same before a bookie handles signals, and nothing was created."""
    bookie = BookieProcess(tmp_path / "bookie", f"lmdb://{tmp_path}/metadata", {})
    options = bookie.command()[3:]
    for done in interrupter.run(Phase("bookie-server", options, IMPORTS, HANDLED)):
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr == "bookie-server: interrupted; nothing was done\n"
    assert list(bookie.directory.iterdir()) == [bookie.conf]
    assert not (tmp_path / "metadata").exists()


@pytest.mark.thorough
def test_a_start_that_is_interrupted(interrupter: Interrupter, tmp_path: Path) -> None:
    """From then on, Ctrl-C is a stop as any other, and the next start goes on from there."""
    bookie = BookieProcess(tmp_path / "bookie", f"lmdb://{tmp_path}/metadata", {})
    options = bookie.command()[3:]
    phase = Phase("bookie-server", options, "bookie.server.running:_start", "bookie.server.running:_announce")
    for done in interrupter.run(phase):
        assert done.returncode == 0, done.stderr
        assert re.search("the bookie (was stopped before its start was complete|has stopped)", done.stderr)
        assert "Traceback" not in done.stderr


def test_a_new_cluster_that_is_interrupted(interrupter: Interrupter, tmp_path: Path) -> None:
    """Whether the cluster was created, the same call says when it is made again."""
    bookie = BookieProcess(tmp_path / "bookie", f"lmdb://{tmp_path}/metadata", {})
    options = bookie.command("--init-cluster")[3:]
    done = interrupter.once(Phase("bookie-server", options, "bookie.metadata.key_value.embedded:start", ""))
    said = "bookie-server: interrupted; call it again: it is refused if the cluster was created\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)


def test_a_signal_that_is_ignored_stays_ignored(interrupter: Interrupter) -> None:
    """Shells start commands in the background like this, for which Ctrl-C is not meant."""
    interrupter.shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    done = interrupter.once(Phase("bkadmin", ["samples"], IMPORTS, ""))
    assert (done.returncode, done.stderr) == (0, "")
    assert "bk.conf" in done.stdout
