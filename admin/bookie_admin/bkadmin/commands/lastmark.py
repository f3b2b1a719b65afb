"""`bkadmin lastmark`: show the last mark of each journal; --admin asks a running bookie."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.storage.layout import current
from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import bookie_files, with_output

if TYPE_CHECKING:
    from bookie.pb import bookie_service_pb2 as pb


@click.command()
@with_admin
@with_output
def command(*, admin: AdminPort, output: str) -> None:
    """Show the last mark of each journal: the position up to which it is checkpointed. A bookie replays its journal
    from there when it starts.

    The marks are read from the files of --conf; with --admin, a running bookie is asked.
    """
    show(output, "marks", of_running_bookie(admin) if admin.given else read(admin.conf))


def read(conf: Path | None) -> list[dict[str, Any]]:
    """Read the marks from the files of the bookie."""
    from bookie.storage.tools.files import last_marks  # noqa: PLC0415

    files = bookie_files(conf)
    marks = last_marks([current(one) for one in files.ledgers], len(files.journals))
    return [row(mark.journal, mark.file_id, mark.offset, str(mark.path), counts=mark.counts) for mark in marks]


def of_running_bookie(admin: AdminPort) -> list[dict[str, Any]]:
    """Ask the running bookie for its marks."""
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(BookieStub)
        return rows_of(port.call(stub.GetLastMarks, pb.GetLastMarksRequest()))


def rows_of(marks: "pb.LastMarks") -> list[dict[str, Any]]:
    """Return a row for each mark."""
    return [
        row(one.journal, one.file_id, one.offset, one.path, counts=one.counts)
        if one.file_id >= 0
        else row(one.journal, None, None, one.path, counts=one.counts)
        for one in marks.marks
    ]


def row(journal: int, file_id: int | None, position: int | None, path: str, *, counts: bool) -> dict[str, Any]:
    """Return the row of one mark."""
    return {
        "journal": journal,
        "file": None if file_id is None else f"{file_id:x}.txn",
        "journal_id": file_id,
        "position": position,
        "counts": counts,
        "path": path,
    }
