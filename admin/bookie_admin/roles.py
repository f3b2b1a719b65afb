"""The role that each call of the admin ports needs: one table for gRPC methods and one for HTTP routes. Pure data.

A role permits everything that lower roles permit. A call that is not in the tables needs the highest role. Tests
compare the tables with the services, the routes and docs/admin.md.
"""

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bookie.metadata.key_value.driver import COOKIES, INSTANCE, LEDGERS

__all__ = ["METHODS", "Need", "needed_by_method", "needed_by_route", "Role", "ROUTES"]


class Role(enum.IntEnum):
    """The roles of callers, in ascending order."""

    METRICS = 1
    """May read metrics only."""
    READ = 2
    """May read the state of the bookie and the cluster."""
    READ_DATA = 3
    """May read entries, and the metadata of ledgers without their passwords."""
    OPERATE = 4
    """May change the state of the bookie, open sessions with the metadata store, and do all that its clients do
    there.
    """
    ADMIN = 5
    """May also delete ledgers over HTTP, cookies, and the cluster's metadata."""

    @property
    def word(self) -> str:
        """The name of the role in token files."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Need:
    """The role that a call needs; None: no credentials. Requests for which `asks` is true need the role `more`
    instead.
    """

    role: Role | None
    more: Role | None = None
    where: str = ""
    """A description of `asks` for the documentation."""
    asks: Callable[[Any], bool] = lambda _request: False

    def of(self, request: Any) -> Role | None:
        """Return the role that a request needs: a gRPC message, or the `bookie_admin.http.request.Parameters` of an
        HTTP request.
        """
        return self.more if self.more is not None and self.asks(request) else self.role


OPEN, METRICS, READ, READ_DATA, OPERATE, ADMIN = map(
    Need, (None, Role.METRICS, Role.READ, Role.READ_DATA, Role.OPERATE, Role.ADMIN)
)
STORED_LEDGER = Need(
    Role.READ,
    Role.OPERATE,
    "a ledger's key: its password is in the value",
    lambda request: str(request.key).startswith(LEDGERS),
)
CLUSTERS_KEY = Need(
    Role.OPERATE,
    Role.ADMIN,
    "a cookie's key, or the cluster's",
    lambda request: request.key == INSTANCE or str(request.key).startswith(COOKIES),
)
CLUSTERS_OWN = Need(
    Role.OPERATE,
    Role.ADMIN,
    "the cluster's key, where there is one",
    lambda request: request.key == INSTANCE and request.HasField("expected"),
)
MASS_DELETION = Need(
    Role.OPERATE, Role.ADMIN, "a deletion beyond the alarm", lambda request: bool(request.mass_deletion)
)

METHODS: Mapping[str, Need] = {
    "bookie.admin.v1.Bookie/GetInfo": READ,
    "bookie.admin.v1.Bookie/GetConfiguration": READ,
    "bookie.admin.v1.Bookie/GetLastMarks": READ,
    "bookie.admin.v1.Bookie/Watch": READ,
    "bookie.admin.v1.Bookie/SetReadOnly": OPERATE,
    "bookie.admin.v1.Bookie/Flush": OPERATE,
    "bookie.admin.v1.Bookie/WriteClose": OPERATE,
    "bookie.admin.v1.Bookie/GetQuarantine": READ,
    "bookie.admin.v1.Bookie/LiftQuarantine": OPERATE,
    "bookie.admin.v1.Bookie/RunSanityTest": OPERATE,
    "bookie.admin.v1.Bookie/GetLogLevels": READ,
    "bookie.admin.v1.Bookie/SetLogLevel": OPERATE,
    "bookie.admin.v1.GarbageCollection/GetStatus": READ,
    "bookie.admin.v1.GarbageCollection/Watch": READ,
    "bookie.admin.v1.GarbageCollection/Force": MASS_DELETION,
    "bookie.admin.v1.GarbageCollection/Suspend": OPERATE,
    "bookie.admin.v1.GarbageCollection/Resume": OPERATE,
    "bookie.admin.v1.Metrics/GetText": METRICS,
    "bookie.admin.v1.Metrics/GetSamples": METRICS,
    "bookie.admin.v1.Metrics/Watch": METRICS,
    "bookie.admin.v1.Scrub/GetStatus": READ,
    "bookie.admin.v1.Scrub/Watch": READ,
    "bookie.admin.v1.Scrub/Start": OPERATE,
    "bookie.admin.v1.Scrub/Pause": OPERATE,
    "bookie.admin.v1.Scrub/Resume": OPERATE,
    "bookie.admin.v1.Scrub/SetPace": OPERATE,
    "bookie.admin.v1.Stored/ListEntryLogs": READ,
    "bookie.admin.v1.Stored/ListLedgersOfLog": READ,
    "bookie.admin.v1.Stored/GetLedger": READ_DATA,
    "bookie.admin.v1.Stored/LocateEntries": READ,
    "bookie.admin.v1.Stored/ReadEntries": READ_DATA,
    "bookie.metadata.v1.MetadataStore/Get": STORED_LEDGER,
    "bookie.metadata.v1.MetadataStore/Put": CLUSTERS_OWN,
    "bookie.metadata.v1.MetadataStore/Delete": CLUSTERS_KEY,
    "bookie.metadata.v1.MetadataStore/List": READ,
    "bookie.metadata.v1.MetadataStore/Increment": OPERATE,
    "bookie.metadata.v1.MetadataStore/Watch": READ,
    "bookie.metadata.v1.MetadataStore/OpenSession": OPERATE,
    "bookie.metadata.v1.MetadataStore/KeepAlive": OPERATE,
    "bookie.metadata.v1.MetadataStore/CloseSession": OPERATE,
    "grpc.health.v1.Health/Check": OPEN,
    "grpc.health.v1.Health/List": OPEN,
    "grpc.health.v1.Health/Watch": OPEN,
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": READ,
}
"""The needs of gRPC methods, by service and method."""

STORED_LEDGERS = Need(
    Role.READ, Role.READ_DATA, "`print_metadata`", lambda wish: wish.params.get("print_metadata") == "true"
)
EMPTYING = Need(Role.OPERATE, Role.ADMIN, "`delete_cookie`", lambda wish: _names(wish.body, "delete_cookie"))

ROUTES: Mapping[tuple[str, str], Need] = {
    ("GET", "/heartbeat"): OPEN,
    ("PUT", "/heartbeat"): OPEN,
    ("POST", "/heartbeat"): OPEN,
    ("DELETE", "/heartbeat"): OPEN,
    ("GET", "/metrics"): METRICS,
    ("GET", "/api/v1/config/server_config"): READ,
    ("PUT", "/api/v1/config/server_config"): OPERATE,
    ("DELETE", "/api/v1/ledger/delete"): ADMIN,
    ("GET", "/api/v1/ledger/list"): STORED_LEDGERS,
    ("GET", "/api/v1/ledger/metadata"): READ_DATA,
    ("GET", "/api/v1/ledger/read"): READ_DATA,
    ("GET", "/api/v1/bookie/list_bookies"): READ,
    ("GET", "/api/v1/bookie/list_bookie_info"): READ,
    ("GET", "/api/v1/bookie/last_log_mark"): READ,
    ("GET", "/api/v1/bookie/list_disk_file"): READ,
    ("PUT", "/api/v1/bookie/expand_storage"): OPERATE,
    ("GET", "/api/v1/bookie/gc"): READ,
    ("PUT", "/api/v1/bookie/gc"): OPERATE,
    ("GET", "/api/v1/bookie/gc_details"): READ,
    ("GET", "/api/v1/bookie/gc/suspend_compaction"): READ,
    ("PUT", "/api/v1/bookie/gc/suspend_compaction"): OPERATE,
    ("PUT", "/api/v1/bookie/gc/resume_compaction"): OPERATE,
    ("GET", "/api/v1/bookie/state"): READ,
    ("GET", "/api/v1/bookie/state/readonly"): READ,
    ("PUT", "/api/v1/bookie/state/readonly"): OPERATE,
    ("GET", "/api/v1/bookie/sanity"): OPERATE,
    ("POST", "/api/v1/bookie/sanity"): OPERATE,
    ("GET", "/api/v1/bookie/is_ready"): OPEN,
    ("GET", "/api/v1/bookie/info"): READ,
    ("GET", "/api/v1/bookie/cluster_info"): READ,
    ("GET", "/api/v1/bookie/entry_location_compact"): READ,
    ("PUT", "/api/v1/bookie/entry_location_compact"): OPERATE,
    ("GET", "/api/v1/autorecovery/status"): READ,
    ("PUT", "/api/v1/autorecovery/status"): OPERATE,
    ("PUT", "/api/v1/autorecovery/bookie"): EMPTYING,
    ("GET", "/api/v1/autorecovery/list_under_replicated_ledger"): READ,
    ("GET", "/api/v1/autorecovery/who_is_auditor"): READ,
    ("PUT", "/api/v1/autorecovery/trigger_audit"): OPERATE,
    ("GET", "/api/v1/autorecovery/lost_bookie_recovery_delay"): READ,
    ("PUT", "/api/v1/autorecovery/lost_bookie_recovery_delay"): OPERATE,
    ("PUT", "/api/v1/autorecovery/decommission"): EMPTYING,
    ("GET", "/healthz"): OPEN,
    ("GET", "/livez"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/api/console/bookie"): READ,
    ("PUT", "/api/console/checkpoint"): OPERATE,
    ("GET", "/api/console/cluster"): READ,
    ("GET", "/api/console/configuration"): READ,
    ("GET", "/api/console/entries"): READ_DATA,
    ("GET", "/api/console/ledger"): READ_DATA,
    ("GET", "/api/console/ledgers"): READ_DATA,
    ("GET", "/api/console/log"): READ_DATA,
    ("GET", "/api/console/logs"): READ_DATA,
    ("GET", "/api/console/metrics"): METRICS,
    ("GET", "/api/console/recovery"): READ,
}
"""The needs of HTTP routes, by method and path. HEAD is treated as GET."""


def needed_by_method(path: str) -> Need:
    """Return the need of a gRPC method, named as in gRPC, with a leading slash."""
    return METHODS.get(path.removeprefix("/"), ADMIN)


def needed_by_route(method: str, path: str) -> Need:
    """Return the need of an HTTP route; pass GET for HEAD."""
    return ROUTES.get((method, path), ADMIN)


def _names(body: bytes, name: str) -> bool:
    """Return whether the body may switch this on; a body that cannot be parsed may."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return bool(body.strip())
    return isinstance(found, dict) and str(found.get(name)).lower() == "true"
