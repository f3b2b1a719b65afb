"""`bkadmin entrylogs`."""

from typing import Any

import click

from admin.bkadmin.admin_port import AdminPort, Asking, gathered, with_admin
from admin.bkadmin.options import COUNT, with_output
from bookie.errors import IllegalOperation
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, show

HEXADECIMAL = 16


@click.command()
@click.argument("log", required=False)
@click.option("--directory", type=COUNT, help="Number of the ledger directory, where several have LOG.")
@click.option("--all", "everything", is_flag=True, help="With LOG: also ledgers that no longer exist.")
@with_admin
@with_output
@click.pass_context
def command(
    context: click.Context, *, log: str | None, directory: int | None, everything: bool, admin: AdminPort, output: str
) -> None:
    """The entry logs of a running bookie; or the ledgers that exist and have entries in LOG (its id in hexadecimal).

    The exit code is 3 when the bookie ended the answer before its end.
    """
    from bookie.pb.stored_service_pb2_grpc import StoredStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(StoredStub)
        if log is None:
            show_logs(output, listed(port, stub))
        elif cut_off := show_ledgers(port, stub, output, log, directory, everything=everything):
            click.echo(f"bkadmin: {cut_off}", err=True)
            context.exit(EXIT_PARTIAL)


def listed(port: Asking, stub: Any) -> list[Any]:
    """All logs."""
    from bookie.pb import stored_service_pb2 as pb  # noqa: PLC0415

    return list(port.call(stub.ListEntryLogs, pb.ListEntryLogsRequest()).logs)


def show_logs(output: str, logs: list[Any]) -> None:
    """A row for each."""
    rows = [
        {"directory": one.directory, "log": f"{one.log_id:x}", "bytes": Bytes(one.bytes), "path": one.path}
        for one in logs
    ]
    show(output, "logs", rows, bytes=Bytes(sum(one.bytes for one in logs)))


def show_ledgers(port: Asking, stub: Any, output: str, log: str, directory: int | None, *, everything: bool) -> str:
    """The ledgers of one log; why they are not all, or ""."""
    from bookie.pb import stored_service_pb2 as pb  # noqa: PLC0415

    try:
        wanted = int(log.rpartition("/")[2].removesuffix(".log"), HEXADECIMAL)
    except ValueError:
        raise IllegalOperation(f"{log!r} is no entry log id: name one as bkadmin entrylogs does, in hex") from None
    if directory is None:
        found = [one.directory for one in listed(port, stub) if one.log_id == wanted]
        if len(found) != 1:
            several = f"directories {', '.join(map(str, found))} have one each; choose by --directory"
            where = several if found else "there is none"
            raise IllegalOperation(f"entry log {wanted:x}: {where}; bkadmin entrylogs lists them")
        directory = int(found[0])
    request = pb.ListLedgersOfLogRequest(directory=directory, log_id=wanted)
    parts, cut_off = gathered(port.stream(stub.ListLedgersOfLog, request))
    rows = [
        {"ledger": one.ledger, "bytes": Bytes(one.bytes), "active": one.active}
        for part in parts
        for one in part.ledgers
        if one.active or everything
    ]
    show(output, "ledgers", rows, directory=directory, partial=bool(cut_off))
    return cut_off
