"""`python -m perf.scale.slow_bookie`: `bookie-server` with disks of a set latency and rate (`perf.scale.disks`).

They need the module `testing.slow`, which is not part of a release build. No other command can have them.
"""

import json
import os
import socket
import sys
import threading

from bookie._fast.testing import slow
from bookie.server import main
from bookie.storage import ledger_storage
from perf.scale.disks import VARIABLE

__all__: list[str] = []


def answer(listener: socket.socket) -> None:
    """Tell everybody who connects how many bytes were written to each disk."""
    while True:
        with listener.accept()[0] as channel:
            channel.sendall(json.dumps([disk.bytes for disk in slow.used()]).encode())


def run() -> None:
    """Make the disks, then run the command."""
    plan = json.loads(os.environ[VARIABLE])
    slow.set_disks(plan["groups"], latency_us=plan["latency_us"], bytes_s=plan["bytes_s"])
    ledger_storage.Files = slow.SlowFiles  # type: ignore[attr-defined]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(plan["socket"])
    listener.listen()
    threading.Thread(target=answer, args=(listener,), name="disks", daemon=True).start()
    main.main()


if __name__ == "__main__":
    sys.argv[0] = "bookie-server"
    run()
