"""Endpoints about the bookie itself, with the paths and formats of Apache BookKeeper: state, disks, files, garbage
collection.
"""

from typing import Any

from bookie_admin.http.request import SERVING, HttpRequest, Refused, Reply, reply_json, reply_text
from bookie_admin.sanity import sanity as sanity_test
from bookie_admin.store_calls import share

__all__ = [
    "change_configuration",
    "collect",
    "compact_index",
    "compacting_index",
    "configuration",
    "expand_storage",
    "gc_details",
    "gc_forced",
    "info",
    "is_ready",
    "last_log_mark",
    "list_disk_file",
    "read_only",
    "resume",
    "sanity",
    "set_read_only",
    "state",
    "suspend",
    "suspended",
]

KINDS = {"journal": ("journal files", "journal"), "entrylog": ("entrylog files", "entry log"),
         "index": ("index files", "index")}  # fmt: skip
MODE_S = 5.0
"""How long a change of the mode waits for the registration to follow, at most."""


def is_ready(request: HttpRequest) -> Reply:
    """Reply whether the bookie is registered and serves requests, even if read-only."""
    if request.control.state in SERVING:
        return reply_text("OK")
    return reply_text("Bookie is not fully started yet", 503)


def state(request: HttpRequest) -> Reply:
    """Show the state of the bookie."""
    now, disks = request.control.state, request.control.disk_state()
    return reply_json({
        "running": now in SERVING,
        "readOnly": request.control.read_only,
        "shuttingDown": now in ("stopping", "stopped"),
        "availableForHighPriorityWrites": disks.high_priority or not disks.read_only,
    })  # fmt: skip


def read_only(request: HttpRequest) -> Reply:
    """Show whether the bookie is read-only, for whatever reason."""
    return reply_json({"readOnly": request.control.read_only})


def set_read_only(request: HttpRequest) -> Reply:
    """Switch the operator's read-only mode on or off; 400 if the configuration forbids it."""
    wish = request.document().get("readOnly", False)
    if not isinstance(wish, bool):
        raise Refused(400, "readOnly must be true or false, without quotes")
    given = request.control.configuration()
    if not wish and given["forceReadOnlyBookie"] == "true":
        raise Refused(400, "Bookie is in forceReadOnly mode, cannot transit to writable mode")
    if wish and given["readOnlyModeEnabled"] == "false":
        raise Refused(400, "Bookie is disabled ReadOnly mode, cannot transit to readOnly mode")
    request.control.set_read_only(read_only=wish, within_s=share(request.timeout_s, MODE_S))
    return read_only(request)


def info(request: HttpRequest) -> Reply:
    """Show the free and total bytes of the ledger disks, counting each file system once."""
    systems = {one.usage.device: one.usage for one in request.control.disk_state().directories
               if one.kind == "ledger" and one.usage is not None}  # fmt: skip
    free, total = sum(one.usable for one in systems.values()), sum(one.total for one in systems.values())
    return reply_json({"freeSpace": free, "totalSpace": total})


def sanity(request: HttpRequest) -> Reply:
    """Run the sanity test."""
    passive = request.control.read_only
    return reply_json(
        {"passed": not passive and not sanity_test(request.control, request.timeout_s / 2), "readOnly": passive}
    )


def last_log_mark(request: HttpRequest) -> Reply:
    """Show the last mark of each journal."""
    marks = [mark for mark in request.control.last_marks() if mark.counts]
    found = {f"LastLogMark: Journal Id - {one.file_id}({one.file_id:x}.txn)": f"Pos - {one.offset}" for one in marks}
    return reply_json(found)


def list_disk_file(request: HttpRequest) -> Reply:
    """List the names of files by kind, separated by tabs."""
    wanted = request.params.get("file_type")
    kinds = [KINDS[wanted]] if wanted in KINDS else list(KINDS.values())
    files = list(request.control.files())
    return reply_json({
        title: "".join(f"{one.path.rpartition('/')[2]}\t" for one in files if one.kind == kind) for title, kind in kinds
    })  # fmt: skip


def expand_storage(request: HttpRequest) -> Reply:  # noqa: ARG001 - an endpoint
    """Refuse to add directories: the directory of a ledger depends on their number."""
    raise Refused(500, "directories cannot be added to this bookie; start another bookie on the new disks")


def configuration(request: HttpRequest) -> Reply:
    """Show all configuration keys with their values in effect; secrets are masked."""
    return reply_json(dict(request.control.configuration()))


def change_configuration(request: HttpRequest) -> Reply:
    """Refuse to change the configuration of a running bookie."""
    request.document(empty="Request body not found. should contains k-v pairs")
    raise Refused(
        400, "the configuration of a running bookie cannot be changed; edit its configuration file and restart it"
    )


def gc_forced(request: HttpRequest) -> Reply:
    """Show whether a forced garbage collection is running or pending."""
    return reply_json({"is_in_force_gc": str(_garbage(request).status().forced).lower()})


def collect(request: HttpRequest) -> Reply:
    """Start a garbage collection with the compactions that the body names; without a body, those that are not
    suspended.
    """
    garbage = _garbage(request)
    before = garbage.status()
    given = request.document() if request.body.strip() else {}
    major, minor = (
        str(given.get(name, not suspended)).lower() == "true"
        for name, suspended in (("forceMajor", before.major_suspended), ("forceMinor", before.minor_suspended))
    )
    garbage.force(major=major, minor=minor)
    return reply_json(f"Triggered GC on BookieServer: {request.control.bookie_id}")


def gc_details(request: HttpRequest) -> Reply:
    """Show details of garbage collection: a list of one element, because one thread collects in all directories."""
    found = _garbage(request).status()
    return reply_json([{
        "forceCompacting": found.forced,
        "majorCompacting": found.compacting == "major",
        "minorCompacting": found.compacting == "minor",
        "lastMajorCompactionTime": found.last_major_ms,
        "lastMinorCompactionTime": found.last_minor_ms,
        "lastEntryLocationCompactionTime": 0,
        "majorCompactionCounter": found.counters["gc_major_compaction_total"],
        "minorCompactionCounter": found.counters["gc_minor_compaction_total"],
        "entryLocationCompactionCounter": 0,
    }])  # fmt: skip


def suspended(request: HttpRequest) -> Reply:
    """Show which compactions are suspended."""
    found = _garbage(request).status()
    return reply_json({
        "isMajorGcSuspended": str(found.major_suspended).lower(),
        "isMinorGcSuspended": str(found.minor_suspended).lower(),
    })  # fmt: skip


def suspend(request: HttpRequest) -> Reply:
    """Suspend compactions."""
    kinds = _kinds(request, "suspend")
    _garbage(request).suspend(**kinds)
    return _said(request, "Suspend", kinds)


def resume(request: HttpRequest) -> Reply:
    """Resume compactions."""
    kinds = _kinds(request, "resume")
    _garbage(request).resume(**kinds)
    return _said(request, "Resume", kinds)


def compacting_index(request: HttpRequest) -> Reply:
    """Show whether indexes are being compacted: never, because this index needs no compaction."""
    return reply_json({str(one): False for one in request.control.directories.indexes})


def compact_index(request: HttpRequest) -> Reply:
    """Accept a request to compact indexes and do nothing: free pages of the index are reused by themselves."""
    given = request.document(empty_status=400, empty="Empty request body")
    if given.get("entryLocationRocksDBCompact") is not True:
        return reply_text("Not trigger Entry Location RocksDB compact.")
    known = {str(one) for one in request.control.directories.indexes}
    named = str(given.get("entryLocations") or "")
    if not {one.strip() for one in named.split(",") if one.strip()} <= known:
        text = f"Specified trigger compact entryLocations: {named} is invalid. Bookie entry location path: "
        raise Refused(400, f"{text}{sorted(known)}.")
    return reply_json(f"Triggered entry Location RocksDB compact on bookie:{request.control.bookie_id}")


def _garbage(request: HttpRequest) -> Any:
    if request.control.garbage is None:
        raise Refused(503, "this bookie is still starting; retry in a moment")
    return request.control.garbage


def _kinds(request: HttpRequest, verb: str) -> dict[str, bool]:
    given = request.document(empty_status=400, empty="Empty request body")
    found = {kind: given.get(f"{verb}{kind.title()}") for kind in ("major", "minor")}
    if all(value is None for value in found.values()):
        raise Refused(400, f"No {verb}Major or {verb}Minor params found")
    if not all(value is None or isinstance(value, bool) for value in found.values()):
        raise Refused(400, f"{verb}Major and {verb}Minor must be true or false, without quotes")
    return {kind: value is True for kind, value in found.items()}


def _said(request: HttpRequest, verb: str, kinds: dict[str, bool]) -> Reply:
    names = [f"{verb} {kind}GC on BookieServer: {request.control.bookie_id}" for kind, named in kinds.items() if named]
    return reply_json(", ".join(names))
