"""`bkadmin readledger`: read the entries of a ledger and verify them as a client does."""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from bookie.errors import BookKeeperError, IllegalOperation
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show_long
from bookie_admin.bkadmin.admin_port import AdminPort, CutOff, with_admin_port
from bookie_admin.bkadmin.options import ID, Cluster, with_cluster, with_output

SHOWN = 60


@click.command()
@click.argument("ledger", type=ID)
@click.option("-fe", "--firstentryid", "first", type=ID, default=0, show_default=True, help="First entry to read.")
@click.option("-le", "--lastentryid", "last", type=ID, help="Last entry to read. Default: the last add confirmed.")
@click.option(
    "-r",
    "--force-recovery",
    "recovery",
    is_flag=True,
    help="Recover and close the ledger first; this fences off its writer.",
)
@click.option("-m", "--msg", is_flag=True, help="Show the payloads too, as text with escapes.")
@with_cluster
@with_admin_port
@with_output
def command(*, ledger: int, recovery: bool, msg: bool, cluster: Cluster, admin: AdminPort, **options: Any) -> None:
    """Read the entries of a LEDGER from its replicas, as a client does, and verify their digests.

    The password is taken from the ledger's metadata. The ledger is not fenced, unless --force-recovery is given. With
    --admin, the entries of that one bookie are read, including those that are not confirmed, and a problem with an
    entry is shown in its row. The exit code is 3 if there was a problem or reading broke off early; the entries read
    so far are shown.
    """
    first, last, output = options["first"], options["last"], options["output"]
    if admin.given and recovery:
        raise IllegalOperation("--force-recovery concerns all bookies of a ledger: it cannot be combined with --admin")
    if admin.given:
        rows = held(admin.within(cluster.conf, cluster.timeout_s), ledger, first, last, payloads=msg)
    else:
        rows = entries(cluster, ledger, first, last, recovery=recovery, payloads=msg)
    shown = Shown(rows)

    def facts() -> dict[str, Any]:
        wrong = {"problems": shown.problems} if admin.given else {}
        return {"ledger": ledger, "count": shown.count, **wrong, "partial": bool(shown.ended)}

    show_long(output, "entries", shown, facts)
    if shown.ended:
        click.echo(f"bkadmin: {shown.ended}", err=True)
    if shown.ended or shown.problems:
        click.get_current_context().exit(EXIT_PARTIAL)


class Shown:
    """An iterable of rows, for one pass. Afterwards it has their number, the number of rows with a problem, and in
    `ended` why reading broke off early, or "".
    """

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = rows
        self.count = self.problems = 0
        self.ended = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows. An error before the first row is raised; a later one is kept in `ended`."""
        try:
            for row in self._rows:
                self.count += 1
                self.problems += bool(row.get("problem"))
                yield row
        except CutOff as error:
            self.ended = str(error)
        except BookKeeperError as error:
            if not self.count:
                raise
            self.ended = f"{error} - the output is incomplete"


def held(admin: AdminPort, ledger: int, first: int, last: int | None, *, payloads: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each entry that one bookie has."""
    from bookie.pb import stored_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.stored_service_pb2_grpc import StoredStub  # noqa: PLC0415

    request = pb.EntriesRequest(ledger=ledger, first=first, last=-1 if last is None else last)
    with admin.open() as port:
        for one in port.stream(port.stub(StoredStub).ReadEntries, request):
            row: dict[str, Any] = {"entry": one.entry, "bytes": len(one.payload), "problem": one.problem or None}
            if payloads:
                row["data"] = text(one.payload[: SHOWN + 1])
            yield row


def entries(
    cluster: Cluster, ledger: int, first: int, last: int | None, *, recovery: bool, payloads: bool
) -> Iterator[dict[str, Any]]:
    """Yield a row for each entry, read from any replica that has it."""
    from bookie.client import BookKeeper  # noqa: PLC0415

    with (
        BookKeeper(cluster.service_uri, **cluster.client) as bk,
        bk.open_ledger(ledger, password=None, recovery=recovery) as handle,
    ):
        if first > handle.last_add_confirmed:
            return
        with handle.batches(first, last) as batches:
            for batch in batches:
                for entry in batch:
                    row: dict[str, Any] = {"entry": entry.id, "bytes": len(entry.data)}
                    if payloads:
                        row["data"] = text(bytes(entry.data[: SHOWN + 1]))
                    yield row


def text(data: bytes) -> str:
    """Return the beginning of a payload as one line of text."""
    shown = data[:SHOWN].decode("utf-8", "backslashreplace").encode("unicode_escape").decode()
    return shown + ("…" if len(data) > SHOWN else "")
