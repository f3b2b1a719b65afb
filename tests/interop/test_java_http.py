"""HTTP ports of a Java bookie and of ours, each with one closed ledger: paths, statuses, shapes of JSON, and metrics.

Each difference is listed here with its reason, and a reason that nothing needs any more fails the test.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from bookie.client import BookKeeper, ChannelV3
from bookie_admin.http.routes import ROUTES
from tests.admin.http.conftest import Port
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import JavaPeer, JavaUnavailable, find_http_peer
from tests.fixtures.java_process import SMALL, JavaBookie
from tests.fixtures.ports import free_port
from tests.interop.conftest import new_cluster

pytestmark = pytest.mark.interop

SERVED = {"httpServerEnabled": "true", "autoRecoveryDaemonEnabled": "true", "sanityCheckMetricsEnabled": "true"}
JAVA_SERVED = {
    **SMALL,
    **SERVED,
    "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer",
    "httpServerHost": "127.0.0.1",
    "statsProviderClass": "org.apache.bookkeeper.stats.prometheus.PrometheusMetricsProvider",
}


@dataclass(frozen=True, slots=True)
class Side:
    """A bookie with an HTTP port, and the ledger that it holds."""

    port: Port
    ledger: int


@dataclass(frozen=True, slots=True)
class Pair:
    """The two bookies, to which the same is done."""

    java: Side
    ours: Side


@pytest.fixture(scope="module")
def http_peer() -> JavaPeer:
    """Apache BookKeeper with the jars that serve HTTP."""
    try:
        return find_http_peer()
    except JavaUnavailable as reason:
        pytest.skip(str(reason))


def used(uri: str, address: tuple[str, int], http: str) -> Side:
    """Return the side after a ledger was written, read, polled and fenced on it."""
    with BookKeeper(uri) as client:
        with client.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, password=b"") as ledger:
            for number in range(3):
                ledger.append(f"entry {number}".encode())
        with client.open_ledger(ledger.id, password=b"") as reader:
            assert len(list(reader.read(0, 2))) == 3
        with client.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, password=b"") as other:
            other.append(b"fenced")
            client.open_ledger(other.id, password=b"").close()
    with ChannelV3.connect(*address) as channel:
        channel.wait_for_lac(ledger.id, 1, 10)
    return Side(Port(http), int(ledger.id))


@pytest.fixture(scope="module")
def pair(http_peer: JavaPeer, zookeeper: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both bookies, each in a cluster of its own."""
    with ExitStack() as undo:
        base = tmp_path_factory.mktemp("http")
        uris = [new_cluster(http_peer, zookeeper.address, base / f"init-{number}") for number in range(2)]
        at = str(free_port())
        java = JavaBookie(http_peer, base / "java", free_port(), uris[0], {**JAVA_SERVED, "httpServerPort": at})
        undo.callback(java.kill)
        java.start()
        ours = BookieProcess(base / "ours", uris[1], {**SERVED, "httpServerPort": "0"})
        undo.callback(ours.kill)
        ours.start()
        yield Pair(
            used(uris[0], ("127.0.0.1", java.port), f"127.0.0.1:{at}"), used(uris[1], ours.address, ours.planes["http"])
        )


def paths(peer: JavaPeer) -> set[str]:
    """Return the constants of the routing class, from the jar itself."""
    (jar,) = [Path(one) for one in peer.classpath.split(":") if Path(one).name.startswith("http-server-")]
    with ZipFile(jar) as classes:
        router = classes.read("org/apache/bookkeeper/http/HttpRouter.class")
        found = re.findall(rb"/(?:api/v1/[a-z_/]+|heartbeat|metrics)", router)
    return {one.decode() for one in found}


def test_every_path_of_java_is_served(http_peer: JavaPeer) -> None:
    """No path of Java's is missing, and paths beyond them begin otherwise."""
    found = paths(http_peer)
    assert len(found) > 25
    assert found <= ROUTES.keys()
    assert not {path for path in ROUTES.keys() - found if path.startswith("/api/v1")}


QUERIES = {
    "/api/v1/ledger/list": ("print_metadata=true",),
    "/api/v1/ledger/metadata": ("ledger_id={ledger}", "ledger_id=999999"),
    "/api/v1/ledger/read": ("ledger_id={ledger}", "ledger_id={ledger}&start_entry_id=1&end_entry_id=1"),
    "/api/v1/bookie/list_bookies": ("type=rw", "type=ro", "type=rw&print_hostnames=true"),
    "/api/v1/bookie/list_disk_file": ("file_type=journal", "file_type=entrylog"),
}
"""Besides the plain path. Of a path that only takes changes GET is refused alike."""

DIFFERS = {
    "/api/v1/config/server_config": "Java shows what its file sets, ours every key with the value that counts",
    "/api/v1/ledger/metadata?ledger_id=999999": "Java says 500; a ledger that is not there is no fault of the bookie",
}
"""Requests that are answered otherwise, and why."""

PLACEHOLDERS = {
    r"\([0-9a-f]+\.txn\)": "(X.txn)",
    r"^/.*": "DIRECTORY",
    r"\d+": "N",
}
"""In names: what no two bookies have in common, and what stands for it."""


def named(key: str) -> str:
    """Return a name without the parts that only this bookie has."""
    for pattern, placeholder in PLACEHOLDERS.items():
        key = re.sub(pattern, placeholder, key)
    return key


def shape(value: object) -> object:
    """Return names and types."""
    if isinstance(value, dict):
        return {named(key): shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def asked(side: Side, request: str) -> tuple[int, object]:
    """Return the status and the shape of JSON, or that it is text. The words of a refusal are not compared."""
    answer = side.port.get(request.format(ledger=side.ledger))
    if answer.status != 200:
        return answer.status, None
    try:
        return 200, shape(json.loads(answer.text))
    except ValueError:
        return 200, "text"


def test_what_only_asks_is_answered_alike(http_peer: JavaPeer, pair: Pair) -> None:
    """Requests that change nothing get the same status and shape from both."""
    found = {}
    for path in sorted(paths(http_peer)):
        for request in (path, *(f"{path}?{query}" for query in QUERIES.get(path, ()))):
            java, ours = asked(pair.java, request), asked(pair.ours, request)
            if java != ours:
                found[request] = f"java {java}, ours {ours}"
    assert found.keys() == DIFFERS.keys(), found


Metric = tuple[str, frozenset[str]]


def metrics(text: str) -> Mapping[str, Metric]:
    """Return type and labels by name."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)", text, re.MULTILINE))
    labels: dict[str, set[str]] = {name: set() for name in kinds}
    for name, given in re.findall(r"^([a-zA-Z_]\w*)\{([^}]*)\}", text, re.MULTILINE):
        family = name if name in kinds else re.sub("_(count|sum|bucket)$", "", name)
        labels.setdefault(family, set()).update(re.findall(r'(\w+)="', given))
    return {name: (kinds.get(name, ""), frozenset(found)) for name, found in labels.items()}


LACKS = {
    r"jvm_\w+": "of a Java machine; the two that dashboards draw are there",
    r"process_cpu_seconds": "the family is called by its one sample, process_cpu_seconds_total",
    r"\w+_zk_\w+|\w+_watcher_state_\w+": "of Java's ZooKeeper client",
    r"replication_(\w+_)?bookkeeper_client_\w+": "of Java's ledger client, which auto-recovery has there",
    r"bookkeeper_server_Bookie(HighPriorityThread|WriteThreadPool|LongPollThread)_\w+": "there is no such pool",
    r"bookkeeper_server_WRITE_THREAD_QUEUED_LATENCY": "nor its queue",
    r"bookkeeper_server_READ_ENTRY_BLOCKED(_WAIT)?": "a read that finds no room is refused, none waits for it",
    r"bookkeeper_server_thread_executor_tasks_failed": "a read that fails is an answer: READ_ENTRY, success=false",
    r"bookie_BOOKIE_RECOVERY_ADD_ENTRY": "recovery adds count with the others, BOOKIE_ADD_ENTRY",
    r"bookie_flush_ledger_index": "one transaction with flush_locations_index",
    r"bookie_readahead_time": "a read of an entry log includes what it reads ahead: read_entrylog_time",
    r"bookie_read_cache_count": "the read cache is counted in bytes: read_cache_size",
    r"bookie_ENTRY_LOCATION_COMPACTION_TOTAL": "the index needs no compaction",
    r"bookie_(db_storage_thread|sync_thread|journal_callback|journal_force_write_thread)_time": "no such thread",
    r"bookie_JOURNAL_QUEUE_MAX_SIZE": "the journal's queue is limited in bytes: JOURNAL_MEMORY_MAX",
    r"bookie_journal_JOURNAL_FORCE_LEDGER": "a force is answered when its group is synced: FORCE_LEDGER",
    r"bookie_journal_JOURNAL_(FORCE_WRITE_ENQUEUE|FORCE_WRITE_GROUPING_TOTAL|PROCESS_TIME_LATENCY)":
        "a group is written and synced by one thread, there is no queue between",
    r"replication_auditor_\w+_TIME(_FOR_LOST_BOOKIE)?": "no time of an audit is kept",
    r"replication_(auditor|replication_worker)_(READ|WRITE)_DATA_LATENCY": "nor of one entry copied",
    r"replication_auditor_NUM_(BYTES|ENTRIES)_(READ|WRITTEN)": "only workers copy",
    r"replication_auditor_NUM_(BOOKIES|FRAGMENTS)_PER_LEDGER": "ledgers are counted, not how they lie",
    r"replication_auditor_(NUM_UNDER_REPLICATED_LEDGERS|UNDER_REPLICATED_LEDGERS_TOTAL_SIZE)":
        "pybookie_auditor_ledgers_marked_total; the list is at /api/v1/autorecovery/list_under_replicated_ledger",
    r"replication_auditor_NUM_(DELAYED_BOOKIE_AUDITS_CANCELLED|SKIPPING_CHECK_TASK_TIMES)": "not counted",
    r"replication_auditor_NUM_UNDERREPLICATED_LEDGERS_ELAPSED_RECOVERY_GRACE_PERIOD": "there is no such period",
    r"replication_replication_worker_(rereplicate|NUM_ENTRIES_UNABLE_TO_READ_FOR_REPLICATION)":
        "pybookie_replication_failed_rounds_total and _unrecoverable_rounds_total count what failed",
    r"replication_replication_worker_NUM_NOT_ADHERING_PLACEMENT_LEDGERS_REPLICATED": "counted with all others",
}  # fmt: skip
"""Names that a Java bookie shows and ours does not, and why."""

LATE = {r"bookie_readahead_time"}
"""Names that a Java bookie shows only when they have reached a millisecond."""

THREADS = {"thread", "threadPool"}
"""Labels that a Java bookie gives to what its threads count apart; ours are not of a thread."""
LABELLED = {
    r"bookie_(COMPACT|EXTRACT_META|GC_LEDGER|THREAD)_RUNTIME": "one thread collects garbage in all directories",
}
"""Where labels differ beyond those, and why."""
UNQUANTILED = r"\w+_NUM_BYTES_(READ|WRITTEN)"
"""Only number and sum are known."""


def unlike(java: Mapping[str, Metric], ours: Mapping[str, Metric]) -> Iterator[str]:
    """Return the metrics that both show, but not with the same type and labels."""
    for name in java.keys() & ours.keys():
        (kind, labels), (our_kind, our_labels) = java[name], ours[name]
        if kind != our_kind and kind:
            yield f"{name}: java {kind}, ours {our_kind}"
        missing = labels - THREADS - our_labels - ({"quantile"} if re.fullmatch(UNQUANTILED, name) else set())
        if missing and not any(re.fullmatch(pattern, name) for pattern in LABELLED):
            yield f"{name}: ours has no label {missing}"


def test_every_metric_of_java_is_shown(pair: Pair) -> None:
    """Each metric is shown by its name, with type and labels. The others have a reason, and each reason is used."""
    java, ours = (
        metrics(re.sub(r"_dir_+\w+_usage", "_dir_PATH_usage", side.port.get("/metrics").text))
        for side in (pair.java, pair.ours)
    )
    assert {"bookie_add_entry", "bookkeeper_server_READ_ENTRY_FENCE_WAIT"} <= java.keys(), "nothing was done there"
    lacking = java.keys() - ours.keys()
    unexplained = {name for name in lacking if not any(re.fullmatch(pattern, name) for pattern in LACKS)}
    assert not unexplained
    assert not sorted(unlike(java, ours))
    idle = {pattern for pattern in LACKS.keys() - LATE if not any(re.fullmatch(pattern, name) for name in lacking)}
    idle |= {pattern for pattern in LABELLED if not any(re.fullmatch(pattern, name) for name in java.keys() & ours)}
    assert not idle
