"""`bkadmin entrylogs`: list the entry logs, or the ledgers of one of them."""

from typing import Any

import click

from bookie.errors import IllegalOperation
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, show
from bookie_admin.bkadmin.admin_port import AdminPort, Asking, gathered, with_admin
from bookie_admin.bkadmin.options import COUNT, with_output

HEXADECIMAL = 16


@click.command()
@click.argument("log", required=False)
@click.option(
    "--directory", type=COUNT, help="Number of the ledger directory; needed if several have a log with this id."
)
@click.option("--all", "everything", is_flag=True, help="With LOG: also list ledgers that no longer exist.")
@with_admin
@with_output
@click.pass_context
def command(
    context: click.Context, *, log: str | None, directory: int | None, everything: bool, admin: AdminPort, output: str
) -> None:
    """List the entry logs of a running bookie, or the existing ledgers with entries in LOG (its id in hexadecimal).

    The exit code is 3 when the connection was lost before the end of the answer, or when the bookie could not ask its
    metadata store which ledgers exist; all ledgers are listed then.
    """
    from bookie.pb.stored_service_pb2_grpc import StoredStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(StoredStub)
        if log is None:
            show_logs(output, listed(port, stub))
        elif wrong := show_ledgers(port, stub, output, log, directory, everything=everything):
            click.echo("".join(f"bkadmin: {one}\n" for one in wrong), err=True, nl=False)
            context.exit(EXIT_PARTIAL)


def listed(port: Asking, stub: Any) -> list[Any]:
    """Return all entry logs of the bookie."""
    from bookie.pb import stored_service_pb2 as pb  # noqa: PLC0415

    return list(port.call(stub.ListEntryLogs, pb.ListEntryLogsRequest()).logs)


def show_logs(output: str, logs: list[Any]) -> None:
    """Print a row for each entry log."""
    rows = [
        {"directory": one.directory, "log": f"{one.log_id:x}", "bytes": Bytes(one.bytes), "path": one.path}
        for one in logs
    ]
    show(output, "logs", rows, bytes=Bytes(sum(one.bytes for one in logs)))


def show_ledgers(
    port: Asking, stub: Any, output: str, log: str, directory: int | None, *, everything: bool
) -> list[str]:
    """Print the ledgers of one entry log; return why the list is incomplete, in one line for each reason."""
    from bookie.pb import stored_service_pb2 as pb  # noqa: PLC0415

    try:
        wanted = int(log.rpartition("/")[2].removesuffix(".log"), HEXADECIMAL)
    except ValueError:
        raise IllegalOperation(
            f"LOG {log!r} is not an entry log id; give it in hexadecimal, as bkadmin entrylogs shows it"
        ) from None
    if directory is None:
        found = [one.directory for one in listed(port, stub) if one.log_id == wanted]
        if len(found) != 1:
            several = f"directories {', '.join(map(str, found))} have a log with this id; choose one with --directory"
            where = several if found else "there is no such log"
            raise IllegalOperation(f"entry log {wanted:x}: {where}; bkadmin entrylogs lists them")
        directory = int(found[0])
    request = pb.ListLedgersOfLogRequest(directory=directory, log_id=wanted)
    parts, cut_off = gathered(port.stream(stub.ListLedgersOfLog, request))
    problem = next((part.problem for part in parts if part.problem), "")
    rows = [
        {"ledger": one.ledger, "bytes": Bytes(one.bytes), "active": None if problem else one.active}
        for part in parts
        for one in part.ledgers
        if one.active or everything or problem
    ]
    show(output, "ledgers", rows, directory=directory, partial=bool(cut_off), problem=problem or None)
    unknown = f"the bookie could not ask its metadata store which ledgers exist: {problem}" if problem else ""
    return [one for one in (unknown, cut_off) if one]
