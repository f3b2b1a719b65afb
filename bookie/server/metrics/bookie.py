"""All metrics of one bookie, collected at each call. Any thread; no other thread is stopped for it."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from bookie._fast.server.stats import BatchView, Histogram
from bookie.metrics.family import Family, Labels, gauge, histogram, merged
from bookie.server.configuration.settings import StatisticsSettings
from bookie.server.data_port import DataPort
from bookie.server.disks.monitor import DiskMonitor
from bookie.server.metrics import garbage, replication, scrub, server, storage
from bookie.server.metrics.directories import directory_families
from bookie.server.metrics.operations import (
    directory_times,
    entry_sizes,
    journal_families,
    port_families,
    store_families,
)
from bookie.server.metrics.ports import port_doors
from bookie.server.metrics.process import process_families
from bookie.server.metrics.rows import Part, families
from bookie.server.metrics.windows import Windows
from bookie.storage.ledger_storage import LedgerStorage

__all__ = ["BookieMetrics"]

STATUS = {"writable": 1, "read-only": 0}


class BookieMetrics:
    """The metric families of one bookie. `families` may be called while the bookie starts, runs and stops."""

    def __init__(
        self, storage: LedgerStorage, port: DataPort, disks: DiskMonitor, settings: StatisticsSettings
    ) -> None:
        self._storage = storage
        self._port = port
        self._disks = disks
        self._enabled = settings.enabled
        self._windows = Windows(settings.rollover_s)
        self._lock = threading.Lock()

    def families(
        self,
        state: str,
        common: Mapping[str, float],
        collected: Sequence[Mapping[str, float]],
        labelled: Iterable[Family] = (),
    ) -> list[Family]:
        """Return each family once, or none if statistics are disabled.

        `state` is the bookie's state, `common` has the counters of all its parts, and `collected` those of garbage
        collection for each ledger directory; it is empty before that begins. `labelled` are metrics of services.
        """
        if not self._enabled:
            return []
        with self._lock:
            self._windows.turn()
            stores = self._storage.store_stats()
            simple, summaries = self._simple(state, common, stores, collected), self._summaries(common, stores)
            return list(merged(chain(simple, labelled, summaries)))

    def _simple(
        self,
        state: str,
        common: Mapping[str, float],
        stores: Sequence[Part],
        collected: Sequence[Mapping[str, float]],
    ) -> Iterator[Family]:
        journals = self._storage.journal_stats()
        directories = [(labels, stats) for (labels, _), stats in zip(stores, collected, strict=False)]
        return chain(
            [gauge("bookie_SERVER_STATUS", "1 if writable, 0 if read-only, -1 if not registered.",
                   STATUS.get(state, -1)),
             gauge("bookie_JOURNAL_DIRS", "Number of journal directories.", len(journals))],
            families(server.ROWS, [((), common)]),
            server.refusals(common),
            server.turned_away(common),
            server.users(self._port.users(), common),
            server.thread_pool(common),
            port_doors(common),
            _batches(self._port.batches()),
            families(storage.BOOKIE_ROWS, [((), common)]),
            storage.limits(self._storage.storage),
            families(storage.STORE_ROWS, stores),
            families(storage.JOURNAL_ROWS, journals),
            families(garbage.ROWS, [((), common)]),
            families(garbage.DIRECTORY_ROWS, directories),
            families(scrub.ROWS, [((), common)]),
            families(replication.ROWS, [((), common)]),
            replication.copied(common),
            directory_families(self._disks.state),
            process_families(),
        )  # fmt: skip

    def _summaries(self, common: Mapping[str, float], stores: Sequence[Part]) -> Iterator[Family]:
        loops, times = self._port.ops(), self._storage.store_ops()
        directories = self._port.directories()
        return chain(
            port_families(self._windows, loops),
            journal_families(self._windows, self._storage.journal_ops(), loops),
            store_families(self._windows, times),
            directory_times(self._windows, [labels for labels, _ in times], directories),
            entry_sizes(self._windows, directories),
            storage.read_families(stores, times),
            garbage.runtimes(common),
        )


def _batches(outcomes: tuple[BatchView, BatchView]) -> Iterable[Family]:
    """Yield the histograms of BP-62: of failures, and of successes."""
    name = "bookkeeper_server_BATCH_READ_ENTRY"
    for success, view in zip(("false", "true"), outcomes, strict=True):
        labels = (("success", success),)
        yield _histogram(f"{name}_REQUEST", "Time of a batch read in milliseconds.", view.request_ms, labels)
        text = "Bytes of the response to a batch read: the whole frame."
        yield _histogram(f"{name}_RESPONSE_SIZE", text, view.response_bytes, labels)


def _histogram(name: str, text: str, view: Histogram, labels: Labels) -> Family:
    edges = (*view.edges, float("inf"))
    return histogram(name, text, dict(zip(edges, view.counts, strict=True)), view.sum, labels)
