"""The entry points of the commands, for which nothing but `signal` is imported before Ctrl-C is expected.

Ctrl-C while a command is imported ends the process at once: nothing was done yet. An exception could not do that
reliably, because it may come in a callback that Python ignores exceptions of.
"""

import contextlib
import importlib
import os
import signal
from types import FrameType

__all__ = ["bkadmin", "bkpipe", "bookie_server", "EXIT_INTERRUPTED", "expect_work"]

EXIT_INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells define it: 128 + SIGINT."""
STDERR = 2


class _Leave:
    """A handler of SIGINT that ends the process. It can be told from handlers of others."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):
            os.write(STDERR, f"{self._name}: interrupted; nothing was done\n".encode())
        os._exit(EXIT_INTERRUPTED)


def bkadmin() -> None:
    """Run `bkadmin` with the arguments of the process and exit."""
    _enter("bkadmin", "bookie_admin.bkadmin.main")


def bkpipe() -> None:
    """Run `bkpipe` with the arguments of the process and exit."""
    _enter("bkpipe", "bookie.spark.bkpipe")


def bookie_server() -> None:
    """Run `bookie-server` with the arguments of the process and exit."""
    _enter("bookie-server", "bookie.server.main")


def expect_work() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on, because there may be something to undo or to report."""
    if isinstance(signal.getsignal(signal.SIGINT), _Leave):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _enter(name: str, module: str) -> None:
    """Run the function `main` of a module. Where SIGINT is ignored, as behind `nohup` and `&`, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Leave(name))
    try:
        importlib.import_module(module).main()
    finally:  # an exception could only disturb the end of the interpreter
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
