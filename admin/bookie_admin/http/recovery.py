"""Endpoints about auto-recovery: its switch and auditor, under-replicated ledgers, decommissions. Runs on
`RequestThreads`.
"""

from typing import Any

from bookie.metadata.records.replication import Mark
from bookie_admin.http.request import HttpRequest, Refused, Reply, reply_json, reply_text

__all__ = [
    "auditor",
    "decommission",
    "delay",
    "marks_of",
    "recover",
    "set_delay",
    "status",
    "switch",
    "trigger_audit",
    "underreplicated",
]


def status(request: HttpRequest) -> Reply:
    """Show whether auto-recovery is enabled in the cluster."""
    return reply_json({"enabled": request.control.metadata.replication.enabled()})


def switch(request: HttpRequest) -> Reply:
    """Enable or disable auto-recovery in the entire cluster."""
    wish = request.params.get("enabled")
    if wish is None:
        raise Refused(400, f"Param 'enabled' not found in {dict(request.params)}")
    request.control.metadata.replication.enable(enabled=wish.lower() == "true")
    return status(request)


def underreplicated(request: HttpRequest) -> Reply:
    """List under-replicated ledgers; 404 if there are none."""
    missing, excluded = request.params.get("missingreplica"), request.params.get("excludingmissingreplica")
    found = [
        mark
        for mark in marks_of(request)
        if (not missing or missing in mark.missing) and (not excluded or excluded not in mark.missing)
    ]
    if not found:
        raise Refused(404, "No under replicated ledgers found")
    if "printmissingreplica" in request.params:
        return reply_json({str(mark.ledger): list(mark.missing) for mark in found})
    return reply_json([mark.ledger for mark in found])


def marks_of(request: HttpRequest) -> list[Mark]:
    """Return the marks of all under-replicated ledgers, by ledger id."""
    return sorted(
        (mark for piece in request.control.metadata.replication.marks() for mark in piece), key=lambda one: one.ledger
    )


def auditor(request: HttpRequest) -> Reply:
    """Show which process is elected auditor."""
    elected = request.control.metadata.election.auditor()
    if elected is None:
        raise Refused(404, "No auditor elected")
    return reply_text(f"Auditor: {elected}")


def trigger_audit(request: HttpRequest) -> Reply:
    """Trigger an audit. Auditors take a write of the same delay as a request to run."""
    if request.control.metadata.election.auditor() is None:
        raise Refused(404, "Exception when do operation.No auditor elected: set autoRecoveryDaemonEnabled")
    replication = request.control.metadata.replication
    replication.set_lost_bookie_delay_s(replication.lost_bookie_delay_s() or 0)
    return reply_text("Success trigger audit.")


def delay(request: HttpRequest) -> Reply:
    """Show how long a bookie may be down before its ledgers are re-replicated."""
    seconds = request.control.metadata.replication.lost_bookie_delay_s()
    if seconds is None:
        raise Refused(404, "Exception when get lostBookieRecoveryDelay.nobody has set it yet")
    return reply_text(f"lostBookieRecoveryDelay value: {seconds}")


def set_delay(request: HttpRequest) -> Reply:
    """Set that delay for the entire cluster; setting the same value triggers an audit."""
    seconds = request.document(empty="Null request body for lostBookieRecoveryDelay.").get("delay_seconds")
    if seconds is None:
        raise Refused(404, "Request body not contains lostBookieRecoveryDelay.")
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds < 2**31:
        raise Refused(400, "delay_seconds must be an integer from 0 to 2147483647")
    request.control.metadata.replication.set_lost_bookie_delay_s(seconds)
    return reply_text(f"Success set lostBookieRecoveryDelay to {seconds}")


def recover(request: HttpRequest) -> Reply:
    """Re-replicate the ledgers of a lost bookie."""
    given = request.document(empty="No request body provide.")
    bookies = given.get("bookie_src")
    if not isinstance(bookies, list) or not bookies or not all(isinstance(one, str) for one in bookies):
        raise Refused(404, 'ERROR parameters: bookie_src must be a list of ids, such as ["host:3181"]')
    request.movers.start(bookies[0], delete_cookie=_true(given.get("delete_cookie")))
    return reply_text("Success send recovery request command.")


def decommission(request: HttpRequest) -> Reply:
    """Decommission a bookie; its cookie is kept unless the body says otherwise."""
    given = request.document(empty="Null request body for DecommissionService.")
    bookie = given.get("bookie_src")
    if not isinstance(bookie, str):
        raise Refused(404, "Request body not contains bookie_src.")
    request.movers.start(bookie, delete_cookie=_true(given.get("delete_cookie")))
    return reply_text(f"Success send decommission Bookie command {bookie}")


def _true(value: Any) -> bool:
    """Parse a switch, which Apache BookKeeper expects as a boolean in one request and as a text in the other."""
    return str(value).lower() == "true"
