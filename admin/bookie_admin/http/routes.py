"""The endpoints of all paths: first those of Apache BookKeeper, then those of this project. `bookie_admin.roles` has
their roles.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bookie_admin.http import cluster, ledgers, logs, probes, recovery, this_bookie, views
from bookie_admin.http.request import Endpoint
from bookie_admin.roles import Need, needed_by_route

__all__ = ["Answer", "ROUTES"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The endpoint of a method of a path, the role it needs, and whether it asks the metadata store. An endpoint
    without a role is a probe, which must not block.
    """

    endpoint: Endpoint
    need: Need
    asks_store: bool


def _probe(endpoint: Endpoint) -> dict[str, Endpoint]:
    return {"GET": endpoint}


def _asks_store(endpoint: Endpoint) -> bool:
    return endpoint.__module__.rpartition(".")[2] in ASKS_STORE or endpoint in ASK_STORE


def _both(
    get: Endpoint | None = None, put: Endpoint | None = None, delete: Endpoint | None = None
) -> dict[str, Endpoint]:
    return {method: one for method, one in (("GET", get), ("PUT", put), ("DELETE", delete)) if one is not None}


ENDPOINTS: Mapping[str, Mapping[str, Endpoint]] = {
    "/heartbeat": dict.fromkeys(("GET", "PUT", "POST", "DELETE"), probes.heartbeat),
    "/metrics": _both(probes.metrics),
    "/api/v1/config/server_config": _both(this_bookie.configuration, this_bookie.change_configuration),
    "/api/v1/ledger/delete": _both(delete=ledgers.delete),
    "/api/v1/ledger/list": _both(ledgers.list_ledgers),
    "/api/v1/ledger/metadata": _both(ledgers.metadata),
    "/api/v1/ledger/read": _both(ledgers.read),
    "/api/v1/bookie/list_bookies": _both(cluster.list_bookies),
    "/api/v1/bookie/list_bookie_info": _both(cluster.list_bookie_info),
    "/api/v1/bookie/last_log_mark": _both(this_bookie.last_log_mark),
    "/api/v1/bookie/list_disk_file": _both(this_bookie.list_disk_file),
    "/api/v1/bookie/expand_storage": _both(put=this_bookie.expand_storage),
    "/api/v1/bookie/gc": _both(this_bookie.gc_forced, this_bookie.collect),
    "/api/v1/bookie/gc_details": _both(this_bookie.gc_details),
    "/api/v1/bookie/gc/suspend_compaction": _both(this_bookie.suspended, this_bookie.suspend),
    "/api/v1/bookie/gc/resume_compaction": _both(put=this_bookie.resume),
    "/api/v1/bookie/state": _both(this_bookie.state),
    "/api/v1/bookie/state/readonly": _both(this_bookie.read_only, this_bookie.set_read_only),
    "/api/v1/bookie/sanity": dict.fromkeys(("GET", "POST"), this_bookie.sanity),
    "/api/v1/bookie/is_ready": _probe(this_bookie.is_ready),
    "/api/v1/bookie/info": _both(this_bookie.info),
    "/api/v1/bookie/cluster_info": _both(cluster.cluster_info),
    "/api/v1/bookie/entry_location_compact": _both(this_bookie.compacting_index, this_bookie.compact_index),
    "/api/v1/autorecovery/status": _both(recovery.status, recovery.switch),
    "/api/v1/autorecovery/bookie": _both(put=recovery.recover),
    "/api/v1/autorecovery/list_under_replicated_ledger": _both(recovery.underreplicated),
    "/api/v1/autorecovery/who_is_auditor": _both(recovery.auditor),
    "/api/v1/autorecovery/trigger_audit": _both(put=recovery.trigger_audit),
    "/api/v1/autorecovery/lost_bookie_recovery_delay": _both(recovery.delay, recovery.set_delay),
    "/api/v1/autorecovery/decommission": _both(put=recovery.decommission),
    "/healthz": _probe(probes.healthz),
    "/livez": _probe(probes.livez),
    "/readyz": _probe(probes.readyz),
    "/api/console/bookie": _both(views.bookie),
    "/api/console/checkpoint": _both(put=views.checkpoint),
    "/api/console/cluster": _both(views.cluster),
    "/api/console/configuration": _both(views.configuration),
    "/api/console/entries": _both(views.entries),
    "/api/console/ledger": _both(views.ledger),
    "/api/console/ledgers": _both(views.ledgers),
    "/api/console/log": _both(logs.log),
    "/api/console/logs": _both(logs.logs),
    "/api/console/metrics": _both(views.metrics),
    "/api/console/recovery": _both(views.recovery),
}

ASKS_STORE = frozenset({"cluster", "ledgers", "logs", "recovery"})
"""The modules whose endpoints ask the metadata store, all of them."""
ASK_STORE = frozenset({
    this_bookie.sanity, views.cluster, views.entries, views.ledger, views.ledgers, views.recovery
})  # fmt: skip
"""The endpoints of other modules that do. A change of the read-only mode does not count: it waits for the registration
to follow, but has had its effect before.
"""

ROUTES: Mapping[str, Mapping[str, Answer]] = {
    path: {
        method: Answer(endpoint, needed_by_route(method, path), _asks_store(endpoint))
        for method, endpoint in answers.items()
    }
    for path, answers in ENDPOINTS.items()
}
