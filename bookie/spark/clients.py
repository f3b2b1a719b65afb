"""The BookKeeper clients of a Python worker of Spark: opened on first use, shared by its tasks, closed when it exits.

Spark forks its workers, and each of them runs many tasks. A client holds sockets and a thread and must not be used
across a fork, so a child process discards the clients of its parent and opens its own.
"""

import atexit
import os
import threading

from bookie.client import BookKeeper
from bookie.spark.options import Cluster

__all__ = ["client_of", "close_all"]

CLIENTS_MAX = 4
"""How many clients stay open, the most recently used ones. A task uses one or two."""

_lock = threading.Lock()
_clients: dict[Cluster, BookKeeper] = {}


def client_of(cluster: Cluster) -> BookKeeper:
    """Return this process's client for a cluster, opening it if necessary. The caller must not close it.

    Args:
        cluster: the cluster and the settings of its client.

    Raises:
        ConfigurationError: a setting or the URI is invalid.
        MetadataStoreError: the metadata store cannot be reached.
    """
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
    """Close all clients of this process. Idempotent."""
    with _lock:
        while _clients:
            _clients.popitem()[1].close()


def _forget() -> None:
    """Discard the parent's clients in a forked child."""
    global _lock  # noqa: PLW0603  # the thread that held it does not exist in this process
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(close_all)
