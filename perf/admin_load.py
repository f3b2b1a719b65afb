"""`python -m perf.admin_load`: latency of adds while operators query and scrape the bookie, and the capacity of the
admin port.

Starts a bookie on an empty directory. Adds at a fixed rate are measured in turn alone and beside gRPC clients that
query its state and one that scrapes all metrics, ten times a second each. The clients are one process with the lowest
priority. At the end they query as fast as they can, without adds: the calls per second and the bookie's CPU are
measured. Prints one JSON object.
"""

import json
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click

from bookie.admin_port.channel import AdminAccess, open_channel
from bookie.pb import bookie_service_pb2 as pb
from bookie.pb import garbage_service_pb2 as gc_pb
from bookie.pb import metrics_service_pb2 as metrics_pb
from bookie.pb.bookie_service_pb2_grpc import BookieStub
from bookie.pb.garbage_service_pb2_grpc import GarbageCollectionStub
from bookie.pb.metrics_service_pb2_grpc import MetricsStub
from perf.cpu import spent_by
from perf.load.build import build_all
from perf.paired import HERE, Aside, Plan, fresh, paired, plan_options
from perf.side_by_side.card import ROOT
from tests.fixtures.ports import free_port

DATA = ROOT / "build/perf/admin"
CALL_S = 30.0


def stub_of(kind: Any, channel: Any) -> Any:
    """Return a generated stub."""
    return kind(channel)


class Asker(threading.Thread):
    """A client on a connection of its own. With `interval_s` 0 it queries as fast as it can."""

    def __init__(self, address: str, ended: threading.Event, interval_s: float, *, scrapes: bool) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._ended = ended
        self._interval_s = interval_s
        self._scrapes = scrapes
        self.calls = 0

    def run(self) -> None:
        """Query until `ended` is set."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        with open_channel(self._address, AdminAccess(), options) as channel:
            bookie, garbage = stub_of(BookieStub, channel), stub_of(GarbageCollectionStub, channel)
            metrics = stub_of(MetricsStub, channel)
            due = time.monotonic()
            while not self._ended.is_set():
                if self._scrapes:
                    metrics.GetText(metrics_pb.GetMetricsRequest(), timeout=CALL_S)
                elif self._interval_s and self.calls % 2:
                    bookie.GetInfo(pb.GetInfoRequest(), timeout=CALL_S)
                else:
                    garbage.GetStatus(gc_pb.GetGarbageStatusRequest(), timeout=CALL_S)
                self.calls += 1
                due += self._interval_s
                self._ended.wait(max(0.0, due - time.monotonic()))


def ask(address: str, clients: int, scrapers: int, interval_s: float, parent: Connection) -> None:
    """Run clients in this process until `parent` receives a message; then send the number of calls."""
    ended = threading.Event()
    threads = [Asker(address, ended, interval_s, scrapes=number < scrapers) for number in range(clients + scrapers)]
    for one in threads:
        one.start()
    parent.send(HERE)
    parent.recv()
    ended.set()
    for one in threads:
        one.join()
    parent.send(sum(one.calls for one in threads))


@click.command()
@click.option("--clients", default=20, show_default=True, help="gRPC clients, ten calls a second each.")
@click.option("--scrapers", default=1, show_default=True, help="Clients that take all metrics, ten times a second.")
@plan_options(DATA, pairs=3, seconds=5.0)
def main(clients: int, scrapers: int, directory: Path, **plan: Any) -> None:
    """Measure adds beside operators."""
    build_all()
    port, asides = free_port(), list[Aside]()
    address = f"127.0.0.1:{port}"

    def operators() -> Aside:
        asides.append(Aside(ask, address, clients, scrapers, 0.1))
        return asides[-1]

    with fresh(directory, {"adminPort": str(port)}) as bookie:
        found = paired(bookie, Plan(**plan), operators)
        with Aside(ask, address, clients, 0, 0.0) as asking:
            begun, used = time.monotonic(), spent_by([bookie.pid])
            time.sleep(plan["seconds"])
            spent, used = time.monotonic() - begun, spent_by([bookie.pid]) - used
    print(json.dumps({
        "calls_beside": sum(one.result for one in asides),
        "calls_per_s_at_most": round(asking.result / spent),
        "cpus_then": round(used / spent, 2),
        **found,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
