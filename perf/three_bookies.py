"""Three bookies of either kind on loopback, for measurements through clients and brokers."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import LASTING, JavaPeer
from tests.fixtures.java_process import JavaBookie
from tests.fixtures.ports import free_port

__all__ = ["KINDS", "three_bookies"]

KINDS = ("ours", "java")
BOOKIES = 3
CACHES = {"dbStorage_writeCacheMaxSizeMb": "256", "dbStorage_readAheadCacheMaxSizeMb": "64"}


@contextmanager
def three_bookies(kind: str, peer: JavaPeer, directory: Path, uri: str) -> Iterator[list[int]]:
    """Run three bookies in subdirectories, with their metadata at `uri`, and yield the ids of their processes.

    Args:
        kind: One of KINDS.
        peer: The Java of Apache BookKeeper's bookies.
        directory: Where their directories are made.
        uri: A cluster that was initialized.
    """
    with ExitStack() as ends:
        pids = []
        for number in range(BOOKIES):
            place = directory / str(number)
            if kind == "ours":
                ours = BookieProcess(place, uri, {**CACHES, "logLevel": "warning"})
                ours.start()
                ends.callback(ours.stop)
                pids.append(ours.pid)
            else:
                java = JavaBookie(
                    peer, place, free_port(), uri, {**CACHES, "enableStatistics": "false"}, options=LASTING
                )
                java.start()
                ends.callback(java.stop)
                assert java.process is not None
                pids.append(java.process.pid)
        yield pids
