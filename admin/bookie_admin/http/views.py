"""Endpoints of the console that Apache BookKeeper does not have, each of which returns all data of a view. Runs on
`RequestThreads`.

The paths `/api/console/...` belong to the console of the same version; programs should use the other endpoints or
gRPC.
"""

import base64
import time
from typing import Any

from bookie import __version__
from bookie.client.placement.weights import shares
from bookie.client.wire.bookie_space import BookieInfo
from bookie.metadata.bookies.service_info import VERSION_PROPERTY, readable_service_info
from bookie.metadata.bookies.states import BookieState, bookie_states
from bookie.server.configuration.key import Key
from bookie.server.configuration.keys import KEYS
from bookie.server.control import FLUSH_WAIT_S
from bookie_admin.http.cluster import cluster_info_of, spaces
from bookie_admin.http.ledgers import as_java, read_entries
from bookie_admin.http.racks import racks_of
from bookie_admin.http.recovery import marks_of
from bookie_admin.http.request import HttpRequest, Reply, reply_json
from bookie_admin.http.searching import search
from bookie_admin.store_calls import WHOLE_SHARE, share

__all__ = ["bookie", "checkpoint", "cluster", "configuration", "entries", "ledger", "ledgers", "metrics", "recovery"]

ENTRIES_MAX = 100
SHOWN_BYTES_MAX = 16 * 1024
MARKS_SHOWN = 500
MULTIPLE_MAX = 3
"""The cap of a weight, which is the default of clients."""


def bookie(request: HttpRequest) -> Reply:
    """Return the state of this bookie, and the caller's role."""
    control = request.control
    disks = control.disk_state()
    return reply_json({
        "bookie": control.bookie_id,
        "version": __version__,
        "state": control.state,
        "readOnly": control.read_only,
        "reasons": sorted(control.read_only_reasons),
        "caller": request.caller.name,
        "role": request.caller.role.word,
        "guarded": request.access_guarded,
        "nowMs": _now_ms(),
        "limits": _limits(request),
        "disks": [
            {
                "kind": one.kind,
                "path": str(one.path),
                "level": one.level.name.lower(),
                "total": one.usage.total if one.usage else None,
                "free": one.usage.usable if one.usage else None,
                "problem": one.problem,
            }
            for one in disks.directories
        ],
        "garbage": _garbage(control.garbage),
        "scrub": _scrub(control),
        "quarantined": control.stats().get("quarantined_ledgers", 0),
        "marks": [
            {"journal": one.journal, "file": one.file_id, "position": one.offset}
            for one in control.last_marks()
            if one.counts
        ],
    })  # fmt: skip


def metrics(request: HttpRequest) -> Reply:
    """Return the metric families in `names`, separated by commas, with samples as [suffix, labels, value]."""
    names = set(request.params.get("names", "").split(","))
    found = {
        one.name: [[sample.suffix, dict(sample.labels), _finite(sample.value)] for sample in one.samples]
        for one in request.control.metrics()
        if one.name in names
    }
    return reply_json({"nowMs": _now_ms(), "families": found})


def cluster(request: HttpRequest) -> Reply:
    """Return all bookies with their disk space, placement weights and racks."""
    driver = request.control.metadata
    states = bookie_states(driver.bookies)
    present = [one for one, state in states.items() if state is not BookieState.ABSENT]
    space_of = spaces(request, present)
    free = {
        one: info.free
        for one, info in space_of.items()
        if states[one] is BookieState.WRITABLE and isinstance(info, BookieInfo)
    }
    capped = shares(list(free.values()), MULTIPLE_MAX, "median")
    total = sum(capped) or 1.0
    weights = {one: share / total for one, share in zip(free, capped, strict=True)}
    racks = racks_of(request, list(states))
    rows: list[dict[str, Any]] = []
    for one, state in states.items():
        answer = space_of.get(one)
        room = answer if isinstance(answer, BookieInfo) else None
        version, url = _published(request, one)
        rows.append({
            "bookie": one,
            "state": state,
            "free": room.free if room else None,
            "total": room.total if room else None,
            "error": answer if isinstance(answer, str) else "",
            "weight": weights.get(one),
            "rack": racks.get(one),
            "version": version,
            "console": url,
        })  # fmt: skip
    instance = driver.cluster.instance_id()
    info = cluster_info_of(request, states)
    return reply_json({
        "nowMs": _now_ms(), "instance": instance, "info": info, "limits": _limits(request), "bookies": rows,
    })  # fmt: skip


def configuration(request: HttpRequest) -> Reply:
    """Return all configuration keys with their values in effect, their defaults, and whether these differ."""
    given = request.control.configuration()
    return reply_json(
        {
            name: {
                "value": given[name],
                "default": key.default,
                "changed": _changed(key, given[name]),
                "about": key.doc,
            }
            for name, key in KEYS.items()
        }
    )


def ledgers(request: HttpRequest) -> Reply:
    """Return ledgers that match a search, with the sum of their sizes (`searching`)."""
    return reply_json(search(request))


def ledger(request: HttpRequest) -> Reply:
    """Return one ledger, with the bookies of its ensembles."""
    ledger_id = request.number("ledger_id")
    driver = request.control.metadata
    found = driver.ledgers.read(ledger_id)
    mark = driver.replication.marked(ledger_id)
    return reply_json({
        **as_java(ledger_id, found.value, found.created_ms),
        "version": found.version,
        "missing": list(mark.missing) if mark else [],
        "custom": {key: one.decode("utf-8", "backslashreplace") for key, one in found.value.custom.items()},
        "segments": [
            {"firstEntry": one.first_entry, "bookies": list(one.bookies)} for one in found.value.segments
        ],
    })  # fmt: skip


def entries(request: HttpRequest) -> Reply:
    """Return a few entries; long payloads are truncated."""
    ledger_id, first = request.number("ledger_id"), request.number("first", 0)
    count = request.number("count", 20, low=1, high=ENTRIES_MAX)
    return reply_json({
        "entries": [
            {
                "entry": one.id,
                "bytes": len(one.data),
                "data": base64.b64encode(bytes(one.data[:SHOWN_BYTES_MAX])).decode(),
            }
            for one in read_entries(request, ledger_id, first, None, count)
        ]
    })  # fmt: skip


def recovery(request: HttpRequest) -> Reply:
    """Return the state of auto-recovery."""
    driver = request.control.metadata
    marks, holders = marks_of(request), driver.replication.holders()
    return reply_json({
        "nowMs": _now_ms(),
        "enabled": driver.replication.enabled(),
        "auditor": driver.election.auditor(),
        "delayS": driver.replication.lost_bookie_delay_s(),
        "count": len(marks),
        "marks": [
            {"ledger": one.ledger, "missing": list(one.missing), "sinceMs": one.marked_ms,
             "worker": holders.get(one.ledger)}
            for one in marks[:MARKS_SHOWN]
        ],
        "moves": request.movers.seen(),
    })  # fmt: skip


def checkpoint(request: HttpRequest) -> Reply:
    """Flush the write caches."""
    request.control.checkpoint(share(request.timeout_s, FLUSH_WAIT_S, WHOLE_SHARE))
    return reply_json("Flushed")


def _published(request: HttpRequest, bookie: str) -> tuple[str, str]:
    """Return the version of a bookie and the URL of its console, as far as it publishes them: bookies of Apache
    BookKeeper have neither. The console is taken to have TLS where this port has.
    """
    info = readable_service_info(bookie, request.control.metadata.bookies.info(bookie))
    if info is None:
        return "", ""
    version = info.properties.get(VERSION_PROPERTY, "")
    if not version:  # the HTTP port of a Java bookie has no console
        return "", ""
    scheme = "https" if request.control.http.tls else "http"
    ports = (one for one in info.endpoints if one.protocol == "http")
    urls = (f"{scheme}://{one.address}/" for one in ports)
    return version, next(urls, "")


def _limits(request: HttpRequest) -> dict[str, float]:
    """Return the shares of a disk from which on this bookie warns, and takes no more adds."""
    given = request.control.configuration()
    return {"warn": float(given["diskUsageWarnThreshold"]), "full": float(given["diskUsageThreshold"])}


def _changed(key: Key, text: str) -> bool:
    """Return whether a value differs from the default, however it is written. A masked secret does."""
    if text == key.default:
        return False
    try:
        return key.parse(text) != key.parse(key.default)
    except ValueError:
        return True


def _garbage(garbage: Any) -> dict[str, Any] | None:
    if garbage is None:
        return None
    found = garbage.status()
    return {
        "running": found.running,
        "doing": found.doing,
        "compacting": found.compacting,
        "forced": found.forced,
        "majorSuspended": found.major_suspended,
        "minorSuspended": found.minor_suspended,
        "lastCycleMs": found.last_cycle_ms,
        "lastMinorMs": found.last_minor_ms,
        "lastMajorMs": found.last_major_ms,
        "alarm": found.alarm.text if found.alarm else "",
        "logsDone": found.progress.logs_done,
        "logsInAll": found.progress.logs_in_all,
        "counters": {name: value for name, value in found.counters.items() if isinstance(value, int | float)},
    }


def _scrub(control: Any) -> dict[str, Any] | None:
    if control.scrub is None:
        return None
    found = control.scrub.status()
    counters = control.stats()
    return {
        "running": found.running,
        "paused": found.paused,
        "rate": found.rate,
        "bytesDone": found.bytes_done,
        "bytesInAll": found.bytes_in_all,
        "endedMs": found.ended_ms,
        "tookMs": found.took_ms,
        "found": found.found,
        "repaired": counters.get("repair_repaired", 0),
        "unrepairable": counters.get("repair_unrepairable_now", 0),
    }


def _finite(value: float) -> float | None:
    """Return the value, or None for infinity and NaN, which JSON does not have."""
    return value if value - value == 0 else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
