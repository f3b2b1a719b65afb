"""Endpoints about the cluster's bookies: their ids, states and disk space. Runs on `RequestThreads`."""

import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import MetadataStoreError
from bookie.metadata.bookies.service_info import parse_service_info
from bookie.metadata.bookies.states import BookieState, bookie_states
from bookie.metadata.patience import carried
from bookie_admin.bookie_calls import client_settings, security_of, space
from bookie_admin.http.request import HttpRequest, Refused, Reply, reply_json

__all__ = ["cluster_info", "cluster_info_of", "list_bookie_info", "list_bookies", "spaces"]

AT_A_TIME = 16
ANSWER_S = 5.0
UNITS = ("", "KB", "MB", "GB", "TB")


def list_bookies(request: HttpRequest) -> Reply:
    """List the ids of registered bookies, on request with their host names."""
    driver = request.control.metadata
    found: dict[str, str | None] = {}
    for bookie in sorted(driver.bookies.present(read_only=request.params.get("type") == "ro")):
        found[bookie] = _host(request, bookie) if request.wants("print_hostnames") else None
    return reply_json(found)


def list_bookie_info(request: HttpRequest) -> Reply:
    """Show the disk space of each writable bookie, in the text format of Apache BookKeeper; silent bookies are left
    out.
    """
    answers = spaces(request, sorted(request.control.metadata.bookies.present(read_only=False)))
    found = {bookie: one for bookie, one in answers.items() if isinstance(one, BookieInfo)}
    if not found:
        raise Refused(404, "Not found any Bookie info.")
    texts = {bookie: f": {{{_room(one.free, one.total)}}}," for bookie, one in found.items()}
    free, total = sum(one.free for one in found.values()), sum(one.total for one in found.values())
    return reply_json({**texts, "ClusterInfo: ": f"{{{_room(free, total)}}}"})


def cluster_info(request: HttpRequest) -> Reply:
    """Summarize the cluster."""
    return reply_json(cluster_info_of(request, bookie_states(request.control.metadata.bookies)))


def cluster_info_of(request: HttpRequest, states: Mapping[str, BookieState]) -> dict[str, Any]:
    """Return the summary of the cluster as a value."""
    driver = request.control.metadata
    try:
        auditor = driver.election.auditor()
    except MetadataStoreError:
        auditor = None
    count = Counter(states.values())
    return {
        "auditorElected": auditor is not None,
        "auditorId": auditor or "",
        "clusterUnderReplicated": any(piece for piece in driver.replication.marks()),
        "ledgerReplicationEnabled": driver.replication.enabled(),
        "totalBookiesCount": len(states),
        "writableBookiesCount": count[BookieState.WRITABLE],
        "readonlyBookiesCount": count[BookieState.READ_ONLY],
        "unavailableBookiesCount": count[BookieState.ABSENT],
    }


def spaces(request: HttpRequest, bookies: list[str]) -> dict[str, BookieInfo | str]:
    """Return the disk space of each bookie, or in one line why it could not be determined."""
    timeout_s = min(ANSWER_S, request.timeout_s / 2)
    end = time.monotonic() + request.timeout_s
    security = security_of(client_settings(request.control.client_keys))

    def one(bookie: str) -> BookieInfo | str:
        if time.monotonic() > end:
            return "not asked: the request ran out of time"
        return space(request.control.metadata, bookie, timeout_s, security)

    with ThreadPoolExecutor(max(1, min(len(bookies), AT_A_TIME)), thread_name_prefix="http-ask") as pool:
        asked = [pool.submit(carried(partial(one, bookie))) for bookie in bookies]
        return {bookie: answer.result() for bookie, answer in zip(bookies, asked, strict=True)}


def _host(request: HttpRequest, bookie: str) -> str | None:
    data = request.control.metadata.bookies.info(bookie)
    end = parse_service_info(bookie, data).client_endpoint() if data is not None else None
    return end.host if end else None


def _room(free: int, total: int) -> str:
    return f"Free: {free}{_readable(free)}, Total: {total}{_readable(total)}"


def _readable(value: int) -> str:
    """Format a number with a decimal unit as Apache BookKeeper does: at most three decimals, truncated."""
    unit = 0
    while value >= 1000 ** (unit + 1) and unit < len(UNITS) - 1:
        unit += 1
    if not unit:
        return ""
    thousandths = value * 1000 // 1000**unit
    text = f"{thousandths // 1000}.{thousandths % 1000:03d}".rstrip("0").rstrip(".")
    return f"({text}{UNITS[unit]})"
