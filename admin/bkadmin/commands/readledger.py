"""`bkadmin readledger`."""

import asyncio
from typing import Any

import click

from admin.bkadmin.admin_port import AdminPort, gathered, with_admin_port
from admin.bkadmin.options import ID, Cluster, with_cluster, with_output
from bookie.errors import BookKeeperError, IllegalOperation
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show

SHOWN = 60


@click.command()
@click.argument("ledger", type=ID)
@click.option("-fe", "--firstentryid", "first", type=ID, default=0, show_default=True)
@click.option("-le", "--lastentryid", "last", type=ID, help="Else: the last one that is confirmed.")
@click.option("-r", "--force-recovery", "recovery", is_flag=True, help="Close the ledger first; this stops its writer.")
@click.option("-m", "--msg", is_flag=True, help="With the payloads, as text with escapes.")
@with_cluster
@with_admin_port
@with_output
def command(*, ledger: int, recovery: bool, msg: bool, cluster: Cluster, admin: AdminPort, **options: Any) -> None:
    """Read the entries of a LEDGER as a client does, replica by replica, and check their digests.

    The password is taken from the ledger's metadata. Nothing is fenced without --force-recovery. With --admin, only
    what that one bookie has is read, unconfirmed entries too, and what is wrong with one is told beside it. The exit
    code is 3 where something is, and where reading ended early: what came before is shown.
    """
    first, last, output = options["first"], options["last"], options["output"]
    if not admin.given:
        rows, ended = asyncio.run(entries(cluster, ledger, first, last, recovery=recovery, payloads=msg))
        show(output, "entries", rows, ledger=ledger, count=len(rows), partial=bool(ended))
        if ended:
            click.echo(f"bkadmin: {ended} - what was shown is a part", err=True)
            click.get_current_context().exit(EXIT_PARTIAL)
        return
    if recovery:
        raise IllegalOperation("--force-recovery is for all bookies of a ledger: leave --admin away")
    rows, cut_off = held(admin.within(cluster.conf, cluster.timeout_s), ledger, first, last, payloads=msg)
    wrong = sum(bool(row["problem"]) for row in rows)
    show(output, "entries", rows, ledger=ledger, count=len(rows), problems=wrong, partial=bool(cut_off))
    if cut_off:
        click.echo(f"bkadmin: {cut_off}", err=True)
    if wrong or cut_off:
        click.get_current_context().exit(EXIT_PARTIAL)


def held(
    admin: AdminPort, ledger: int, first: int, last: int | None, *, payloads: bool
) -> tuple[list[dict[str, Any]], str]:
    """A row for each entry of one bookie, and why they are not all, or ""."""
    from bookie.pb import stored_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.stored_service_pb2_grpc import StoredStub  # noqa: PLC0415

    request = pb.EntriesRequest(ledger=ledger, first=first, last=-1 if last is None else last)
    with admin.open() as port:
        found, cut_off = gathered(port.stream(port.stub(StoredStub).ReadEntries, request))
    rows = []
    for one in found:
        row: dict[str, Any] = {"entry": one.entry, "bytes": len(one.payload), "problem": one.problem}
        if payloads:
            row["data"] = text(one.payload[: SHOWN + 1])
        rows.append(row)
    return rows, cut_off


async def entries(
    cluster: Cluster, ledger: int, first: int, last: int | None, *, recovery: bool, payloads: bool
) -> tuple[list[dict[str, Any]], str]:
    """A row for each; and why there are not more, or "". What stood in the way of the first one is raised."""
    from bookie.client.aio import BookKeeper  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    async with (
        BookKeeper(cluster.service_uri, **cluster.waits) as bk,
        bk.open_ledger(ledger, password=None, recovery=recovery) as handle,
    ):
        if first > handle.last_add_confirmed:
            return rows, ""
        try:
            async for batch in handle.batches(first, last):
                for entry in batch:
                    row: dict[str, Any] = {"entry": entry.id, "bytes": len(entry.data)}
                    if payloads:
                        row["data"] = text(bytes(entry.data[: SHOWN + 1]))
                    rows.append(row)
        except BookKeeperError as error:
            if not rows:
                raise
            return rows, str(error)
    return rows, ""


def text(data: bytes) -> str:
    """The beginning of a payload, in one line."""
    shown = data[:SHOWN].decode("utf-8", "backslashreplace").encode("unicode_escape").decode()
    return shown + ("…" if len(data) > SHOWN else "")
