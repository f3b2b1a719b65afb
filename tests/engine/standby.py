"""The process in which the runs of bookies take place, one after the other. Each finds it as new.

Its memory is put back after a run (native/reset.c), which costs less than another process. Where that is not possible,
and after a crash, another process is forked for the next run.
"""

import gc
import os
import pickle
import signal
import struct
import sys
from typing import NoReturn

import numpy as np

import bookie.storage.takeover.build  # noqa: F401 - the take-over imports it when it needs it
from tests.engine.peers import Known
from tests.engine.plan import Plan
from tests.engine.run import Place, be_bookie
from tests.engine.runtime import Runtime
from tests.engine.sealed import prepare

__all__ = ["Standby"]

LENGTH = struct.Struct("<Q")


class Standby:
    """The parent's side. The process is forked when it is needed first, and ends with its parent."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._pid = 0
        self._orders = self._answers = -1

    def run(self, plan: Plan, place: Place, known: Known, *, traced: bool) -> tuple[int, str]:
        """Play a run. Return its exit status, negative for a signal, and what it logged."""
        order = pickle.dumps((plan, place, known, traced), pickle.HIGHEST_PROTOCOL)
        self.runtime.shared.output_bytes = 0
        if not self._pid:
            self._fork()
        data = LENGTH.pack(len(order)) + order
        while data:
            data = data[os.write(self._orders, data) :]
        status = int(self.runtime.shared.status) if os.read(self._answers, 1) else self._reap()
        return status, self.runtime.output()

    def close(self) -> None:
        """End the process."""
        if self._pid:
            self._reap()

    def _reap(self) -> int:
        os.close(self._orders)
        os.close(self._answers)
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def _fork(self) -> None:
        sys.stdout.flush()
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._pid = self.runtime.child()
        if self._pid == 0:
            try:
                os.close(self._orders)
                os.close(self._answers)
                _serve(self.runtime, orders, answers)
            finally:
                os._exit(1)
        os.close(orders)
        os.close(answers)


def _serve(runtime: Runtime, orders: int, answers: int) -> NoReturn:
    gc.disable()  # it would write to all objects
    np.unique(np.zeros(1))  # its first call imports numpy.ma, which takes as long as a run
    prepare()
    if runtime.keep_memory() > 0:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(answers, b".")
    size = _read(orders, LENGTH.size)
    plan, place, known, traced = pickle.loads(_read(orders, *LENGTH.unpack(size)))  # noqa: S301 - from the parent
    be_bookie(runtime, plan, place, known, traced=traced)
    os._exit(1)


def _read(pipe: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(pipe, size - len(data)) or os._exit(0)
    return data
