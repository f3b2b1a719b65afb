"""The probes, each with a different purpose, and metrics.

Probes run on the event loop and must not wait for anything; metrics run on `RequestThreads`.

`/livez` (and Apache BookKeeper's `/heartbeat`): the process responds. `/healthz`: the bookie has not failed, even if
it is busy starting. `/readyz`: it is registered and serves requests. An orchestrator restarts the bookie by the first
two, and routes requests by the third. They are answered from the beginning of a start on, before the metadata store is
reached and before a disk is touched.
"""

from bookie.metrics.text import content_type, wants_openmetrics, write
from bookie_admin.http.request import SERVING, HttpRequest, Refused, Reply, reply_text, told

__all__ = ["healthz", "heartbeat", "livez", "metrics", "readyz"]


def heartbeat(request: HttpRequest) -> Reply:  # noqa: ARG001 - an endpoint
    """Reply with OK, as Apache BookKeeper's heartbeat does."""
    return reply_text("OK\n")


def livez(request: HttpRequest) -> Reply:
    """Reply that the process is alive, with the state of the bookie."""
    return reply_text(f"alive: {request.control.state}\n")


def healthz(request: HttpRequest) -> Reply:
    """Reply whether the bookie is not stopping and all its disks respond."""
    control = request.control
    if control.state in ("stopping", "stopped"):
        return reply_text(f"failed: the bookie is {control.state}\n", 503)
    for one in control.disk_state().directories:
        if one.problem and one.usage is None:
            return reply_text(f"failed: {one.kind} directory {one.path}: {one.problem}\n", 503)
    return reply_text(f"ok: {control.state}\n")


def readyz(request: HttpRequest) -> Reply:
    """Reply whether the bookie is registered and serves requests, with its state, which says whether it is writable, or
    what a start waits for.
    """
    if request.control.state in SERVING:
        return reply_text(f"ready: {request.control.state}\n")
    return reply_text(f"not ready: {told(request.control)}\n", 503)


def metrics(request: HttpRequest) -> Reply:
    """Reply with the metrics in the text format that the request prefers."""
    if request.method != "GET":
        raise Refused(403, f"{request.method} is forbidden. Should be GET method")
    openmetrics = wants_openmetrics(request.accept)
    return Reply(write(request.control.metrics(), openmetrics=openmetrics), content_type(openmetrics=openmetrics))
