"""`bkadmin replacedisk`: prepare an empty disk in place of one whose data are lost."""

from pathlib import Path
from typing import Any

import click

from bookie.errors import IllegalOperation
from bookie.storage.layout import current
from bookie.terminal.output import show
from bookie_admin.bkadmin.options import (
    Cluster,
    Directories,
    bookie_files,
    configured_identity,
    sure,
    with_cluster,
    with_dry_run,
    with_output,
    with_yes,
)


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(*, directory: Path, cluster: Cluster, **how: Any) -> None:
    """Prepare DIRECTORY, an empty journal or ledger directory of the stopped bookie of --conf, in place of one whose
    data are lost.

    A bookie that simply started with an empty disk would deny entries that it has acknowledged. This command gives the
    directory the bookie's cookie from the metadata store, and marks the ledgers of which entries may be lost: those
    that are not closed are put into limbo, in which the bookie serves what it has and denies nothing. Then start the
    bookie and run `bkadmin restorebookie`, which copies what it lacks from the other replicas.
    """
    from bookie.metadata.bookies.identity import choose_bookie_id  # noqa: PLC0415
    from bookie.repair.distrust import mark_distrusted  # noqa: PLC0415
    from bookie.repair.integrity import ledgers_of  # noqa: PLC0415
    from bookie.storage.tools.cookie_files import rewrite_cookie, show_cookies  # noqa: PLC0415
    from bookie.storage.tools.locking import locked  # noqa: PLC0415

    files = bookie_files(cluster.conf)
    bookie = choose_bookie_id(configured_identity(cluster.conf))
    lost = _positions(directory, files)
    if not sure(f"let {bookie} go on with the empty directory {directory}?", **how):
        return
    with cluster.open() as driver, locked(files.all):
        [stored] = show_cookies(bookie, driver.cookies, [])
        if stored.cookie is None:
            raise IllegalOperation(f"{stored.problem}; is {bookie} the id of this bookie, and this its cluster?")
        indexes = [files.index(position) for position in range(len(files.ledgers))]
        marked = mark_distrusted(bookie, ledgers_of(driver.ledgers, bookie), indexes, lost=lost)
        # Only now, since with its cookie the directory does not prevent a start any more.
        for path in (directory, *(files.indexes[position] for position in lost or ())):
            rewrite_cookie(path, stored.cookie)
    show(
        how["output"], "", bookie=bookie, directory=str(directory),
        ledgers=marked.ledgers, created=marked.created, limbo=list(marked.limbo),
    )  # fmt: skip


def _positions(directory: Path, files: Directories) -> list[int] | None:
    """Return the positions of the ledger directories that lost entries; None for all, if a journal was lost.

    Raises:
        IllegalOperation: DIRECTORY is none of the bookie's, or not empty, or its index is elsewhere and remains.
    """
    wanted = directory.resolve()
    if wanted not in {path.resolve() for path in (*files.journals, *files.ledgers)}:
        known = ", ".join(map(str, dict.fromkeys((*files.journals, *files.ledgers))))
        raise IllegalOperation(f"{directory} is no journal or ledger directory of this bookie; it has {known}")
    left = [path.name for path in current(directory).glob("*") if path.suffix in {".log", ".txn"}]
    if left:
        raise IllegalOperation(
            f"{directory} is not empty: it holds {left[0]}; to keep these data start the bookie, and to give them up"
            " move them away"
        )
    lost = [position for position, path in enumerate(files.ledgers) if path.resolve() == wanted]
    for position in lost:
        index = files.index(position)
        if files.indexes[position].resolve() != wanted and (index / "data.mdb").exists():
            raise IllegalOperation(f"{index} is the index of the entries that were lost; move it away first")
    return None if wanted in {path.resolve() for path in files.journals} else lost
