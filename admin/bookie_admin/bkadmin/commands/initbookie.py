"""`bkadmin initbookie`: create the cookies of a new bookie."""

import click

from bookie.durable import make_directories
from bookie.errors import IllegalOperation
from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, bookie_files, configured_identity, with_cluster, with_output


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Create the cookies of the new bookie of --conf, in its empty directories and in the metadata store.

    A bookie does this itself when it first starts. The command is refused if a directory or the metadata store
    has anything of an earlier bookie.
    """
    from bookie.metadata.bookies.identity import candidate_ids, choose_bookie_id  # noqa: PLC0415
    from bookie.storage.cookies import make_cookie, validate_cookies  # noqa: PLC0415
    from bookie.storage.tools.locking import locked  # noqa: PLC0415

    files, identity = bookie_files(cluster.conf), configured_identity(cluster.conf)
    bookie = choose_bookie_id(identity)
    for directory in files.all:
        make_directories(directory)
    with cluster.open() as driver, locked(files.all):
        if driver.cookies.read(bookie) is not None:
            raise IllegalOperation(
                f"bookie {bookie} already has a cookie, so it is not new; bkadmin cookie_get shows it"
            )
        wanted = make_cookie(
            bookie,
            journals=files.journals,
            ledgers=files.ledgers,
            indexes=files.indexes if files.indexes != files.ledgers else (),
            instance_id=driver.cluster.instance_id(),
        )
        validate_cookies(wanted, driver.cookies, files.all, candidate_ids=candidate_ids(identity))
    done(output, f"created the cookies of bookie {bookie}", bookie=bookie, directories=[str(one) for one in files.all])
