"""The bookies of a cluster's world: processes of the real engine, which are killed, cut off and started again."""

import contextlib
import gc
import io
import logging
import mmap
import os
import re
import signal
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from tests.engine.bookie import Engine
from tests.engine.plan import Plan
from tests.engine.runtime import Exit, Runtime, Settings

__all__ = ["Bookie"]

FIRST_PORT = 3181
CPU_SECONDS = 60
"""How long a bookie may compute; whoever takes longer goes round without an end."""
OUTPUT_BYTES = 60_000
NOTICED_NS = 1_000_000_000
"""Within this time the end of a process is noticed."""
REFUSED = re.compile(r"StartRefused: .*no space is left on the disk")
LOOK_S = 0.05
"""How often a bookie looks whether it is asked to stop, in simulated seconds."""


class Bookie:
    """A bookie of the simulated cluster. `process` is its number in the world; process 0 is that of the clients.

    Attributes:
        name: Its id and address, as host:port.
        up: Whether its process was started and has not been found dead.
        plan: The settings of its next start.
        boot: The number of the boot of its machine; a power cut begins a new one.
        starts: How often it was started.
        inherited: A descriptor that its process closes; otherwise nobody would notice the end of the clients' process.
        full_until_ns: Until when its disk has no space, which may be why a start is refused. It is started again.
        findings: Why a process ended that was neither killed nor asked to stop.
    """

    def __init__(self, runtime: Runtime, plan: Plan, world: dict[str, int], process: int, root: Path) -> None:
        """`world` are the fields of `runtime.Settings`, and `root` is the disk."""
        self.port = FIRST_PORT + process
        self.name = f"127.0.0.1:{self.port}"
        self.process = process
        self.up = False
        self.boot = 1
        self.starts = 0
        self.lost_data = False
        self.full_until_ns = 0
        self.findings: list[str] = []
        self.inherited = -1
        self._runtime = runtime
        self.configure(plan)
        self._stopping = mmap.mmap(-1, mmap.PAGESIZE)  # its first byte tells the process to stop
        self._world = world
        self._root = root
        self._pid = 0
        self._output = -1

    @property
    def serving(self) -> bool:
        """Whether connections are accepted. A bookie that was asked to stop accepts some for a while, but goes down."""
        return self.up and not self._stopping[0] and bool(self._runtime.listens(self.port))

    def configure(self, plan: Plan) -> None:
        """Let the next start use these settings."""
        self.plan = replace(plan, network={**plan.network, "port": self.port})

    def stop(self) -> None:
        """Ask the process to stop cleanly; it ends later."""
        self._stopping[0] = 1

    def start(self) -> None:
        """Start a process on the bookie's disk, which serves once it has recovered."""
        assert not self.up
        self._stopping[0] = 0
        self.starts += 1
        self._output, writing = os.pipe()
        pid, thread = self._runtime.fork(self.process)
        if pid == 0:
            os.close(self._output)
            os.close(self.inherited)
            self._be(thread, writing)
        os.close(writing)
        self._pid, self.up = pid, True

    def reap(self) -> bool:
        """Return whether the process has died since the last call; then take note of how."""
        if not self.up or self._runtime.alive(self.process):
            return False
        status = self._wait()
        if status != Exit.KILLED and not (status == Exit.ENDED and self._stopping[0]):
            said = self._runtime.finding() if status == Exit.STUCK else self._said()
            if not (self._runtime.now() < self.full_until_ns + NOTICED_NS and REFUSED.search(said)):
                self.findings.append(f"bookie {self.name} ended with status {status}: {said}")
        os.close(self._output)
        self.up = False
        return True

    def end(self) -> None:
        """Kill what is left of the process, outside the world."""
        if self.up:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._wait()
            os.close(self._output)
            self.up = False

    def cut_power(self, seed: int, mode: int) -> None:
        """Take back what no sync covers, after the process has died."""
        self._runtime.disk_cut(self.process, seed, mode)
        self.boot += 1

    def _wait(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _said(self) -> str:
        with contextlib.suppress(OSError):
            return os.read(self._output, OUTPUT_BYTES).decode(errors="replace").strip().replace("\n", " | ")[-600:]
        return ""

    def _be(self, thread: int, output: int) -> NoReturn:
        """Be the process: open, serve, and never return."""
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        gc.disable()  # it would touch, and so copy, all memory that is shared with the parent process
        log = io.StringIO()
        logging.basicConfig(stream=log, level=logging.WARNING, force=True)
        try:
            self._runtime.enter(thread, Settings(**self._world))
            engine = Engine(self.plan, self._root, self.boot)
            engine.start()
            unset = threading.Event()
            while not self._stopping[0]:
                unset.wait(LOOK_S)
            engine.stop()
            self._runtime.exit(Exit.ENDED)
        except BaseException:  # noqa: BLE001 - the parent process reports it
            log.write(traceback.format_exc())
        os.write(output, log.getvalue()[-OUTPUT_BYTES:].encode())
        self._runtime.exit(Exit.RAISED)
        os._exit(Exit.RAISED)
