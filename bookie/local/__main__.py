"""The process that imports the bookie's code once and forks the bookies, so that they start without importing it
again.

It has one thread and is no bookie itself. Requests arrive on a socket, one message each, with the descriptor on which
the new bookie reports that it is ready. Responses name the new process, and later the code with which it exited. When
this process ends, or the process at the other end of the socket, all bookies end.
"""

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from bookie.durable import PRIVATE_FILE
from bookie.local.fork_server import MESSAGE_BYTES

PRELOADED = ("bookie.server.running", "bookie.metadata.key_value.embedded", "bookie.metadata.key_value.remote")
PR_SET_PDEATHSIG = 1


def serve(inbox: socket.socket) -> list[str] | None:
    """Fork bookies until the other end of the socket is closed. In a child, return the arguments of its command
    line.
    """
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    children: set[int] = set()
    while True:
        readable, _, _ = select.select([inbox.fileno(), wake], [], [])
        if wake in readable:
            os.read(wake, MESSAGE_BYTES)
            _reap(inbox, children)
        if inbox.fileno() not in readable:
            continue
        text, descriptors, _flags, _address = socket.recv_fds(inbox, MESSAGE_BYTES, 1)
        if not text:
            _end(children)
            return None
        (ready,) = descriptors
        request = json.loads(text)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            inbox.close()
            os.close(wake)
            os.close(woken)
            return _child(request, ready)
        os.close(ready)
        children.add(pid)
        descriptor = os.pidfd_open(pid)
        socket.send_fds(inbox, [json.dumps({"pid": pid}).encode()], [descriptor])
        os.close(descriptor)


def _child(request: dict[str, Any], ready: int) -> list[str]:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # the child ends however this process ends
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    return ["--conf", request["conf"], "--ready-fd", str(ready)]


def _reap(inbox: socket.socket, children: set[int]) -> None:
    """Report all children that have exited. If the other end no longer listens, nobody needs the report."""
    for pid in list(children):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            children.remove(pid)
            exited = {"pid": pid, "code": os.waitstatus_to_exitcode(status)}
            try:
                inbox.send(json.dumps(exited).encode())
            except OSError:
                return


def _end(children: set[int]) -> None:
    """Stop the children one by one, the newest first, since an older one may hold their metadata."""
    for pid in sorted(children, reverse=True):
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def _preload() -> None:
    from bookie.server.control import discover, discover_services  # noqa: PLC0415

    for name in PRELOADED:
        importlib.import_module(name)
    for found in (*discover(), *discover_services()):
        assert found
    gc.freeze()  # imported modules stay shared between all bookies


def main() -> None:
    """Run the fork server; in a child, run a bookie."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # the parent may have blocked the signals that stop a bookie
    inbox = socket.socket(fileno=int(sys.argv[1]))
    _preload()
    words = serve(inbox)
    if words is not None:
        from bookie.server.main import main as bookie_server  # noqa: PLC0415

        bookie_server(words)


if __name__ == "__main__":
    main()
