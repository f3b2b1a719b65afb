"""A real Prometheus scrapes a bookie and a client, `promtool` accepts the text, and all queries of dashboards run."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.metrics.text import write
from tests.fixtures.prometheus import Prometheus, Unavailable, find, lint
from tests.fixtures.scraped import scraped
from tests.fixtures.whole_bookie import Running, whole_bookie

DASHBOARDS = sorted((Path(__file__).resolve().parents[2] / "conf/grafana").glob("*.json"))
OWN = re.compile(r"(pybookie|process|bookie_client)_")
NAME = re.compile(r"\b(?:bookie|bookkeeper|pybookie|process|jvm|replication)_\w+")
LABELS = "label names should be written in 'snake_case' not 'camelCase'"
UPSTREAM_STYLE = {
    LABELS,
    "metric names should be written in 'snake_case' not 'camelCase'",
    'counter metrics should have "_total" suffix',
    'non-histogram and non-summary metrics should not have "_count" suffix',
}
"""What `promtool` would have otherwise, were these names ours to choose. Our own share the labels."""

pytestmark = pytest.mark.interop


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A bookie with auto-recovery, and quantiles after a second."""
    try:
        find("promtool")
    except Unavailable as error:
        pytest.skip(str(error))
    with whole_bookie(
        tmp_path, adminPort="0", autoRecoveryDaemonEnabled="true", prometheusStatsLatencyRolloverSeconds="1"
    ) as one:
        yield one


@pytest.fixture
def client(running: Running) -> Iterator[BookKeeper]:
    """A client that has written and read a ledger."""
    with BookKeeper(running.uri, diskWeightBasedPlacementEnabled=True) as client:
        with client.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger:
            for _ in range(100):
                ledger.append(b"x" * 1000)
        with client.open_ledger(ledger.id) as reader:
            assert len(list(reader.read(0, 99))) == 100
        yield client


def queries(board: dict[str, Any]) -> Iterator[str]:
    """Return the queries of all panels, with Grafana's variables filled in."""
    for panel in board["panels"]:
        for target in panel["targets"]:
            text: str = target["expr"]
            yield text.replace("$__rate_interval", "10s").replace("$job", ".*").replace("$instance", ".*")


def test_promtool_has_nothing_against_the_text(running: Running) -> None:
    """It parses, and questions of style concern only upstream's names, which stay what they are."""
    code, said = lint(write(running.bookie.metrics()))
    assert code in {0, 3}, said
    for line in said:
        name, _, question = line.partition(" ")
        assert question in ({LABELS} if OWN.match(name) else UPSTREAM_STYLE), line


def test_every_query_of_the_dashboards_runs(running: Running, client: BookKeeper, tmp_path: Path) -> None:
    """None is an error, each metric that one names exists, and what was written shows."""
    with (
        scraped(running.bookie.metrics) as bookie_at,
        scraped(client.metrics) as client_at,
        Prometheus(tmp_path, {"bookie": bookie_at, "client": client_at}) as prometheus,
    ):
        prometheus.until('bookkeeper_server_ADD_ENTRY_REQUEST{success="true",quantile="0.99"} > 0')
        prometheus.until("bookie_client_writable_bookies == 1")
        (written,) = prometheus.query("bookie_WRITE_BYTES")
        assert float(written["value"][1]) >= 100_000
        known = set(prometheus.get("label/__name__/values"))
        assert DASHBOARDS
        for path in DASHBOARDS:
            board = json.loads(path.read_text())
            for query in queries(board):
                prometheus.query(query)
                named = set(NAME.findall(re.sub(r"\{[^}]*\}", "", query)))
                assert named, query
                assert named <= known, f"{path.name}: {query}: {named - known}"
