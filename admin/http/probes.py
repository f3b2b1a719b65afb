"""Probes, each of which asks something else, and metrics.

Probes run on the event loop and must not wait for anything; metrics run on `RequestThreads`.

`/livez` (and upstream's `/heartbeat`): the process answers. `/healthz`: the bookie has not failed, whatever it is busy
with. `/readyz`: it is registered and serves. An orchestrator restarts by the first two, and routes by the third.
"""

from admin.http.request import SERVING, HttpRequest, Refused, Reply, reply_text
from bookie.metrics.text import content_type, wants_openmetrics, write

__all__ = ["healthz", "heartbeat", "livez", "metrics", "readyz"]


def heartbeat(request: HttpRequest) -> Reply:  # noqa: ARG001 - an endpoint
    """Upstream's sign of life."""
    return reply_text("OK\n")


def livez(request: HttpRequest) -> Reply:
    """The process answers; says in which state."""
    return reply_text(f"alive: {request.control.state}\n")


def healthz(request: HttpRequest) -> Reply:
    """It is not stopping, no thread has died, and its disks answer."""
    control = request.control
    if control.state in ("stopping", "stopped"):
        return reply_text(f"failed: the bookie is {control.state}\n", 503)
    for one in control.disk_state().directories:
        if one.problem and one.usage is None:
            return reply_text(f"failed: {one.kind} directory {one.path}: {one.problem}\n", 503)
    return reply_text(f"ok: {control.state}\n")


def readyz(request: HttpRequest) -> Reply:
    """It is registered and takes requests; the text says whether it takes writes."""
    if request.control.state in SERVING:
        return reply_text(f"ready: {request.control.state}\n")
    return reply_text(f"not ready: the bookie is {request.control.state}\n", 503)


def metrics(request: HttpRequest) -> Reply:
    """In the text format that the request likes best."""
    if request.method != "GET":
        raise Refused(403, f"{request.method} is forbidden. Should be GET method")
    openmetrics = wants_openmetrics(request.accept)
    return Reply(write(request.control.metrics(), openmetrics=openmetrics), content_type(openmetrics=openmetrics))
