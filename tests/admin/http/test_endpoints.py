"""Apache BookKeeper's endpoints on a live bookie: paths, formats and error codes; and the different probes."""

import json
import signal
from collections.abc import Callable
from urllib.parse import quote

import pytest

from bookie import __version__
from bookie.client import BookKeeper
from tests.admin.http.conftest import Cluster, Port

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


def test_upstreams_endpoints_answer_in_upstreams_shapes(cluster_of: Callable[..., Cluster]) -> None:
    """Each path of Apache BookKeeper's router, on one bookie with two ledgers."""
    cluster = cluster_of(autoRecoveryDaemonEnabled="true")
    port, bookie = cluster.port, cluster.bookies[0]
    full, other = cluster.write(5, 1, application=b"test"), cluster.write(0, 1)
    assert port.get("/heartbeat").text == "OK\n"
    metrics = port.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "\nbookie_SERVER_STATUS 1" in metrics.text
    _about_this_bookie(port, bookie.id)
    _about_ledgers(port, full, other, bookie.id)
    _about_the_cluster(port, bookie.id)
    _about_recovery(port)


def _about_this_bookie(port: Port, bookie: str) -> None:
    given = port.get("/api/v1/config/server_config").json
    assert given["httpServerEnabled"] == "true"
    assert given["gcWaitTime"] == "600000"  # a default value
    assert port.put("/api/v1/config/server_config", {"a": "b"}).status == 400
    assert port.get("/api/v1/bookie/state").json == {
        "running": True, "readOnly": False, "shuttingDown": False, "availableForHighPriorityWrites": True,
    }  # fmt: skip
    assert port.get("/api/v1/bookie/is_ready").text == "OK"
    space = port.get("/api/v1/bookie/info").json
    assert 0 < space["freeSpace"] < space["totalSpace"]
    assert "\nbookie_SERVER_SANITY -1" in port.get("/metrics").text  # OP4
    assert port.get("/api/v1/bookie/sanity").json == {"passed": True, "readOnly": False}
    assert "\nbookie_SERVER_SANITY 1" in port.get("/metrics").text
    (mark,) = port.get("/api/v1/bookie/last_log_mark").json.items()
    assert mark[0].startswith("LastLogMark: Journal Id - ")
    assert mark[1].startswith("Pos - ")
    assert list(port.get("/api/v1/bookie/list_disk_file").json) == ["journal files", "entrylog files", "index files"]
    assert ".txn\t" in port.get("/api/v1/bookie/list_disk_file?file_type=journal").json["journal files"]
    assert port.get("/api/v1/bookie/gc").json == {"is_in_force_gc": "false"}
    assert port.put("/api/v1/bookie/gc", {"forceMajor": False}).json == f"Triggered GC on BookieServer: {bookie}"
    details = port.get("/api/v1/bookie/gc_details").json
    assert [set(one) for one in details] == [{
        "forceCompacting", "majorCompacting", "minorCompacting", "lastMajorCompactionTime", "lastMinorCompactionTime",
        "lastEntryLocationCompactionTime", "majorCompactionCounter", "minorCompactionCounter",
        "entryLocationCompactionCounter",
    }]  # fmt: skip
    hold, free = "/api/v1/bookie/gc/suspend_compaction", "/api/v1/bookie/gc/resume_compaction"
    assert (
        port.put(hold, {"suspendMajor": "true"}).status == 400
    )  # Apache BookKeeper requires booleans, and fails without
    assert port.put(hold, {}).status == 400
    assert port.put(hold, {"suspendMajor": True}).status == 200
    assert port.get(hold).json == {"isMajorGcSuspended": "true", "isMinorGcSuspended": "false"}
    assert port.put(free, {"resumeMajor": True}).status == 200
    assert port.get(hold).json["isMajorGcSuspended"] == "false"
    assert set(port.get("/api/v1/bookie/entry_location_compact").json.values()) == {False}
    assert port.put("/api/v1/bookie/entry_location_compact", {"entryLocationRocksDBCompact": True}).status == 200
    assert port.put("/api/v1/bookie/state/readonly", {"readOnly": True}).json == {"readOnly": True}
    assert port.get("/readyz").text == "ready: read-only\n"
    assert port.put("/api/v1/bookie/state/readonly", {"readOnly": False}).json == {"readOnly": False}
    assert port.put("/api/v1/bookie/expand_storage").status == 500


def _about_ledgers(port: Port, full: int, other: int, bookie: str) -> None:
    every = port.get("/api/v1/ledger/list").json
    assert every == {str(full): None, str(other): None}
    described = port.get("/api/v1/ledger/list?print_metadata=true&decode_meta=true&page=1").json
    assert described[str(full)]["customMetadata"] == {"application": "dGVzdA=="}
    assert "BookieMetadataFormatVersion" in port.get("/api/v1/ledger/list?print_metadata=true").json[str(full)]
    one = port.get(f"/api/v1/ledger/metadata?ledger_id={full}").json[str(full)]
    assert (one["state"], one["lastEntryId"], one["closed"]) == ("CLOSED", 4, True)
    assert one["allEnsembles"] == {"0": [{"id": bookie}]}
    assert one["password"] == ""
    read = port.get(f"/api/v1/ledger/read?ledger_id={full}&start_entry_id=1&end_entry_id=3").json
    assert read == {"1": "entry 1", "2": "entry 2", "3": "entry 3"}
    assert port.get(f"/api/v1/ledger/read?ledger_id={full}&page=1").json["Entries for page: "] == "1"
    assert port.get(f"/api/v1/ledger/read?ledger_id={full}&start_entry_id=2000&page=1").status == 500
    for path, status in (("metadata", 404), ("read", 404), ("metadata?ledger_id=x", 400), ("read?ledger_id=9999", 404)):
        assert port.get(f"/api/v1/ledger/{path}").status == status, path
    assert port.ask("DELETE", "/api/v1/ledger/delete").status == 404
    assert port.ask("DELETE", f"/api/v1/ledger/delete?ledger_id={other}").json == f"Deleted ledger: {other}"
    assert port.get("/api/v1/ledger/list").json == {str(full): None}


def _about_the_cluster(port: Port, bookie: str) -> None:
    assert port.get("/api/v1/bookie/list_bookies").json == {bookie: None}
    assert port.get("/api/v1/bookie/list_bookies?type=ro&print_hostnames=true").json == {}
    assert port.get("/api/v1/bookie/list_bookies?print_hostnames=true").json == {bookie: "127.0.0.1"}
    room = port.get("/api/v1/bookie/list_bookie_info").json
    assert room[bookie].startswith(": {Free: ")
    assert room["ClusterInfo: "].endswith("B)}")
    info = port.get("/api/v1/bookie/cluster_info").json
    assert (info["totalBookiesCount"], info["writableBookiesCount"], info["unavailableBookiesCount"]) == (1, 1, 0)
    assert info["clusterUnderReplicated"] is False


def _about_recovery(port: Port) -> None:
    base = "/api/v1/autorecovery"
    assert port.get(f"{base}/status").json == {"enabled": True}
    assert port.put(f"{base}/status?enabled=false").json == {"enabled": False}
    assert port.put(f"{base}/status?enabled=true").json == {"enabled": True}
    assert port.put(f"{base}/status").status == 400
    assert port.get(f"{base}/list_under_replicated_ledger").status == 404
    assert port.put(f"{base}/lost_bookie_recovery_delay", {"delay_seconds": 7}).status == 200
    assert port.get(f"{base}/lost_bookie_recovery_delay").text == "lostBookieRecoveryDelay value: 7"
    assert port.put(f"{base}/lost_bookie_recovery_delay", {"delay_seconds": "7"}).status == 400
    assert port.get(f"{base}/who_is_auditor").status in (200, 404)  # elected by now or not
    assert port.put(f"{base}/decommission", {"bookie_src": "nobody:1"}).status == 400
    assert port.put(f"{base}/decommission").status == 404
    assert port.put(f"{base}/bookie", {"bookie_src": "text"}).status == 404


def test_what_is_wrong_with_a_request_is_said(cluster_of: Callable[..., Cluster]) -> None:
    """Wrong methods, invalid or long bodies and unknown paths get Apache BookKeeper's codes and a line of text."""
    port = cluster_of().port
    for method, path, body, status in (
        ("POST", "/metrics", None, 403),
        ("POST", "/api/v1/bookie/gc", None, 405),
        ("POST", "/api/v1/bookie/state", None, 404),
        ("PUT", "/api/v1/ledger/list", None, 404),
        ("GET", "/api/v1/nothing", None, 404),
        ("GET", "/console/../plane.py", None, 404),
        ("GET", "/console/%2e%2e/http/plane.py", None, 404),
        ("PUT", "/api/v1/bookie/state/readonly", None, 404),
        ("PUT", "/api/v1/bookie/state/readonly", b"{", 400),
        ("PUT", "/api/v1/bookie/state/readonly", [1], 400),
        ("PUT", "/api/v1/bookie/state/readonly", {"readOnly": "yes"}, 400),
        ("PUT", "/api/v1/bookie/state/readonly", b"[" * 60_000, 400),
        ("PUT", "/api/v1/bookie/state/readonly", b" " * 70_000, 413),
        ("GET", "/api/v1/ledger/read?ledger_id=" + "9" * 30, None, 400),
        ("GET", "/api/v1/ledger/list?a=" + "b" * 5000, None, 414),
    ):
        answer = port.ask(method, path, body)
        assert answer.status == status, (method, path, answer)
        assert answer.text.strip(), path
        assert "Traceback" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.thorough
def test_probes_differ(cluster_of: Callable[..., Cluster]) -> None:
    """OP4: a read-only bookie is ready; a bookie stops properly under requests. The text says in which state it is."""
    cluster = cluster_of()
    port, bookie = cluster.port, cluster.bookies[0]
    assert [port.get(path).text for path in ("/livez", "/healthz", "/readyz")] == [
        "alive: writable\n", "ok: writable\n", "ready: writable\n",
    ]  # fmt: skip
    port.put("/api/v1/bookie/state/readonly", {"readOnly": True})
    assert port.get("/readyz").status == 200
    assert port.ask("HEAD", "/readyz").body == b""
    bookie.signal(signal.SIGTERM)
    assert bookie.wait() == 0


@pytest.mark.thorough
def test_openmetrics_for_who_asks(cluster_of: Callable[..., Cluster]) -> None:
    """The `Accept` header of a scrape selects the format."""
    answer = cluster_of().port.ask(
        "GET", "/metrics", accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    )
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_logs_are_shown_in_pages(cluster_of: Callable[..., Cluster]) -> None:
    """Logs in the order of their names, and the ledgers of one of them, also one that was deleted."""
    cluster = cluster_of()
    port = cluster.port
    ids = [cluster.write(count, 1) for count in range(3)]
    with BookKeeper(cluster.uri) as bk:
        for name in ("orders", "a/b \u00e4", "Orders of old"):
            bk.logs.create(name, ids)
        bk.delete_ledger(ids[1])
    first = port.get("/api/console/logs?limit=2").json
    assert [one["log"] for one in first["logs"]] == ["Orders of old", "a/b \u00e4"]
    assert (first["logs"][0]["ledgers"], first["logs"][0]["newest"]) == (3, ids[2])
    assert [one["log"] for one in port.get(f"/api/console/logs?after={quote(first['next'])}").json["logs"]] == [
        "orders"
    ]
    assert len(port.get("/api/console/logs?text=orders").json["logs"]) == 2
    path = "/api/console/log?name=a%2Fb%20%C3%A4"
    page = port.get(f"{path}&limit=2").json
    assert [(one["ledger"], one["state"]) for one in page["ledgers"]] == [(ids[0], "CLOSED"), (ids[1], "DELETED")]
    assert (page["count"], page["writers"], page["next"]) == (3, {}, 2)
    rest = port.get(f"{path}&first=2").json
    assert ([one["ledger"] for one in rest["ledgers"]], rest["next"]) == ([ids[2]], None)
    assert port.get("/api/console/log?name=nobody").status == 404


def test_what_differs_from_the_default(cluster_of: Callable[..., Cluster]) -> None:
    """A value that is the default in other words does not differ from it; secrets stay masked."""
    port = cluster_of(diskUsageWarnThreshold="0.9", flushInterval="4321", diskUsageThreshold="0.950").port
    found = port.get("/api/console/configuration").json
    assert set(found) == set(port.get("/api/v1/config/server_config").json)
    assert not any(found[one]["changed"] for one in ("diskUsageWarnThreshold", "diskUsageThreshold"))
    one = found["flushInterval"]
    assert (one["value"], one["changed"], bool(one["about"])) == ("4321", True, True)
    assert one["default"] != "4321"
    assert {"flushInterval", "httpServerEnabled"} <= {name for name, one in found.items() if one["changed"]}


def test_what_the_console_asks_for(cluster_of: Callable[..., Cluster]) -> None:
    """Search by custom metadata with sums, in pages that continue where the last one ended; entries; configuration."""
    cluster = cluster_of()
    port = cluster.port
    ids = [cluster.write(count, 1, application=b"odd" if count % 2 else b"even") for count in range(4)]
    odd = port.get("/api/console/ledgers?text=application%3Dodd").json
    assert [one["ledger"] for one in odd["ledgers"]] == [ids[1], ids[3]]
    assert (odd["length"], odd["entries"], odd["looked"], odd["next"]) == (4 * len("entry 0"), 4, 4, None)
    seen: list[int] = []
    after: int | None = -1
    while after is not None:
        page = port.get(f"/api/console/ledgers?limit=3&after={after}").json
        seen += [one["ledger"] for one in page["ledgers"]]
        after = page["next"]
    assert seen == ids
    newest = port.get("/api/console/ledgers?order=newest&limit=3").json
    assert [one["ledger"] for one in newest["ledgers"]] == ids[:0:-1]
    rest = port.get(f"/api/console/ledgers?order=newest&after={newest['next']}").json
    assert ([one["ledger"] for one in rest["ledgers"]], rest["next"]) == (ids[:1], None)
    assert port.get("/api/console/ledgers?order=largest").status == 400
    assert port.get("/api/console/ledgers?text=EVEN&state=CLOSED").json["entries"] == 2
    assert port.get("/api/console/ledgers?state=SHUT").status == 400
    assert port.get("/api/console/ledgers?bookie=nobody:1").json["ledgers"] == []
    entries = port.get(f"/api/console/entries?ledger_id={ids[3]}&first=1&count=1").json["entries"]
    assert entries == [{"entry": 1, "bytes": 7, "data": "ZW50cnkgMQ=="}]
    assert port.get("/api/console/metrics?names=bookie_SERVER_STATUS").json["families"] == {
        "bookie_SERVER_STATUS": [["", {}, 1]]
    }
    found = port.get("/api/console/cluster").json
    rows = found["bookies"]
    assert [(one["state"], one["weight"], one["version"]) for one in rows] == [("writable", 1.0, __version__)]
    given = port.get("/api/v1/config/server_config").json
    limits = {"warn": float(given["diskUsageWarnThreshold"]), "full": float(given["diskUsageThreshold"])}
    assert found["limits"] == port.get("/api/console/bookie").json["limits"] == limits
    assert [one["console"] for one in rows] == [f"http://{host}:{number}/" for host, number in [port.address]]
    assert port.get("/api/console/bookie").json["role"] == "admin"
    assert port.put("/api/console/checkpoint").json == "Flushed"
    assert json.loads(port.get("/api/console/recovery").body)["count"] == 0
