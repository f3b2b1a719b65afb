"""The client of a Python process of Spark's: opened when first asked for, shared by its tasks, closed at its exit.

Spark forks workers, and a worker serves many tasks. A client holds sockets and a thread, so it never crosses a fork:
the child forgets what the parent had and opens its own.
"""

import atexit
import os
import threading

from bookie.client import BookKeeper
from bookie.spark.options import Cluster

__all__ = ["client_of", "close_all"]

CLIENTS_MAX = 4
"""Of clusters that were asked for last; a task uses one, or two."""

_lock = threading.Lock()
_clients: dict[Cluster, BookKeeper] = {}


def client_of(cluster: Cluster) -> BookKeeper:
    """This process' client for a cluster and settings; it stays open. MetadataStoreError, ConfigurationError."""
    with _lock:
        found = _clients.pop(cluster, None)
        if found is None:
            found = BookKeeper(cluster.uri, **dict(cluster.settings))
            found.start()
        _clients[cluster] = found
        while len(_clients) > CLIENTS_MAX:
            _clients.pop(next(iter(_clients))).close()
        return found


def close_all() -> None:
    """Close what this process opened. Twice is fine."""
    with _lock:
        while _clients:
            _clients.popitem()[1].close()


def _forget() -> None:
    """In a child: what the parent opened is the parent's."""
    global _lock  # noqa: PLW0603  # whoever held it does not live in this process
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(close_all)
