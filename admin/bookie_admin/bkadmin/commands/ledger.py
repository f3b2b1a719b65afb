"""`bkadmin ledger`: show where a ledger's entries lie in the entry logs; --admin asks a running bookie."""

from pathlib import Path
from typing import Any

import click

from bookie.errors import NoSuchLedger
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, show
from bookie_admin.bkadmin.admin_port import AdminPort, gathered, with_admin
from bookie_admin.bkadmin.options import ID, bookie_files, with_output


@click.command()
@click.argument("ledger", type=ID)
@click.option(
    "-m", "--meta", is_flag=True, help="Show only the bookie's state of the ledger: fence, limbo, number of entries."
)
@with_admin
@with_output
@click.pass_context
def command(context: click.Context, *, ledger: int, meta: bool, admin: AdminPort, output: str) -> None:
    """Show where the entries of a LEDGER lie in the bookie's entry logs.

    Without --admin, the index in the files of --conf is read as of the last checkpoint. With --admin, a running bookie
    is asked; the exit code is 3 when the connection was lost before the end of its answer.
    """
    found, cut_off = of_running_bookie(admin, ledger, meta=meta) if admin.given else (read(admin.conf, ledger), "")
    places = found.pop("places")
    show(output, "entries", None if meta else places, ledger=ledger, **found)
    if cut_off:
        click.echo(f"bkadmin: {cut_off}", err=True)
        context.exit(EXIT_PARTIAL)


def read(conf: Path | None, ledger: int) -> dict[str, Any]:
    """Read the ledger's state and entry locations from the files of the bookie."""
    from bookie.storage.tools.read_index import list_entries, reading  # noqa: PLC0415

    files = bookie_files(conf)
    index = files.index(files.position(ledger))
    with reading(index) as file:
        known = next((row for row in file.ledgers() if row.ledger == ledger), None)
    places = [row(at.entry, at.log_id, at.offset, at.length) for at in list_entries(index, ledger)]
    if known is None and not places:
        raise NoSuchLedger(f"ledger {ledger}: not in the index of this bookie; its entries may not be checkpointed yet")
    return {
        "places": places,
        "count": len(places),
        "bytes": Bytes(sum(one["bytes"] for one in places)),
        "fenced": known.fenced if known else None,
        "limbo": known.limbo if known else None,
    }


def of_running_bookie(admin: AdminPort, ledger: int, *, meta: bool) -> tuple[dict[str, Any], str]:
    """Ask the running bookie. Return the ledger's state and entry locations, and why locations are missing, or "".

    `count` includes entries that are in the write cache only, which have no location yet.
    """
    from bookie.pb import stored_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.stored_service_pb2_grpc import StoredStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(StoredStub)
        known = port.call(stub.GetLedger, pb.GetLedgerRequest(ledger=ledger))
        if not known.known_here:
            raise NoSuchLedger(
                f"ledger {ledger}: this bookie has no entries of it; bkadmin ledgermetadata shows which bookies have"
            )
        request = pb.EntriesRequest(ledger=ledger, first=0, last=-1)
        parts, cut_off = ([], "") if meta else gathered(port.stream(stub.LocateEntries, request))
    places = [row(one.entry, one.log_id, one.offset, one.bytes) for part in parts for one in part.places]
    found = {
        "places": places,
        "count": sum(one.last - one.first + 1 for one in known.entries),
        "fenced": known.fenced,
        "limbo": known.limbo,
        "last_confirmed": known.last_confirmed,
        "ranges": [f"{one.first}-{one.last}" for one in known.entries],
        "partial": bool(cut_off) or known.more_entries,
    }
    return found, cut_off


def row(entry: int, log_id: int, offset: int, size: int) -> dict[str, Any]:
    """Return the row of one entry."""
    return {"entry": entry, "log": f"{log_id:x}", "offset": offset, "bytes": Bytes(size)}
