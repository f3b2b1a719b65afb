"""Probes, which differ, and metrics. Probes run on the event loop and must not wait for anything; metrics in Desk.

`/livez` (and upstream's `/heartbeat`): the process answers. `/healthz`: the bookie has not failed, whatever it is busy
with. `/readyz`: it is registered and serves. An orchestrator restarts by the first two, and routes by the third.
"""

from admin.http.asking import SERVING, Asked, Refused, Reply, reply_text
from bookie.metrics.text import content_type, wants_openmetrics, write

__all__ = ["healthz", "heartbeat", "livez", "metrics", "readyz"]


def heartbeat(asked: Asked) -> Reply:  # noqa: ARG001 - an endpoint
    """Upstream's sign of life."""
    return reply_text("OK\n")


def livez(asked: Asked) -> Reply:
    """The process answers; says in which state."""
    return reply_text(f"alive: {asked.control.state}\n")


def healthz(asked: Asked) -> Reply:
    """It is not stopping, no thread has died, and its disks answer."""
    control = asked.control
    if control.state in ("stopping", "stopped"):
        return reply_text(f"failed: the bookie is {control.state}\n", 503)
    for one in control.disk_state().directories:
        if one.problem and one.usage is None:
            return reply_text(f"failed: {one.kind} directory {one.path}: {one.problem}\n", 503)
    return reply_text(f"ok: {control.state}\n")


def readyz(asked: Asked) -> Reply:
    """It is registered and takes requests; the text says whether it takes writes."""
    if asked.control.state in SERVING:
        return reply_text(f"ready: {asked.control.state}\n")
    return reply_text(f"not ready: the bookie is {asked.control.state}\n", 503)


def metrics(asked: Asked) -> Reply:
    """In the text format that the request likes best."""
    if asked.method != "GET":
        raise Refused(403, f"{asked.method} is forbidden. Should be GET method")
    openmetrics = wants_openmetrics(asked.accept)
    return Reply(write(asked.control.metrics(), openmetrics=openmetrics), content_type(openmetrics=openmetrics))
